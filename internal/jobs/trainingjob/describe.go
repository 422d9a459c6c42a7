package trainingjob

import (
	"time"

	"k8s.io/utils/ptr"

	breezeml "github.com/musterhq/muster/api/breezeml/v1"
	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/write"
	"github.com/musterhq/muster/internal/workload"
)

// describe returns what a TrainingJob asks for: one pod set of as many workers as it can use, and the minimum that it
// accepts.
func describe(job *breezeml.TrainingJob, facts jobs.Facts) jobs.Description {
	d := jobs.Description{
		Foreign: job.Spec.RunPolicy.ManagedBy != nil && *job.Spec.RunPolicy.ManagedBy != breezeml.ControllerName,
		Queue:   queueOf(job),
		Paused:  suspended(job) || mistakeOf(job) != "" || job.Status.Stage == breezeml.StageRequeueCooldown,
	}
	d.Priority, d.PriorityClass = ptr.To(job.Spec.Priority), ""
	if p := job.Spec.RunPolicy.SchedulingPolicy; p != nil && p.PriorityClass != "" && job.Spec.Priority == 0 {
		d.Priority, d.PriorityClass = nil, p.PriorityClass
	}
	if mistakeOf(job) != "" {
		return d
	}
	size := sizesOf(job)
	// A job of a single size is elastic too: it may be stopped for a higher priority, whatever the preemption policy of
	// its queue.
	podSet := kueue.PodSet{Name: worker, Count: size.most, MinCount: ptr.To(size.least), Template: templateOf(job)}
	jobs.SetNumber(&podSet.Template.ObjectMeta, muster.MinReplicasAnnotation, size.least)
	jobs.SetNumber(&podSet.Template.ObjectMeta, muster.MaxReplicasAnnotation, size.most)
	if limit := limitOf(job); job.Status.Stage == breezeml.StageRunning && limit > 0 {
		d.Wanted = max(limit, size.least)
	}
	d.QueuedTime = queuedSince(job)
	d.Limit = workload.Seconds(ptr.Deref(job.Spec.RunPolicy.ActiveDeadlineSeconds, 0))
	agent := latticeOf(job)
	agent.mark(&podSet.Template)
	if _, err := agent.withAgent(job, facts.Agent, templateOf(job), 0); err != nil {
		d.Mistake = ptr.To(write.Obstacle(jobs.InvalidJob, noAgent(err)))
	}
	d.PodSets = []kueue.PodSet{podSet}
	if wrong := jobs.RequestTopology(d.PodSets, nil); d.Mistake == nil {
		d.Mistake = wrong
	}
	return d
}

// queuedSince returns since when the job is queued, zero if it is queued only now.
func queuedSince(job *breezeml.TrainingJob) time.Time {
	switch s := &job.Status; {
	case s.Stage == breezeml.StageNone:
		return job.CreationTimestamp.Time
	case s.Stage == breezeml.StageWrongConfiguration, isTrue(job, breezeml.JobSuspended), s.QueuedTime == nil:
		return time.Time{} // the next status has the time
	}
	return job.Status.QueuedTime.Time
}
