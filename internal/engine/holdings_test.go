package engine

import (
	"testing"

	"github.com/musterhq/muster/internal/engine/quota"
)

// TestHoldingsAreWhatTheQueuesReserve: the holdings are those of the workloads that hold quota, and no others.
func TestHoldingsAreWhatTheQueuesReserve(t *testing.T) {
	s := newScene(t, Options{}, queueOf("q", "", 10), localOf("q"), job("a", "q", 1, 7, 0, 0), job("b", "q", 1, 9, 0, 1))
	fr := quota.FlavorResource{Flavor: "default", Resource: "cpu"}
	var names []string
	var sum int64
	for h := range s.engine.Holdings {
		names = append(names, h.Key.Name)
		if h.ClusterQueue != "q" {
			t.Errorf("got holding %+v, want ClusterQueue q", h)
		}
		for _, a := range h.Held {
			if s.engine.AmountName(a.Index) == fr {
				sum += a.Value
			}
		}
	}
	u, _ := s.engine.QueueUsage("q")
	if len(names) != 1 || names[0] != "a" || sum != 7 || u.Reserved[fr] != sum {
		t.Errorf("workloads %v hold %d, want only a with the reserved %v", names, sum, u.Reserved)
	}
}
