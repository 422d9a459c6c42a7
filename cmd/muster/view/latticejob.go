package view

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	lattice "github.com/musterhq/muster/api/lattice/v1alpha1"
	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
)

// latticeJobSubject returns the subject of a LatticeJob: that of its VCJob, if there is one, under the LatticeJob's
// name.
func latticeJobSubject(job *lattice.LatticeJob, vcjob *volcano.Job, owned owners) *subject {
	s := &subject{requests: corev1.ResourceList{}}
	if vcjob != nil {
		s = vcJobSubject(vcjob, owned)
		s.held = "" // an aborted VCJob of a LatticeJob has failed
		s.makers = []types.UID{vcjob.UID}
	} else {
		var defaults lattice.JobTaskSpec
		if job.Spec.Defaults != nil {
			defaults = *job.Spec.Defaults
		}
		for _, task := range job.Spec.Tasks {
			count := int32(1)
			if replicas := cmp.Or(task.Replicas, defaults.Replicas); replicas != nil {
				count = *replicas
			}
			if len(task.Workload.Containers) == 0 {
				task.Workload.Containers = defaults.Workload.Containers
			}
			s.pods.asked += count
			addTimes(s.requests, taskRequests(&task), count)
		}
	}
	s.meta, s.kind, s.group = &job.ObjectMeta, "LatticeJob", lattice.GroupVersion.Group
	s.queue = cmp.Or(job.Labels[kueue.QueueLabel], job.Spec.Queue, s.queue, volcano.DefaultQueue)
	if own := owned.workloads[job.UID]; own != nil {
		s.workload = own // if Volcano runs the pods, the LatticeJob itself queues
	}
	s.startedAt = cmp.Or(s.startedAt, job.Status.StartTime)
	ended := &ending{message: job.Status.Message, at: ptr.Deref(job.Status.CompletionTime, metav1.Time{})}
	if vcjob != nil {
		ended.at = vcjob.Status.State.LastTransitionTime
		ended.message = cmp.Or(vcjob.Status.State.Message, ended.message)
	}
	switch {
	case job.Status.Phase == lattice.Succeeded:
		s.ended = &ending{state: Completed, at: ended.at}
	case job.Status.Phase == lattice.Failed, vcjob == nil && job.Status.Message == lattice.LostMessage:
		ended.state, s.ended = Failed, ended
	default:
		s.ended = nil // its VCJob may be over, but its own status is not updated yet
		if s.workload == nil && s.blocked == "" {
			s.blocked = job.Status.Message // such as that it was handed to Volcano
		}
	}
	return s
}

// taskRequests returns what a pod of the task requests, as far as that is known without compiling the job.
func taskRequests(task *lattice.JobTaskSpec) corev1.ResourceList {
	template := corev1.PodTemplateSpec{}
	for _, c := range task.Workload.Containers {
		container := corev1.Container{}
		if r := c.Resources; r != nil {
			container.Resources = corev1.ResourceRequirements{Requests: quantities(r.Requests), Limits: quantities(r.Limits)}
		}
		template.Spec.Containers = append(template.Spec.Containers, container)
	}
	return podRequests(&template)
}

func quantities(q *lattice.ResourceQuantity) corev1.ResourceList {
	if q == nil {
		return nil
	}
	out := corev1.ResourceList{}
	if q.CPU != nil {
		out[corev1.ResourceCPU] = *q.CPU
	}
	if q.Memory != nil {
		out[corev1.ResourceMemory] = *q.Memory
	}
	return out
}

// latticeJobs returns the LatticeJobs, and the VCJobs that none of them owns. A LatticeJob with a schedule is
// represented by its runs, as a CronJob is, unless it cannot have any.
func latticeJobs(snapshot *Snapshot, owned owners) (jobs []*subject, others []*volcano.Job) {
	made := map[string]*volcano.Job{}
	for i := range snapshot.VCJobs {
		job := &snapshot.VCJobs[i]
		owner := metav1.GetControllerOf(job)
		if owner == nil || owner.Kind != "LatticeJob" {
			others = append(others, job)
			continue
		}
		made[string(owner.UID)] = job
	}
	for i := range snapshot.LatticeJobs {
		job := &snapshot.LatticeJobs[i]
		if hasRuns(job) {
			continue
		}
		jobs = append(jobs, latticeJobSubject(job, made[string(job.UID)], owned))
		delete(made, string(job.UID))
	}
	for i := range snapshot.VCJobs { // VCJobs whose LatticeJob is not in the snapshot
		job := &snapshot.VCJobs[i]
		if owner := metav1.GetControllerOf(job); owner != nil && made[string(owner.UID)] == job {
			others = append(others, job)
		}
	}
	return jobs, others
}
