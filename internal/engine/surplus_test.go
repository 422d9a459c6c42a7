package engine

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/engine/place"
)

// wants returns the job when it wants at most this number of pods; 0 means as many as it was admitted with.
func (s *scene) wants(name string, most int32) WorkloadSet {
	return s.changed(name, func(w *Workload) {
		w.PodSets = slices.Clone(w.PodSets)
		w.PodSets[0].Wanted = most
	})
}

// TestRejectedShrinkIsRetried: the job keeps its pods until the retry succeeds.
func TestRejectedShrinkIsRetried(t *testing.T) {
	s := newScene(t, Options{}, queueOf("q", "", 4), localOf("q"), between("job", 1, 4, 0, 0))
	s.wantSizes("only job", []string{"job"}, 4)
	s.engine.Apply(s.wants("job", 2))
	decided := s.engine.Decide(s.now)
	if len(decided) != 1 || decided[0].Resize == nil || !decided[0].Resize.Unwanted {
		t.Fatalf("got decisions %+v, want a shrink", decided)
	}
	s.want("the change is refused", s.happens(s.refused(decided[0])))
	s.now = s.now.Add(time.Minute)
	s.want("the retry time is reached", s.happens(), "resize job from 4 to 2")
}

// TestShrunkJobKeepsThePlacesOfItsPods: which of the pods run is not decided by their ranks. What is given up is free
// for others at once, as no pod is there.
func TestShrunkJobKeepsThePlacesOfItsPods(t *testing.T) {
	for _, without := range []int{0, 1, 2} {
		large := between("large", 1, 3, 0, 0)
		large.PodSets[0].PerPod["cpu"] = 4
		s := cluster(t, large)
		places := s.engine.Holds(Key{Namespace: "ns", Name: "large"}).PodSets[0].Places
		var want []place.NodeCount
		for n, at := range places {
			if n != without {
				s.happens(pod("large", n, at.Node, 4))
				want = append(want, at)
			}
		}
		s.want("the job wants what runs", s.happens(s.wants("large", 2)), "resize large from 3 to 2")
		got := slices.Clone(s.engine.Holds(Key{Namespace: "ns", Name: "large"}).PodSets[0].Places)
		slices.SortFunc(got, func(a, b place.NodeCount) int { return strings.Compare(a.Node, b.Node) })
		if !slices.Equal(got, want) {
			t.Errorf("without pod %d: places %v of %v are kept, want %v", without, got, places, want)
		}
	}
}
