package explain

import (
	"github.com/musterhq/muster/internal/engine/calendar"
	"github.com/musterhq/muster/internal/engine/evaluate"
	"github.com/musterhq/muster/internal/engine/reason"
	"github.com/musterhq/muster/internal/engine/state"
)

// findStart sets the planned start of the workload, or else when it would start behind those with planned starts, and
// whose start it would delay now.
func (ex *explainer) findStart(found evaluate.Outcome) {
	f := ex.w.ClusterQueue.Family
	if !f.Backfills || ex.w.Class == nil || !ex.w.ClusterQueue.Waits.Backfill {
		return
	}
	if r := found.Delays; r != nil {
		ex.out.Delays = &reason.Delayed{Name: reason.Name(r.Rank.Key), At: r.At, Promised: r.IsPromise()}
	}
	var before []*state.Reservation
	for _, r := range f.Reserved {
		switch {
		case !r.IsWaiting(ex.Workloads):
		case r.Rank.Key == ex.w.Key:
			ex.out.Start = startOf(r, true)
			return
		case ex.Planner.Precedes(r.Rank, ex.w.Rank()):
			before = append(before, r)
		}
	}
	if found.Verdict == state.Hopeless && !ex.WhyHopeless(ex.probed, found).Code.ToFix() {
		before = ex.Planner.Before(ex.probed, before)
		ex.out.Start = startOf(ex.Planner.EarliestStart(ex.probed, before, calendar.Expected), false)
	}
}

// startOf returns the start as users see it, nil for none.
func startOf(r *state.Reservation, reserved bool) *reason.Start {
	if r == nil {
		return nil
	}
	out := &reason.Start{At: r.At, Promised: reserved && r.IsPromise(), Reserved: reserved}
	for _, key := range r.After {
		out.After = append(out.After, reason.Name(key))
	}
	return out
}
