package batchjob

import (
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/write"
)

// run starts the Job with the quota and places that it was granted, and limits it to them.
func run(p *jobs.Plan, seen jobs.Seen[*batchv1.Job]) {
	job, admission := seen.Job, seen.Admission
	granted := admission.PodSets[string(podSet)]
	original, desired := restored(job), started(job, granted, seen.Facts.Agent)
	bounds := admittedBounds(job, original, granted)
	fits := equality.Semantic.DeepEqual(job.Spec.Template, desired.Spec.Template)
	switch {
	case !admission.IsFor([]kueue.PodSet{{Name: podSet, Template: original.Spec.Template}}):
		requeue(p, job, otherPodsMessage)
	case granted.Count == 0 && jobs.PodsLeft(original) > 0:
		// It asked for no pods when it was admitted: no pod that it asks for now could ever run.
		requeue(p, job, noPodsMessage)
	case suspended(job):
		if !admission.MayStart() || !fits && !jobs.HasNoPods(job) {
			return // the template of a Job with pods cannot be changed
		}
		if awaitsRestart(seen) {
			if jobs.HasNoPods(job) {
				restart(p, seen)
			}
			return
		}
		resumed := rewrite(job, desired)
		if hasStarted(job) && fits {
			resumed = resumed.WithEvent(write.Warning(queueDecidesReason, suspendRevertedMessage))
		}
		p.Add(resumed)
	case !fits && !hasStarted(job):
		// It runs without the node selectors of its quota.
		p.Add(jobs.Stop(job))
	case !granted.All().Reached(job.Spec.Template):
		// A repair gave it other nodes. The template can only be changed while there are no pods.
		p.Add(jobs.Stop(job, write.Warning(movedReason, movedMessage)))
	case bounds.Elastic && !isSettled(job):
		resize(p, job, bounds, granted)
	case jobs.PodsLeft(job) > granted.Left:
		p.Add(limited(job, granted, bounds.Elastic))
	case !boundsUsers(job, granted):
		noted := job.DeepCopy()
		recordGrant(noted, granted)
		p.Add(write.Change(job, noted).DespiteStatus())
	}
}

// limited lets no more pods of a running Job run at once than it has quota for. The queue may have taken some of an
// elastic one, which is not its user's doing then.
func limited(job *batchv1.Job, granted jobs.PodSetAdmission, elastic bool) write.Write {
	pods, fewer := granted.Left, job.DeepCopy()
	fewer.Spec.Parallelism = ptr.To(pods)
	recordGrant(fewer, granted)
	if elastic {
		recordReplaced(fewer, replaced(restored(job), fewer).sized(pods).keeping(recordedIn(job)))
	}
	var reverted []write.Event
	if !elastic || recordedIn(job).setByUser(job) {
		reverted = []write.Event{write.Warning(queueDecidesReason, fmt.Sprintf(limitedMessage, pods))}
	}
	return changeSize(job, fewer, granted, reverted...)
}

// requeue stops a Job that now asks for other pods than it has quota for, and returns its quota once no pods are left.
func requeue(p *jobs.Plan, job *batchv1.Job, why string) {
	switch p.Progress.Requeue = jobs.HasNoPods(job); {
	case !suspended(job): // it was changed and resumed in one update
		p.Add(jobs.Stop(job))
	case !jobs.HasNoPods(job):
		return
	}
	p.AddEvents(write.Warning(queueDecidesReason, why))
}

// rewrite changes what may be changed while the Job is suspended and has no pods. API servers before 1.36 allow changes
// of the template only if status.startTime is not set, and require the Job's owner to reset it; later ones reset it
// themselves.
func rewrite(job, desired *batchv1.Job) write.Write {
	if job.Status.StartTime != nil && !equality.Semantic.DeepEqual(job.Spec.Template, desired.Spec.Template) {
		unstarted := job.DeepCopy()
		unstarted.Status.StartTime = nil
		return write.ChangeStatus(job, unstarted)
	}
	change := write.Change(job, desired)
	if job.Generation <= 1 {
		// A Job that has never run has no status that matters here, and the Job controller writes its first status about now.
		return change.DespiteStatus()
	}
	return change
}

// The event for a user whose running Job was given other nodes.
const (
	movedReason  = "Moved"
	movedMessage = "The pods of this Job are stopped and started again: it was given other nodes, and its pod template names its previous ones"
)
