package engine

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/engine/flavor"
	"github.com/musterhq/muster/internal/engine/place"
	"github.com/musterhq/muster/internal/engine/preempt"
)

// wants returns the job when it wants at most this number of pods; 0 means as many as it was admitted with.
func (s *scene) wants(name string, most int32) WorkloadSet {
	return s.changed(name, func(w *Workload) {
		w.PodSets = slices.Clone(w.PodSets)
		w.PodSets[0].Wanted = most
	})
}

// TestUnwantedPodsAreGivenToOthers: the quota of unwanted pods is given to others once they are gone. The job grows
// again if it wants more, into what is free then.
func TestUnwantedPodsAreGivenToOthers(t *testing.T) {
	s := newScene(t, Options{}, queueOf("q", "", 4), localOf("q"), between("job", 1, 4, 0, 0))
	s.wantSizes("only job", []string{"job"}, 4)
	s.happens(between("other", 1, 1, -1, 1))
	s.want("the job wants fewer pods", s.happens(s.wants("job", 2)), "resize job from 4 to 2", "other waits: WaitingForPreemptedWorkloads")
	s.want("its surplus pods are gone", s.happens(s.shrunk("job")), "admit other in q")
	s.now = s.now.Add(time.Hour)
	s.want("the retry time passes", s.happens())
	s.want("the job wants one more pod", s.happens(s.wants("job", 3)), "resize job from 2 to 3")
	s.now = s.now.Add(time.Hour)
	s.want("the job wants all its pods", s.happens(s.wants("job", 0)), "evict other for job: in queue")
}

// TestGrowthTakesOnceFromEachJob: what a job gave up again it does not take from the same one twice, or there might be no
// end.
func TestGrowthTakesOnceFromEachJob(t *testing.T) {
	both := []string{"high", "low"}
	s := newScene(t, Options{}, queueOf("q", "", 4), localOf("q"), between("low", 1, 3, 0, 0))
	s.happens(between("high", 1, 3, 1, 1))
	s.wantSizes("high takes from low", both, 3, 1)
	s.happens(s.wants("high", 1))
	s.wantSizes("high gives it up", both, 1, 3)
	s.happens(s.wants("high", 0))
	s.wantSizes("high wants it again", both, 1, 3)
}

// TestJobThatWantsLessThanItsMinimumKeepsThat: a job keeps its admitted minimum, below which the API server rejects a
// count.
func TestJobThatWantsLessThanItsMinimumKeepsThat(t *testing.T) {
	s := newScene(t, Options{}, queueOf("q", "", 4), localOf("q"), between("job", 3, 4, 0, 0))
	s.wantSizes("only job", []string{"job"}, 4)
	s.want("the job wants one pod", s.happens(s.wants("job", 1)), "resize job from 4 to 3")
	s.happens(s.shrunk("job"))
	s.want("a job of equal priority needs everything", s.happens(between("other", 4, 4, 0, 1)), "other waits: WaitingForQuota")
	s.want("the job wants all its pods again", s.happens(gone("other"), s.wants("job", 0)), "resize job from 3 to 4")
}

// TestNewEngineShrinksJobsThatWantLess: a new engine shrinks jobs that wanted less while none ran.
func TestNewEngineShrinksJobsThatWantLess(t *testing.T) {
	s := newScene(t, Options{}, queueOf("q", "", 4), localOf("q"), between("job", 1, 4, 0, 0))
	s.wantSizes("only job", []string{"job"}, 4)
	s.engine = New(Options{})
	s.want("the engine starts", s.happens(queueOf("q", "", 4), localOf("q"), s.wants("job", 2)), "resize job from 4 to 2")
	s.want("nothing else changes", s.happens())
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

// TestShrunkJobKeepsThePlacesOfItsPods: which of the pods run is not decided by their ranks. What is given up is free for
// others at once, as no pod is there.
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

// TestTiedJobGivesUpUnwantedPods: the size of a job whose pods are in slices, or placed with another pod set, changes only
// as the job wants: it gives the quota of its last pods back, and is not resized for others.
func TestTiedJobGivesUpUnwantedPods(t *testing.T) {
	for name, topology := range map[string]flavor.TopologyRequest{
		"in slices":            {Slices: []place.Slice{{Level: rack, Size: 2}}},
		"with another pod set": {Level: rack, Group: "g"},
	} {
		t.Run(name, func(t *testing.T) {
			tied := between("tied", 1, 4, 0, 0)
			tied.PodSets[0].PerPod["cpu"], tied.PodSets[0].Topology = 4, &topology
			tied.PodSets = append(tied.PodSets, PodSet{Name: "leader", Count: 1, PerPod: map[string]int64{}, Topology: &topology})
			if topology.Group == "" {
				tied.PodSets = tied.PodSets[:1]
			}
			s := cluster(t, tied)
			for n, at := range s.engine.Holds(Key{Namespace: "ns", Name: "tied"}).PodSets[0].Places {
				s.happens(pod("tied", n, at.Node, 4))
			}
			s.want("another job needs a node", s.happens(job("one", "q", 1, 4, 0, 1)), "one waits: TopologyPlacementFailed")
			s.want("the job wants fewer pods", s.happens(s.wants("tied", 3)), "resize tied from 4 to 3", "one waits: WaitingForPreemptedWorkloads")
			s.want("its last pod is gone", s.happens(s.shrunk("tied"), podGone("tied", 3)), "admit one in q")
			s.now = s.now.Add(time.Hour)
			s.want("the job wants all its pods and there is capacity", s.happens(gone("one"), s.wants("tied", 0)))
		})
	}
}

// TestWhatOthersGiveUpGoesToGrowthFirst: what a job does not take from another twice, one of lower priority does not
// take in its place, only to be stopped for the first.
func TestWhatOthersGiveUpGoesToGrowthFirst(t *testing.T) {
	both, q := []string{"high", "low"}, queueOf("q", "", 4)
	q.Preemption.WithinQueue = preempt.LowerPriority
	s := newScene(t, Options{}, q, localOf("q"), between("low", 1, 3, 0, 0))
	s.happens(between("high", 1, 3, 1, 1))
	s.wantSizes("high starts at the cost of low", both, 3, 1)
	for _, size := range []int32{3, 1} {
		s.happens(s.wants("high", 1))
		s.wantSizes("high gives it up", both, 1, 3)
		s.happens(s.wants("high", 0))
		s.wantSizes("high wants it again", both, size, 4-size)
	}
	s.want("one of the priority of low arrives", s.happens(between("next", 1, 2, 0, 2)), "next waits: WaitingForQuota")
}
