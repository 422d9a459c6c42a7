package batchjob

import (
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/write"
)

// The events for a user whose change of a queued Job is reverted.
const (
	queueDecidesReason    = "QueueDecides"
	resumeRevertedMessage = "spec.suspend is true again: the queue decides when this Job runs"
	// The API server allows changes of the requests in the template of a suspended Job.
	otherPodsMessage       = "the pod template was changed after the Job was given its quota: it is queued again, for what it asks for now"
	noPodsMessage          = "spec.parallelism was 0 when the Job was given its quota: it is queued again, for the pods that it asks for now"
	limitedMessage         = "spec.parallelism is %d again: the Job has quota for as many pods; submit another Job for more"
	suspendRevertedMessage = "spec.suspend is false again: the queue decides when this Job runs; to hold it, set spec.active of its Workload to false"
)

// The event for a user whose running Job was given other nodes.
const (
	movedReason  = "Moved"
	movedMessage = "The pods of this Job are stopped and started again: it was given other nodes, and its pod template names its previous ones"
)

// plan returns what has to be done for a queued Job, given the observed state.
func plan(seen jobs.Seen[*batchv1.Job]) jobs.Plan {
	job, again := seen.Job, awaitsRestart(seen)
	p := jobs.Plan{Progress: jobs.Progress{
		// While the Job is being stopped, what its admission added still has to be removed, and its indexes to be made
		// ones that are run again.
		Active:      !jobs.HasNoPods(job) || seen.Admission.Grant == jobs.Stopping && (hasStarted(job) || again),
		Ready:       isReady(job),
		Reclaimable: map[string]int32{string(podSet): reclaimable(job)},
		Outcome:     outcome(job),
	}}
	if granted := seen.Admission.PodSets[string(podSet)]; seen.Admission.Grant == jobs.Admitted && p.Progress.Outcome == nil {
		p.Progress.Pods = podsInUse(job, granted)
		if b := admittedBounds(job, restored(job), granted); b.Elastic {
			elasticProgress(&p.Progress, job, b, granted)
		}
	}
	if again {
		p.Progress.Reclaimable = map[string]int32{string(podSet): 0}
	}
	if missing := jobs.PodsLeft(job) - job.Status.Active; missing > 0 && !suspended(job) {
		p.Due = seen.NoteRefusals(&p.Progress, job.UID, missing)
	}
	switch {
	case p.Progress.Outcome != nil:
		p.Progress.Active = !jobs.HasNoPods(job)
	case seen.Admission.Grant == jobs.Admitted:
		run(&p, seen)
	default:
		hold(&p, seen)
		p.StartedUnheld = seen.Admission.Grant == jobs.Waiting && jobs.Stops(p.Writes, job)
	}
	if p.Progress.Outcome == nil {
		mark(&p, job)
		warnOfNoRestart(&p, job)
	}
	return p
}

// mark marks the Job as one that queues for itself, so that its users cannot start it. The admission policies have done
// that at its creation, unless they came later, or the API server does not serve them.
func mark(p *jobs.Plan, job *batchv1.Job) {
	if job.Annotations[muster.QueuedAnnotation] == muster.QueuedItself {
		return
	}
	if len(p.Writes) == 0 {
		p.Writes = append(p.Writes, write.Change(job, job).DespiteStatus())
	}
	for i := range p.Writes {
		p.Writes[i] = p.Writes[i].Marked(muster.QueuedItself)
	}
}

// hold keeps the Job from running. Once none of its pods is left, it restores what the start replaced.
func hold(p *jobs.Plan, seen jobs.Seen[*batchv1.Job]) {
	switch job := seen.Job; {
	case !suspended(job) && hasStarted(job): // it was admitted before
		p.Writes = append(p.Writes, jobs.Stop(job, nil))
	case !suspended(job):
		// It holds no quota that others might get too early, and is stopped at once.
		held := job.DeepCopy()
		held.Spec.Suspend = ptr.To(true)
		change := write.Change(job, held)
		if job.Generation > 1 {
			change = change.WithEvent(write.Warning(queueDecidesReason, resumeRevertedMessage))
		}
		p.Writes = append(p.Writes, change)
	case hasStarted(job) && jobs.HasNoPods(job):
		p.Writes = append(p.Writes, rewrite(job, restoredWhole(job)))
	case isToRestart(job) && jobs.HasNoPods(job):
		restart(p, seen)
	}
}

// run starts the Job with what it was granted, and limits it to that.
func run(p *jobs.Plan, seen jobs.Seen[*batchv1.Job]) {
	job, admission := seen.Job, seen.Admission
	granted := admission.PodSets[string(podSet)]
	original, desired := restored(job), started(job, granted)
	bounds := admittedBounds(job, original, granted)
	fits := equality.Semantic.DeepEqual(job.Spec.Template, desired.Spec.Template)
	switch {
	case !admission.IsFor([]kueue.PodSet{{Name: podSet, Template: original.Spec.Template}}):
		requeue(p, job, otherPodsMessage)
	case granted.Count == 0 && jobs.PodsLeft(original) > 0:
		// It asked for no pods, so that none of those that it asks for now could ever run.
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
		p.Writes = append(p.Writes, resumed)
	case !fits && !hasStarted(job):
		// It runs without what it needs to run where its quota is.
		p.Writes = append(p.Writes, jobs.Stop(job, nil))
	case !granted.All().Reached(job.Spec.Template):
		// A repair gave it other nodes. The template can only be changed while there are no pods.
		p.Writes = append(p.Writes, jobs.Stop(job, ptr.To(write.Warning(movedReason, movedMessage))))
	case bounds.Elastic && !isSettled(job):
		resize(p, job, bounds, granted)
	case jobs.PodsLeft(job) > granted.Left:
		p.Writes = append(p.Writes, limited(job, granted, bounds.Elastic))
	case !boundsUsers(job, granted):
		noted := job.DeepCopy()
		recordGrant(noted, granted)
		p.Writes = append(p.Writes, write.Change(job, noted).DespiteStatus())
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
	var reverted *write.Event
	if !elastic || recordedIn(job).setByUser(job) {
		reverted = ptr.To(write.Warning(queueDecidesReason, fmt.Sprintf(limitedMessage, pods)))
	}
	return changeSize(job, fewer, granted, reverted)
}

// requeue stops a Job that now asks for other pods than it has quota for, and returns its quota once no pods are left.
func requeue(p *jobs.Plan, job *batchv1.Job, why string) {
	switch p.Progress.Requeue = jobs.HasNoPods(job); {
	case !suspended(job): // it was changed and resumed in one update
		p.Writes = append(p.Writes, jobs.Stop(job, nil))
	case !jobs.HasNoPods(job):
		return
	}
	p.Events = append(p.Events, write.Warning(queueDecidesReason, why))
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
		// A Job that has never run has no status that matters here, and the Job controller writes its first status
		// about now.
		return change.DespiteStatus()
	}
	return change
}
