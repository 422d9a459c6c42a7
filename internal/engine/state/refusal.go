package state

import (
	"time"

	"github.com/musterhq/muster/internal/engine/model"
	"github.com/musterhq/muster/internal/engine/reason"
)

// Refusal is the API server's rejection of a change to a workload's status, for one generation.
type Refusal struct {
	Message    string
	Generation int64
	Kind       changeKind
	// Times counts the rejections. waiting is set until the next try.
	Times   int
	Waiting bool
	// Proven is set by a trial of the admission that succeeded since the rejection.
	Proven bool
}

// ReportedRefusal returns the rejection of the admission that the status of a workload tells of.
func ReportedRefusal(w *model.Workload) Refusal {
	word, is := reason.RefusalIn(w.ReportedMessage)
	if w.ReportedCode != reason.Inadmissible || !is {
		return Refusal{}
	}
	return Refusal{Message: word, Generation: w.Generation, Kind: admissionChange, Times: 1}
}

// MustTry reports whether the workload's admission must be tried before any other workload is stopped for it.
func (w *Workload) MustTry() bool {
	r := &w.Refusal
	return r.Times > 0 && r.Kind == admissionChange && r.Generation == w.Generation && !r.Proven
}

// changeKind is the kind of change that was rejected.
type changeKind int

const (
	// admissionChange gives quota to a workload without any.
	admissionChange changeKind = iota
	// ReductionChange takes all or part of a workload's quota.
	ReductionChange
	// growthChange makes a workload larger.
	growthChange
	// PlacesChange gives a workload other places.
	PlacesChange
)

// AssumedChange returns the kind of change that the workload's assumption is.
func (w *Workload) AssumedChange() changeKind {
	switch {
	case w.Assumed == Admits, w.Assumed == Tries:
		return admissionChange
	case w.Assumed == Replaces:
		return PlacesChange
	case w.Assumed == Resizes && w.Before != nil && w.Held.Pods() > w.Before.Pods():
		return growthChange
	}
	return ReductionChange
}

// InForce reports whether the rejected kind of change must not be decided for that generation now.
func (r *Refusal) InForce(generation int64) bool { return r.Waiting && r.Generation == generation }

// IsRefused reports whether no change of the kind may be decided for the workload now.
func (w *Workload) IsRefused(of changeKind) bool {
	return w.Refusal.Kind == of && w.Refusal.InForce(w.Generation)
}

// Why returns the reason to wait because of the rejection.
func (r *Refusal) Why() reason.Reason { return reason.RefusedAdmission(r.Message) }

// A rejected decision is tried again: a policy or a quota of the API server may have caused the rejection, and may be
// fixed without a change of the workload. The first try comes after firstRetry, each later one after twice the delay,
// up to LongestRetry.
//
// Until then, a workload that could not be evicted or shrunk is left alone: no other waits for what it has, and other
// victims are chosen. A workload that could not be grown or given other places gets no such decision, but can be
// evicted or shrunk as usual.
const (
	firstRetry   = time.Second
	LongestRetry = 5 * time.Minute
)

// RetryAfter returns the delay after so many rejections.
func RetryAfter(times int) time.Duration {
	wait := firstRetry
	for range times - 1 {
		if wait *= 2; wait >= LongestRetry {
			return LongestRetry
		}
	}
	return wait
}
