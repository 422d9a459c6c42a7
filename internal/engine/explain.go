package engine

import (
	"math"
	"time"

	"github.com/musterhq/muster/internal/engine/explain"
	"github.com/musterhq/muster/internal/engine/reason"
	"github.com/musterhq/muster/internal/engine/state"
)

// Arrange applies changes of queues, cohorts and namespaces to the state, as Decide does first, but decides nothing.
// An engine that is only used for Explain needs it once all events are applied; now is the time that it explains.
func (e *Engine) Arrange(now time.Time) {
	e.growths.Now, e.starts.runs.Now = now.Round(0), now.Round(0)
	if e.reshaped {
		e.reshape()
	}
	e.newPass(math.MaxInt).reroute()
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
