package latticejob

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	lattice "github.com/musterhq/muster/api/lattice/v1alpha1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/write"
	"github.com/musterhq/muster/internal/workload"
)

// Reasons of events.
const (
	submittedReason     = "JobSubmitted"
	succeededReason     = "JobSucceeded"
	failedReason        = "JobFailed"
	compileFailedReason = "CompileFailed"
	applyFailedReason   = "ApplyFailed"
	missingKindReason   = "MissingKind"
	skippedKindReason   = "KindSkipped"
	ignoredReason       = "IgnoredInSpec"
	changeReason        = "SpecChangeIgnored"
	leaveFailedReason   = "LeavingGraphFailed"
	evictedReason       = "Evicted"
	lostReason          = "VCJobGone"
)

// messageBytes bounds the message of the status: errors quote names of any length, and a status for which
// etcd has no room beside the spec would never be written.
const messageBytes = 4096

// reporter sets the status of the job, with the events of what changes in it.
type reporter struct {
	*view
	plan *jobs.Plan
}

// setStatus sets the status, and adds the event if the status is new.
func (rep *reporter) setStatus(phase lattice.JobPhase, message string, generation *int64, event ...write.Event) {
	message = workload.Cut(message, messageBytes)
	status := lattice.LatticeJobStatus{Phase: phase, Message: message, ObservedGeneration: generation}
	rep.setTimes(&status)
	if rep.job.Status.Phase != phase || rep.job.Status.Message != message {
		for _, e := range event {
			e.WithStatus = true
			rep.plan.AddEvents(e)
		}
	}
	rep.job.Status = status
}

// pend sets the status of a job that waits.
func (rep *reporter) pend(message string, event ...write.Event) {
	rep.setStatus(lattice.Pending, message, nil, event...)
}

// setTimes sets in the next status when the job began to run, and when it ended.
func (v *view) setTimes(status *lattice.LatticeJobStatus) {
	if status.Phase == lattice.Pending {
		return
	}
	before, now := &v.job.Status, metav1.NewTime(v.seen.Now).Rfc3339Copy()
	status.StartTime = before.StartTime
	switch {
	case status.Phase != lattice.Running:
		status.CompletionTime = &now
	case before.Phase != lattice.Running:
		status.StartTime = &now
	}
}

// ignoredChange returns the end of the message for a job whose spec was changed while it runs, "" if it was not.
func (v *view) ignoredChange() string {
	if ptr.Deref(v.job.Status.ObservedGeneration, v.job.Generation) == v.job.Generation {
		return ""
	}
	return fmt.Sprintf(". The spec was changed after that, to generation %d, and the change is ignored: it runs with generation %d",
		v.job.Generation, *v.job.Status.ObservedGeneration)
}

// changeEvent returns the event that a change of the spec is ignored. It is sent once, as the message is new then.
func (v *view) changeEvent() []write.Event {
	if v.ignoredChange() == "" {
		return nil
	}
	return []write.Event{write.Warning(changeReason,
		"The spec of a LatticeJob cannot be changed while it runs: the change is ignored. Make another LatticeJob")}
}
