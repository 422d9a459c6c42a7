package genericjob

import (
	corev1 "k8s.io/api/core/v1"

	tensorstack "github.com/musterhq/muster/api/tensorstack/v1beta1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/replicas"
)

// end ends the job. The status is written first, as what follows cannot be undone.
func (l *planner) end(o *jobs.Outcome) {
	l.plan.StatusFirst = true
	kind, reason := corev1.EventTypeNormal, tensorstack.SucceededReason
	if !o.Succeeded {
		kind, reason = corev1.EventTypeWarning, tensorstack.FailedReason
	}
	l.plan.Events = append(l.plan.Events, jobs.Event{Type: kind, Reason: reason, Message: o.Message})
}

// cleanUp deletes the pods that the clean-up policy selects, and those that may no longer run because
// the job lost its quota or has used up its time.
func (l *planner) cleanUp() {
	switch {
	case l.job.Spec.CleanUpPolicy == tensorstack.CleanUpAll:
		l.plan.DeletePods(l.roster.Pods(false))
	case l.job.Spec.CleanUpPolicy == tensorstack.CleanUpUnfinished, !l.seen.Admission.MayRun():
		l.plan.DeletePods(l.roster.Pods(true))
	case l.roster.Active() && l.timeLimitReached():
		if late := l.roster.Pods(true); len(late) > 0 {
			l.plan.DeletePods(late)
			last := len(l.plan.Writes) - 1
			l.plan.Writes[last] = l.plan.Writes[last].WithEvent(jobs.Warning(maxDurationReason, stoppedMessage))
		}
	default:
		l.plan.DeletePods(l.withoutQuota())
	}
}

// withoutQuota returns the unfinished pods that run on after the end and that the job has no quota for any more: the
// queue has given it to other jobs, as it does with an elastic type that runs. As then, the highest ranks go first.
func (l *planner) withoutQuota() []*corev1.Pod {
	var out []*corev1.Pod
	for i := range l.job.Spec.ReplicaSpecs {
		spec := &l.job.Spec.ReplicaSpecs[i]
		granted, queued := l.seen.Admission.PodSets[spec.Type]
		if !queued || !granted.Bounds(boundsOf(spec)).Elastic {
			continue
		}
		var live []*corev1.Pod
		for _, r := range l.roster.Group(spec.Type) {
			if r.Pod != nil && !replicas.IsFinished(r.Pod) && !replicas.IsTerminating(r.Pod) {
				live = append(live, r.Pod)
			}
		}
		out = append(out, live[min(len(live), int(granted.Count)):]...)
	}
	return out
}
