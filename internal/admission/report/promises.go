package report

import (
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/metrics"
)

var (
	promisesKept = metrics.NewCounter("muster_promised_starts_kept_total",
		"Promised starts that were kept: a start is promised where it rests on limits alone.").WithLabelValues()
	promisesDelayed = metrics.NewCounter("muster_promised_starts_delayed_total",
		"Promised starts that were delayed by more than a minute: a job ran beyond its limit (LimitNotEnforced), the limit of a job was raised while it ran (LimitRaised), stopped pods took longer than a minute to end (PodsTerminating), quota or cohorts were changed (QuotaChanged), nodes were lost or changed (NodesChanged), or a workload of a higher priority went before (HigherPriority). Unexplained is none of these, and a bug of Muster's.",
		"cause")
)

// Promises counts the promised starts of an engine. The zero value has counted none.
type Promises struct {
	kept    int
	delayed map[engine.LateCause]int
}

// Count counts the promises of which the engine says that they were kept, or delayed, by cause, since it began.
func (p *Promises) Count(kept int, delayed map[engine.LateCause]int) {
	if kept > p.kept {
		promisesKept.Add(float64(kept - p.kept))
		p.kept = kept
	}
	for cause, n := range delayed {
		if n <= p.delayed[cause] {
			continue
		}
		promisesDelayed.WithLabelValues(string(cause)).Add(float64(n - p.delayed[cause]))
		if p.delayed == nil {
			p.delayed = map[engine.LateCause]int{}
		}
		p.delayed[cause] = n
	}
}
