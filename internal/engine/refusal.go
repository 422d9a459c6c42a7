package engine

import (
	"github.com/musterhq/muster/internal/engine/reason"
)

// refusal is the API server's rejection of a change to a workload's status, for one generation.
type refusal struct {
	message    string
	generation int64
	kind       changeKind
	// times counts the rejections. waiting is set until the next try.
	times   int
	waiting bool
	// proven is set by a trial of the admission that succeeded since the rejection.
	proven bool
}

// reportedRefusal returns the rejection of the admission that the status of a workload tells of.
func reportedRefusal(w *Workload) refusal {
	word, is := reason.RefusalIn(w.ReportedMessage)
	if w.ReportedCode != reason.Inadmissible || !is {
		return refusal{}
	}
	return refusal{message: word, generation: w.Generation, kind: admissionChange, times: 1}
}

// mustTry reports whether the workload's admission must be tried before any other workload is stopped for it.
func (w *workload) mustTry() bool {
	r := &w.refusal
	return r.times > 0 && r.kind == admissionChange && r.generation == w.Generation && !r.proven
}

// changeKind is the kind of change that was rejected.
type changeKind int

const (
	// admissionChange gives quota to a workload without any.
	admissionChange changeKind = iota
	// reductionChange takes all or part of a workload's quota.
	reductionChange
	// growthChange makes a workload larger.
	growthChange
	// placesChange gives a workload other places.
	placesChange
)

// assumedChange returns the kind of change that the workload's assumption is.
func (w *workload) assumedChange() changeKind {
	switch {
	case w.assumed == admits, w.assumed == tries:
		return admissionChange
	case w.assumed == replaces:
		return placesChange
	case w.assumed == resizes && w.before != nil && w.held.Pods() > w.before.Pods():
		return growthChange
	}
	return reductionChange
}

// inForce reports whether the rejected kind of change must not be decided for that generation now.
func (r *refusal) inForce(generation int64) bool { return r.waiting && r.generation == generation }

// isRefused reports whether no change of the kind may be decided for the workload now.
func (w *workload) isRefused(of changeKind) bool {
	return w.refusal.kind == of && w.refusal.inForce(w.Generation)
}

func (r *refusal) why() reason.Reason { return reason.RefusedAdmission(r.message) }
