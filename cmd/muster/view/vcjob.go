package view

import (
	"cmp"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
)

// vcJobKind is the kind of a Job of batch.volcano.sh as users call it, since Kubernetes has a kind Job too.
const vcJobKind = "VCJob"

// readyPods returns how many pods are ready. Volcano, where that runs the job, records only how many run.
func readyPods(status *volcano.JobStatus) int32 {
	ready, err := strconv.ParseInt(status.ControlledResources[volcano.ReadyKey], 10, 32)
	if err != nil || ready < 0 {
		return status.Running
	}
	return min(int32(ready), status.Running)
}

// vcJobSubject returns the subject of a VCJob, using the pod counts in its status.
func vcJobSubject(job *volcano.Job, owned owners) *subject {
	s := &subject{
		meta: &job.ObjectMeta, kind: vcJobKind, group: volcano.GroupVersion.Group,
		workload: owned.workloads[job.UID],
		queue:    cmp.Or(job.Labels[kueue.QueueLabel], job.Spec.Queue, volcano.DefaultQueue),
		requests: corev1.ResourceList{}, sizeFromSpec: true,
	}
	for i := range job.Spec.Tasks {
		task := &job.Spec.Tasks[i]
		name := cmp.Or(task.Name, volcano.DefaultTaskPrefix+strconv.Itoa(i))
		s.parts = append(s.parts, part{kueue.PodSetReference(name), task.Replicas})
		s.pods.asked += task.Replicas
		addTimes(s.requests, podRequests(&task.Template), task.Replicas)
	}
	status := &job.Status
	s.pods.active, s.pods.ready, s.pods.succeeded = status.Pending+status.Running, readyPods(status), status.Succeeded
	s.restarts = status.RetryCount
	switch state := status.State; state.Phase {
	case volcano.Pending:
		if s.workload == nil {
			s.blocked = state.Message // it cannot be queued, and says why
		}
	case volcano.Completed:
		s.ended = &ending{state: Completed, at: state.LastTransitionTime}
	case volcano.Failed, volcano.Terminated:
		s.ended = &ending{state: Failed, at: state.LastTransitionTime, reason: state.Reason, message: state.Message}
	case volcano.Aborting, volcano.Aborted:
		s.held = "aborted: a Command ResumeJob starts it again"
	case volcano.Restarting:
		s.partial = "restarting: " + state.Message
	}
	return s
}
