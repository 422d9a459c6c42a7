package engine

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/musterhq/muster/internal/engine/calendar"
	"github.com/musterhq/muster/internal/engine/durations"
	"github.com/musterhq/muster/internal/engine/evaluate"
	"github.com/musterhq/muster/internal/engine/growth"
	"github.com/musterhq/muster/internal/engine/order"
	"github.com/musterhq/muster/internal/engine/plan"
	"github.com/musterhq/muster/internal/engine/state"
	"github.com/musterhq/muster/internal/engine/waiting"
)

// For the first workloads in order that do not fit, a start is planned: the earliest time at which quota and nodes
// hold them if all others end as expected. Who comes after them passes only if that delays none of these starts. The
// first of these starts is a promise if it rests on limits alone. Example: a queue of 4 GPUs runs a job of 3 with an
// hour left; large wants 4 and is promised a start in an hour; small wants 1 and passes if its own limit is below an
// hour.

// starts is what starts are planned with, and what was promised.
type starts struct {
	runs    *plan.Runs
	planner *plan.Planner
	// most is for how many workloads of a family a start is planned.
	most int
	// families are those that may have promised starts; kept and late count the promises that were kept, and those that
	// were delayed, by cause.
	families map[string]*state.Family
	late     map[LateCause]int
	kept     int
	// planned are the families whose starts were planned and not promised yet.
	planned sets.Set[*state.Family]
	// moves counts the changes of planned starts on nodes.
	moves int
}

// LateCause is why a promised start was delayed.
type LateCause string

const (
	// LateByLimit: a workload ran beyond its limit, which nobody enforced.
	LateByLimit LateCause = "LimitNotEnforced"
	// LateByRaise: the limit of a workload was raised while it ran.
	LateByRaise LateCause = "LimitRaised"
	// LateByPods: pods that were stopped took longer than lateAfter to end.
	LateByPods LateCause = "PodsTerminating"
	// LateByQuota: quota, or the order of cohorts, was changed.
	LateByQuota LateCause = "QuotaChanged"
	// LateByNodes: nodes were lost or changed.
	LateByNodes LateCause = "NodesChanged"
	// LateByPriority: a workload that came later, and goes before it, was admitted.
	LateByPriority LateCause = "HigherPriority"
	// LateByDefect: none of these. It shows a defect of the engine.
	LateByDefect LateCause = "Unexplained"
)

// lateAfter is how much later than promised a start may be: pods need time to terminate.
const lateAfter = time.Minute

func newStarts(evaluator *evaluate.Evaluator, growths *growth.Growths) *starts {
	runs := &plan.Runs{Workloads: evaluator.Workloads, Learned: durations.NewLearner()}
	s := &starts{runs: runs, planner: &plan.Planner{Evaluator: evaluator, Runs: runs},
		most: max(1, evaluator.Options.Reservations), planned: sets.New[*state.Family](), late: map[LateCause]int{}}
	evaluator.Starts, growths.Delays = s.planner, s.planner.DelayedByGrowth
	return s
}

// Start is the planned start of a waiting workload.
type Start struct {
	At time.Time
	// Promised says that it rests on limits alone.
	Promised bool
	// After are the last workloads on whose ends it depends.
	After []Key
}

// PlannedStart returns the planned start of the workload; ok is false if none is planned.
func (s *starts) PlannedStart(key Key) (_ Start, ok bool) {
	w := s.runs.Workloads[key]
	if w == nil || w.Class == nil || w.ClusterQueue.Family == nil {
		return Start{}, false
	}
	for _, r := range w.ClusterQueue.Family.Reserved {
		if r.Rank.Key == key && r.IsWaiting(s.runs.Workloads) {
			return Start{At: later(r.At, s.runs.Now), Promised: r.IsPromise(), After: r.After}, true
		}
	}
	return Start{}, false
}

// later returns the later one of two times.
func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// Promises yields the workloads that wait with a promised start, and that start, in no particular order.
func (s *starts) Promises(yield func(Key, time.Time) bool) {
	for _, f := range s.families {
		for key, w := range f.Promised {
			if !w.Promised.Void && !yield(key, w.Promised.At) {
				return
			}
		}
	}
}

// PromisesKept returns how many promised starts were kept.
func (s *starts) PromisesKept() int { return s.kept }

// PromisesLate returns how many promised starts were delayed, by cause.
func (s *starts) PromisesLate() map[LateCause]int { return s.late }

// listOnNodes lists the planned starts on nodes of all families.
func (s *starts) listOnNodes(families map[string]*state.Family) {
	all := s.planner.Reserved[:0]
	for _, f := range families {
		for _, planned := range f.Reserved {
			if planned.OnNodes {
				all = append(all, planned)
			}
		}
	}
	slices.SortFunc(all, func(a, b *state.Reservation) int { return order.Compare(a.Rank, b.Rank) })
	s.planner.Reserved = all
}

// checkLate counts the promise of the workload if its start is late, once. It reports whether it did so now.
func (s *starts) checkLate(w *state.Workload) bool {
	p := w.Promised
	if p == nil || p.Late || !s.runs.Now.After(p.At.Add(lateAfter)) {
		return false
	}
	p.Late = true
	s.late[s.whyLate(w)]++
	return true
}

// whyLate returns why a promised start is late.
func (s *starts) whyLate(w *state.Workload) LateCause {
	p := w.Promised
	switch {
	case s.anyOverdue(w.ClusterQueue.Family.Calendar, p) || s.anyOverdue(s.runs.OnNodes, p):
		return LateByLimit
	case p.Overtaken:
		return LateByPriority
	case s.anyLeaving(w.ClusterQueue.Family):
		return LateByPods
	case p.Limits != s.runs.Raised:
		return LateByRaise
	case p.Nodes != s.planner.Evaluator.Nodes.NodesVersion:
		return LateByNodes
	case p.Quota != w.ClusterQueue.Revision:
		return LateByQuota
	}
	return LateByDefect
}

// anyOverdue reports whether a workload runs beyond a limit that it had not reached yet when the start was promised.
func (s *starts) anyOverdue(c *calendar.Calendar, p *state.Promise) bool {
	return slices.ContainsFunc(c.Overdue(s.runs.Now.Add(-lateAfter/2)),
		func(limit time.Time) bool { return limit.After(p.Made) })
}

// anyLeaving reports whether a workload is being stopped whose quota or nodes a workload of the family could use.
func (s *starts) anyLeaving(f *state.Family) bool {
	for _, w := range s.runs.Workloads {
		if w.Leaving() && w.ClusterQueue != nil && (w.ClusterQueue.Family == f || w.Placed.By != nil) {
			return true
		}
	}
	return false
}

// confirmed notes that the admission of a workload was stored: its promise was kept, unless it was late.
func (s *starts) confirmed(w *state.Workload) {
	if p := w.Admitting; p != nil && !p.Late {
		s.kept++
	}
	w.Admitting = nil
}

// revoked notes that the admission of a workload was not stored: it waits with its promise again.
func (s *starts) revoked(w *state.Workload) {
	if w.Promised, w.Admitting = w.Admitting, nil; w.Promised != nil {
		s.list(w)
	}
}

// list lists the workload with its promise in its family. If its queue plans no starts, the promise is forgotten.
func (s *starts) list(w *state.Workload) {
	if q := w.ClusterQueue; q != nil && q.Family != nil && q.Family.Backfills && q.Waits.Backfill {
		q.Family.Promised[w.Key] = w
	} else {
		s.forget(w)
	}
}

// admitted notes that a workload is being admitted: its own promise is over once that is confirmed, and those of
// workloads that came before it, and go after it, were overtaken.
func (s *starts) admitted(w *state.Workload) {
	if promise := w.Promised; promise != nil {
		s.checkLate(w)
		s.forget(w)
		w.Admitting = promise
	}
	overtakes := func(other *state.Workload) {
		if other.Promised != nil && order.Compare(w.Rank(), other.Rank()) < 0 {
			other.Promised.Overtaken = true
		}
	}
	if f := w.ClusterQueue.Family; f != nil {
		for _, other := range f.Promised {
			overtakes(other)
		}
	}
	for _, planned := range s.planner.Reserved {
		if other := s.runs.Workloads[planned.Rank.Key]; other != nil {
			overtakes(other)
		}
	}
}

// restart notes that families have changed: promises stay, whatever is planned anew, but not those of queues that plan
// no starts any more.
func (s *starts) restart(families map[string]*state.Family) {
	s.families = families
	for _, w := range s.runs.Workloads {
		if w.Promised != nil {
			s.list(w)
		}
	}
	s.runs.Restart(families)
	s.listOnNodes(families)
}

// forget forgets the promise of the workload.
func (s *starts) forget(w *state.Workload) {
	if w.Promised = nil; w.ClusterQueue != nil && w.ClusterQueue.Family != nil {
		delete(w.ClusterQueue.Family.Promised, w.Key)
	}
}

// replanDue puts the families on the agenda whose planned starts may have changed by now.
func (s *starts) replanDue(timers *waiting.Timers, now time.Time) {
	for {
		key, due := timers.Take(waiting.Replan, now)
		if !due {
			return
		}
		s.families[key.Name].Enqueue()
	}
}
