package trainingjob

import (
	"cmp"
	"fmt"

	"k8s.io/utils/ptr"

	breezeml "github.com/musterhq/muster/api/breezeml/v1"
	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/jobs"
)

// Summary returns what lists of jobs say of a TrainingJob, with the counts of pods in its status. Until the job has a
// size it asks for its maximum.
func Summary(job *breezeml.TrainingJob) jobs.Summary {
	size := sizesOf(job)
	s := jobs.Summary{Queue: cmp.Or(job.Labels[kueue.QueueLabel], queueOf(job), muster.DefaultQueue), PartName: "workers"}
	s.Least = max(0, size.least)
	s.Most = max(s.Least, size.most)
	s.Ask(cmp.Or(job.Status.CurrentSize, s.Most), &job.Spec.ReplicaSpecs.Template)
	counts := job.Status.ExecStatus.ReplicaStatuses[breezeml.WorkerStatuses]
	s.Active, s.Ready, s.Succeeded = counts.Active, ptr.Deref(counts.Ready, counts.Active), counts.Succeeded
	for _, n := range job.Status.Restarts {
		s.PartRestarts += n
	}
	if limit := job.Status.SizeLimit; limitOf(job) > 0 && job.Status.Stage == breezeml.StageRunning {
		s.Partial = fmt.Sprintf("goes on with %d workers until %s: %s", limit.Workers,
			limit.Until.UTC().Format("15:04:05 UTC"), limit.Message)
	}
	if outcome := outcomeOf(job); outcome != nil {
		s.Ready = 0 // the status keeps the counts of the time of the end
		kind := breezeml.JobSucceeded
		if !outcome.Succeeded {
			kind = breezeml.JobFailed
		}
		s.End(outcome.Succeeded, "", outcome.Message, condition(job, kind).LastTransitionTime)
	}
	s.Held = heldBy(job)
	s.NoteManager(job.Spec.RunPolicy.ManagedBy, breezeml.ControllerName)
	return s
}

// heldBy says what holds the job apart from its queue, "" if nothing does.
func heldBy(job *breezeml.TrainingJob) string {
	switch stage := job.Status.Stage; {
	case suspended(job):
		return "spec.runPolicy.suspend is true"
	case stage == breezeml.StageWrongConfiguration:
		return "WrongConfiguration: " + mistakeOf(job)
	case stage == breezeml.StageRequeueCooldown && job.Status.CooldownTime != nil:
		held := "RequeueCooldown: its pods were pending for too long; it queues again at " +
			job.Status.CooldownTime.UTC().Format(timeFormat)
		if c := condition(job, breezeml.JobRunning); c != nil && c.Reason == breezeml.StoppedByCooldownReason &&
			c.Message != "" {
			held += ". " + c.Message
		}
		return held
	}
	return ""
}
