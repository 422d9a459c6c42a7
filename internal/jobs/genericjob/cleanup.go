package genericjob

import (
	corev1 "k8s.io/api/core/v1"

	tensorstack "github.com/musterhq/muster/api/tensorstack/v1beta1"
	"github.com/musterhq/muster/internal/jobs"
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
	}
}
