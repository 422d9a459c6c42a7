package genericjob

import (
	"cmp"

	"k8s.io/utils/ptr"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	tensorstack "github.com/musterhq/muster/api/tensorstack/v1beta1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/pointers"
)

// Summary returns what lists of jobs say of a GenericJob, with the counts of pods in its status.
func Summary(job *tensorstack.GenericJob) jobs.Summary {
	s := jobs.Summary{Queue: cmp.Or(job.Labels[kueue.QueueLabel], queueOf(job)), PartName: "replicas"}
	for spec := range pointers.To(job.Spec.ReplicaSpecs) {
		s.Ask(count(spec), &spec.Template)
	}
	if counts := job.Status.Aggregate; counts != nil {
		s.Active, s.Succeeded = counts.Pending+counts.Running, counts.Succeeded
		s.Ready = min(ptr.Deref(job.Status.Ready, counts.Running), counts.Running)
	}
	for i := range job.Status.Tasks {
		s.PartRestarts += job.Status.Tasks[i].RestartCount
	}
	if begun := condition(job, tensorstack.JobInitialized); begun != nil && s.Queue == "" {
		s.StartedAt = begun.LastTransitionTime.DeepCopy()
	}
	switch outcome := outcomeOf(job); {
	case outcome != nil:
		at, message := condition(job, tensorstack.JobCompleted).LastTransitionTime, ""
		if failed := condition(job, tensorstack.JobFailed); failed != nil {
			message = failed.Message
		}
		s.End(outcome.Succeeded, "", message, at)
	case paused(job):
		s.Held = "paused: spec.runMode.pause.enabled is true"
	}
	return s
}
