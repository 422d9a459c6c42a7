package view

import (
	"cmp"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	breezeml "github.com/musterhq/muster/api/breezeml/v1"
	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
)

// trainingJobSubject returns the subject of a TrainingJob in the given API group, using the pod counts in its status.
// Until it has a size it asks for its maximum.
func trainingJobSubject(job *breezeml.TrainingJob, group string, owned owners) *subject {
	s := &subject{
		meta: &job.ObjectMeta, kind: "TrainingJob", group: group,
		workload: owned.workloads[job.UID],
		queue:    job.Labels[kueue.QueueLabel],
		requests: corev1.ResourceList{},
	}
	if policy := job.Spec.RunPolicy.SchedulingPolicy; policy != nil {
		s.queue = cmp.Or(s.queue, policy.Queue)
	}
	s.queue = cmp.Or(s.queue, muster.DefaultQueue)
	s.sizes = sizesOf(job)
	s.pods.asked = cmp.Or(job.Status.CurrentSize, s.sizes.most)
	addTimes(s.requests, podRequests(&job.Spec.ReplicaSpecs.Template), s.pods.asked)
	counts := job.Status.ExecStatus.ReplicaStatuses[breezeml.WorkerStatuses]
	s.pods.active, s.pods.ready, s.pods.succeeded = counts.Active, ptr.Deref(counts.Ready, counts.Active), counts.Succeeded
	var restarts int32
	for _, n := range job.Status.Restarts {
		restarts += n
	}
	if restarts > 0 {
		s.partial = "workers restarted " + times(restarts)
	}
	if limit := job.Status.SizeLimit; limit != nil && limit.Until != nil && job.Status.Stage == breezeml.StageRunning {
		s.partial = join(fmt.Sprintf("goes on with %d workers until %s: %s", limit.Workers, limit.Until.UTC().Format("15:04:05 UTC"), limit.Message), s.partial)
	}
	s.readStage(job)
	if s.ended != nil {
		s.pods.ready = 0 // the status keeps the counts of the time of the end
	}
	s.noteManager(job.Spec.RunPolicy.ManagedBy, breezeml.ControllerName)
	return s
}

// sizesOf returns the job's range of sizes, corrected to a valid range.
func sizesOf(job *breezeml.TrainingJob) sizes {
	said := specSizes(&job.Spec)
	least := max(0, said.least)
	return sizes{least, max(least, said.most)}
}

// specSizes returns the sizes in the spec, with the API's defaults for absent ones.
func specSizes(spec *breezeml.TrainingJobSpec) sizes {
	said := sizes{1, 1}
	if spec.MinSize != nil {
		said.least = *spec.MinSize
	}
	said.most = max(1, said.least)
	if spec.MaxSize != nil {
		said.most = *spec.MaxSize
	}
	return said
}

// specError returns the error in the spec that keeps a job from being queued. Its event has it too, but events expire
// after an hour.
func specError(spec *breezeml.TrainingJobSpec) string {
	switch said := specSizes(spec); {
	case said.least < 1:
		return fmt.Sprintf("minSize is %d, and must be 1 at least", said.least)
	case said.most < said.least:
		return fmt.Sprintf("minSize, %d, is above maxSize, %d", said.least, said.most)
	case said.most > breezeml.MostWorkers:
		return fmt.Sprintf("a job has at most %d workers, not %d", breezeml.MostWorkers, said.most)
	}
	return "injectLattice needs an explicit command"
}

// readStage reads how the job ended, and what holds it apart from its queue.
func (s *subject) readStage(job *breezeml.TrainingJob) {
	for i := range job.Status.ExecStatus.Conditions {
		c := &job.Status.ExecStatus.Conditions[i]
		switch {
		case c.Status != corev1.ConditionTrue:
		case c.Type == breezeml.JobSucceeded:
			s.ended = &ending{state: Completed, at: c.LastTransitionTime}
		case c.Type == breezeml.JobFailed:
			s.ended = &ending{state: Failed, message: c.Message, at: c.LastTransitionTime}
		}
	}
	switch stage := job.Status.Stage; {
	case job.Spec.RunPolicy.Suspend != nil && *job.Spec.RunPolicy.Suspend:
		s.held = "spec.runPolicy.suspend is true"
	case stage == breezeml.StageWrongConfiguration:
		s.held = "WrongConfiguration: " + specError(&job.Spec)
	case stage == breezeml.StageRequeueCooldown && job.Status.CooldownTime != nil:
		s.held = "RequeueCooldown: its pods were pending for too long; it queues again at " + job.Status.CooldownTime.UTC().Format("2006-01-02 15:04:05 UTC")
		if why := stoppedByCooldown(job); why != "" {
			s.held += ". " + why
		}
	}
}

// stoppedByCooldown returns what the job's status says about the pods that were pending; empty if nothing.
func stoppedByCooldown(job *breezeml.TrainingJob) string {
	for i := range job.Status.ExecStatus.Conditions {
		if c := &job.Status.ExecStatus.Conditions[i]; c.Type == breezeml.JobRunning && c.Reason == breezeml.StoppedByCooldownReason {
			return c.Message
		}
	}
	return ""
}
