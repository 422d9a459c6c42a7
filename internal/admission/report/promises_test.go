package report

import (
	"testing"

	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/metrics/metricstest"
)

// TestEachPromiseIsCountedOnce: the engine says how many there were since it began.
func TestEachPromiseIsCountedOnce(t *testing.T) {
	before := metricstest.Values(t)
	var p Promises
	p.Count(0, nil)
	p.Count(2, map[engine.LateCause]int{engine.LateByNodes: 1})
	p.Count(2, map[engine.LateCause]int{engine.LateByNodes: 1})
	p.Count(5, map[engine.LateCause]int{engine.LateByNodes: 3, engine.LateByLimit: 1})
	after := metricstest.Values(t)
	for name, want := range map[string]float64{
		"muster_promised_starts_kept_total":                            5,
		"muster_promised_starts_delayed_total{cause=NodesChanged}":     3,
		"muster_promised_starts_delayed_total{cause=LimitNotEnforced}": 1,
		"muster_promised_starts_delayed_total{cause=QuotaChanged}":     0,
	} {
		if got := after[name] - before[name]; got != want {
			t.Errorf("%s grew by %v, want %v", name, got, want)
		}
	}
}
