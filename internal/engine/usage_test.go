package engine

import (
	"math"
	"testing"

	"github.com/musterhq/muster/internal/engine/quota"
)

// TestGiganticUsageIsCountedAndReleased: the reported usage saturates, and is exact again after releases.
func TestGiganticUsageIsCountedAndReleased(t *testing.T) {
	s := newScene(t, Options{}, queueOf("q", "", quota.Unlimited), localOf("q"), job("a", "q", 1, 7, 0, 0))
	for _, name := range []string{"b", "c", "d"} { // admitted before the quota was reduced
		gigantic := job(name, "q", 1, math.MaxInt64/2, 0, 1)
		gigantic.Admission = &Admission{ClusterQueue: "q", PodSets: []Assignment{{PodSet: "main", Count: 1,
			Flavors: map[string]string{"cpu": "default"}, Usage: map[string]int64{"cpu": math.MaxInt64 / 2}}}}
		gigantic.Admitted = true
		s.happens(gigantic)
	}
	of := func() (reserved, used int64) {
		u, _ := s.engine.QueueUsage("q")
		fr := quota.FlavorResource{Flavor: "default", Resource: "cpu"}
		return u.Reserved[fr], u.Used[fr]
	}
	if reserved, used := of(); reserved != math.MaxInt64 || used != math.MaxInt64 {
		t.Errorf("reserved %d, used %d, want the largest int64", reserved, used)
	}
	s.happens(gone("b"), gone("c"), gone("d"))
	if reserved, used := of(); reserved != 7 || used != 7 {
		t.Errorf("reserved %d, used %d, want 7, the usage of a", reserved, used)
	}
}
