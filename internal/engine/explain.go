package engine

import (
	"maps"
	"math"
	"slices"
	"time"

	"github.com/musterhq/muster/internal/engine/explain"
	"github.com/musterhq/muster/internal/engine/reason"
	"github.com/musterhq/muster/internal/engine/state"
)

// Arrange applies changes of queues, cohorts and namespaces to the state, as Decide does first, but decides nothing.
func (e *Engine) Arrange(now time.Time) {
	e.growths.Now, e.starts.runs.Now = now.Round(0), now.Round(0)
	if e.reshaped {
		e.reshape()
	}
	e.newPass(math.MaxInt).reroute()
}

// PlanStarts plans the starts of the workloads that do not fit, up to the first in each queue that does, and decides
// nothing. An engine that is only used for Explain needs it once all events are applied and arranged. Starts on nodes
// depend on those of other families, so all are planned twice.
func PlanStarts(e *Engine) {
	p := e.newPass(math.MaxInt)
	for range 2 {
		for _, name := range slices.Sorted(maps.Keys(e.families)) {
			if f := e.families[name]; f.Backfills {
				f.UpdateHoldBacks()
				f.Waits.Settle()
				e.holdBacks.ChargeAll(f)
				p.reservations.update(f)
				for _, q := range f.Queues {
					p.headOf(q)
				}
				e.holdBacks.ReleaseAll(f)
			}
		}
	}
}

// Explain explains the state of the workload, with current numbers; ok is false if there is no such workload. It
// changes nothing. If its queue has changed since the last Decide or Arrange, the explanation says only that.
func (e *Engine) Explain(key Key) (explanation reason.Explanation, ok bool) {
	w := e.workloads[key]
	if w == nil {
		return reason.Explanation{}, false
	}
	return explain.Explain(explain.View{Evaluator: e.evaluator, HoldBacks: e.holdBacks, Planner: e.starts.planner,
		Changed:  func(q *state.ClusterQueue) bool { return e.reshaped || e.routing.changed.Has(q.Name) },
		MustWait: e.tallies.mustWait, WhyInadmissible: e.whyInadmissible}, w), true
}
