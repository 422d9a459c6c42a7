package view

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	tensorstack "github.com/musterhq/muster/api/tensorstack/v1beta1"
)

// genericJobSubject returns the subject of a GenericJob, using the pod counts in its status.
func genericJobSubject(job *tensorstack.GenericJob, owned owners) *subject {
	s := &subject{
		meta: &job.ObjectMeta, kind: "GenericJob", group: tensorstack.GroupVersion.Group,
		workload: owned.workloads[job.UID],
		queue:    job.Labels[kueue.QueueLabel],
		requests: corev1.ResourceList{},
	}
	if scheduler := job.Spec.Scheduler; scheduler != nil && scheduler.T9kScheduler != nil && s.queue == "" {
		s.queue = cmp.Or(scheduler.T9kScheduler.Queue, tensorstack.DefaultQueue)
	}
	for i := range job.Spec.ReplicaSpecs {
		spec := &job.Spec.ReplicaSpecs[i]
		count := int32(1)
		if spec.Replicas != nil {
			count = *spec.Replicas
		}
		s.pods.asked += count
		addTimes(s.requests, podRequests(&spec.Template), count)
	}
	if counts := job.Status.Aggregate; counts != nil {
		s.pods.active, s.pods.succeeded = counts.Pending+counts.Running, counts.Succeeded
		s.pods.ready = min(ptr.Deref(job.Status.Ready, counts.Running), counts.Running)
	}
	var restarts int32
	for i := range job.Status.Tasks {
		restarts += job.Status.Tasks[i].RestartCount
	}
	if restarts > 0 {
		s.partial = "replicas restarted " + times(restarts)
	}
	s.readConditions(job)
	return s
}

// readConditions reads when the job started, how it ended, and whether it is paused.
func (s *subject) readConditions(job *tensorstack.GenericJob) {
	conditions := map[tensorstack.JobConditionType]*tensorstack.JobCondition{}
	for i := range job.Status.Conditions {
		c := &job.Status.Conditions[i]
		conditions[c.Type] = c
	}
	if begun := conditions[tensorstack.JobInitialized]; begun != nil && s.queue == "" {
		s.startedAt = begun.LastTransitionTime.DeepCopy()
	}
	if over := conditions[tensorstack.JobCompleted]; over != nil && over.Status == metav1.ConditionTrue {
		s.ended = &ending{state: Completed, at: over.LastTransitionTime}
		if failed := conditions[tensorstack.JobFailed]; failed != nil && failed.Status == metav1.ConditionTrue {
			s.ended.state, s.ended.reason, s.ended.message = Failed, "", failed.Message
		}
		return
	}
	if mode := job.Spec.RunMode; mode != nil && mode.Pause != nil && mode.Pause.Enabled {
		s.held = "paused: spec.runMode.pause.enabled is true"
	}
}
