package engine

import (
	"math"
	"testing"

	"github.com/musterhq/muster/internal/engine/elastic"
)

// TestPodSetOfTooManyPodsKeepsItsSize: a pod set of more pods than can be decided on one by one starts with as many as
// fit, and neither shrinks nor grows after that.
func TestPodSetOfTooManyPodsKeepsItsSize(t *testing.T) {
	for name, tc := range map[string]struct {
		count          int32
		next, released []string
	}{
		"the most that are elastic": {elastic.MaxReplicas, []string{"resize a from 10000 to 9999 for next", "next waits: WaitingForPreemptedWorkloads"}, nil},
		"one more":                  {elastic.MaxReplicas + 1, []string{"next waits: WaitingForQuota"}, []string{"admit next in q"}},
		"as many as there can be":   {math.MaxInt32, []string{"next waits: WaitingForQuota"}, []string{"admit next in q"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, Options{}, queueOf("q", "", int64(tc.count)+1), localOf("q"), job("other", "q", 1, 1, 0, 0))
			s.happens(between("a", 1, tc.count, 0, 1))
			s.want("another arrives", s.happens(job("next", "q", 1, 1, 0, 2)), tc.next...)
			if tc.released != nil {
				s.want("quota is released", s.happens(gone("other")), tc.released...)
			}
			if tc.count == math.MaxInt32 {
				s.happens(gone("a"))
				s.happens(job("large", "q", 1, math.MaxInt32/2, 0, 3))
				s.want("it starts with less", s.happens(between("b", 1, tc.count, 0, 4)), "admit b in q, 1073741824 of 2147483647 main")
				s.want("more is released", s.happens(gone("large")))
			}
		})
	}
}
