package engine

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/engine/place"
	"github.com/musterhq/muster/internal/engine/reason"
)

// full returns a scene of four nodes in two racks, all in use: by the gang "high", of two pods in no rack in particular,
// and by "low1" and "low2" of lower priority. at are the nodes of the gang.
func full(t *testing.T, rules ...Event) (s *scene, at []string) {
	q := evicting(queueOf("q", "", 16), lower)
	s = newScene(t, Options{}, slices.Concat(onNodes, []Event{q, localOf("q"), node("a1", "a", 4), node("a2", "a", 4), node("b1", "b", 4), node("b2", "b", 4)}, rules)...)
	s.happens(job("high", "q", 2, 4, 5, 0))
	for n, place := range s.places("high") {
		at = append(at, place[:2])
		s.happens(pod("high", n, at[n], 4))
	}
	for n, low := range []string{"low1", "low2"} {
		s.happens(job(low, "q", 1, 4, 0, n+1))
		s.happens(pod(low, 0, s.places(low)[0][:2], 4))
	}
	return s, at
}

// TestAGangThatLostANodeReplacesItByPreemption: it keeps the pod that it still has, one other workload makes way, and
// nobody else gets what that leaves.
func TestAGangThatLostANodeReplacesItByPreemption(t *testing.T) {
	s, at := full(t)
	got := s.happens(NodeDeleted{at[0]}, podGone("high", 0))
	if len(got) != 1 || !strings.HasPrefix(got[0], "evict low") || !strings.HasSuffix(got[0], "for high: in queue") {
		t.Fatalf("decisions after a node is deleted = %q, want one eviction for high", got)
	}
	s.wantPlaces("high", at[0]+":1", at[1]+":1")
	var victim string
	fmt.Sscanf(got[0], "evict %s for", &victim)
	x, _ := s.engine.Explain(Key{Namespace: "ns", Name: "high"})
	if want := (&reason.Replacing{Pods: 1, Lost: at[:1], Awaits: []reason.Name{{Namespace: "ns", Name: victim}}}); !reflect.DeepEqual(x.Replacing, want) {
		t.Errorf("explanation says that it is replacing %+v, want %+v", x.Replacing, want)
	}
	taken := s.places(victim)[0]
	s.want("a workload arrives that would fit where the victim was", s.happens(job("thief", "q", 1, 1, 0, 4)), "thief waits: TopologyPlacementFailed")
	s.want("the victim's quota is released and its pod remains", s.happens(s.stopped(victim)), victim+" waits: TopologyPlacementFailed")
	s.want("the victim's pod is gone", s.happens(podGone(victim, 0)), "replace high")
	want := []string{at[1] + ":1", taken}
	slices.Sort(want)
	s.wantPlaces("high", want...)
	if x, _ := s.engine.Explain(Key{Namespace: "ns", Name: "high"}); x.Replacing != nil {
		t.Errorf("explanation says that it is replacing %+v, want nothing", x.Replacing)
	}
}

// TestAReplacementTakesTheFirstPlace, also one that becomes free before those that were promised. What was promised is
// then there for others, the victim first.
func TestAReplacementTakesTheFirstPlace(t *testing.T) {
	s, at := full(t)
	got := s.happens(NodeDeleted{at[0]}, podGone("high", 0))
	var victim string
	fmt.Sscanf(got[0], "evict %s for", &victim)
	s.want("a node is added", s.happens(node("c1", "c", 4)), "replace high")
	s.want("the victim ends", s.happens(s.stopped(victim), podGone(victim, 0)), "admit "+victim+" in q")
}

// TestALostNodeComesBack: nothing is replaced, and what was promised is there for others.
func TestALostNodeComesBack(t *testing.T) {
	s, at := full(t)
	got := s.happens(NodeDeleted{at[0]}, podGone("high", 0))
	var victim string
	fmt.Sscanf(got[0], "evict %s for", &victim)
	s.want("the node comes back", s.happens(node(at[0], at[0][:1], 4)))
	s.wantPlaces("high", at[0]+":1", at[1]+":1")
	s.want("the victim ends", s.happens(s.stopped(victim), podGone(victim, 0)), "admit "+victim+" in q")
}

// TestAReplacementEvictsByTheRulesOfTheQueue: without a right to preempt, the gang is evicted as a whole, and comes first.
func TestAReplacementEvictsByTheRulesOfTheQueue(t *testing.T) {
	s, at := full(t, queueOf("q", "", 16))
	s.want("a node is deleted", s.happens(NodeDeleted{at[0]}, podGone("high", 0)), "evict high: NodeFailures")
}

// TestALowerPriorityIsNotReplacedByPreemption: the workload that lost its node has nothing that it could take.
func TestALowerPriorityIsNotReplacedByPreemption(t *testing.T) {
	s, _ := full(t)
	s.want("a node of low1 is deleted", s.happens(NodeDeleted{s.places("low1")[0][:2]}, podGone("low1", 0)), "evict low1: NodeFailures")
}

// TestAnEvictedGangGivesUpItsReplacement: whatever happens to it while it waits, others get what was promised to it.
func TestAnEvictedGangGivesUpItsReplacement(t *testing.T) {
	for name, end := range map[string]func(*scene) []Event{
		"evicted": func(s *scene) []Event { return []Event{s.stopped("high")} },
		"deleted": func(*scene) []Event { return []Event{gone("high")} },
	} {
		t.Run(name, func(t *testing.T) {
			s, at := full(t)
			got := s.happens(NodeDeleted{at[0]}, podGone("high", 0))
			var victim string
			fmt.Sscanf(got[0], "evict %s for", &victim)
			s.happens(end(s)...)
			s.happens(podGone("high", 1))
			s.happens(s.stopped(victim), podGone(victim, 0))
			if len(s.engine.nodes.replacing) > 0 {
				t.Errorf("%d workloads still wait for a replacement", len(s.engine.nodes.replacing))
			}
			if name == "deleted" && len(s.places(victim)) == 0 {
				t.Errorf("%s does not run again, and high is gone", victim)
			}
		})
	}
}

// TestARefusalOnANodeThatIsGoneIsNoReason: the pod that replaces the lost one still asks for the deleted node when it is
// created, and kube-scheduler refuses it. The gang goes on waiting.
func TestARefusalOnANodeThatIsGoneIsNoReason(t *testing.T) {
	s, at := full(t)
	s.happens(NodeDeleted{at[0]}, podGone("high", 0))
	s.want("kube-scheduler refuses the deleted node", s.happens(refuses("high", at[0])))
	if len(s.engine.nodes.replacing) != 1 {
		t.Error("high does not wait for a replacement any more")
	}
}

// TestTheEngineRestsWhileAGangThatAwaitedAReplacementLeaves: kube-scheduler refuses its pods on a node that is there, so
// that nobody is evicted for it any more, and it is evicted itself.
func TestTheEngineRestsWhileAGangThatAwaitedAReplacementLeaves(t *testing.T) {
	s, at := full(t)
	s.happens(podGone("high", 0), cordoned(node(at[0], at[0][:1], 4)))
	if len(s.engine.nodes.replacing) != 1 {
		t.Fatal("high does not wait for a replacement")
	}
	s.want("kube-scheduler refuses the node", s.happens(refuses("high", at[0])), "evict high: NodeFailures")
	s.engine.Decide(s.now)
	if len(s.engine.nodes.replacing) > 0 || s.engine.Busy() {
		t.Errorf("%d workloads wait for a replacement, busy %v, want none and an engine at rest", len(s.engine.nodes.replacing), s.engine.Busy())
	}
}

// TestTwoGangsThatLostTheSameNode: each gets a place of its own, from a victim of its own.
func TestTwoGangsThatLostTheSameNode(t *testing.T) {
	q := evicting(queueOf("q", "", 100), lower)
	s := newScene(t, Options{}, slices.Concat(onNodes, []Event{q, localOf("q"), node("a1", "a", 4), node("a2", "a", 4)})...)
	apart := func(w WorkloadSet) WorkloadSet { // two pods, one on each node
		w.PodSets = slices.Clone(w.PodSets)
		w.PodSets[0].Bounds = []place.Bound{{Kind: place.Apart, Key: place.Hostname, Counts: []string{"main"}}}
		return w
	}
	s.happens(apart(job("one", "q", 2, 2, 5, 0)), apart(job("two", "q", 2, 2, 5, 1)))
	s.wantPlaces("one", "a1:1", "a2:1")
	s.wantPlaces("two", "a1:1", "a2:1")
	s.happens(node("b1", "b", 2), node("b2", "b", 2))
	s.happens(job("low1", "q", 1, 2, 0, 2), job("low2", "q", 1, 2, 0, 3))
	s.happens(pod("low1", 0, s.places("low1")[0][:2], 2), pod("low2", 0, s.places("low2")[0][:2], 2))
	s.happens(pod("one", 0, "a1", 2), pod("one", 1, "a2", 2), pod("two", 0, "a1", 2), pod("two", 1, "a2", 2))
	got := s.happens(NodeDeleted{"a1"}, podGone("one", 0), podGone("two", 0))
	slices.Sort(got)
	s.want("the node is deleted", got, "evict low1 for one: in queue", "evict low2 for two: in queue")
	s.happens(s.stopped("low1"), s.stopped("low2"))
	s.want("the first victim is gone", s.happens(podGone("low1", 0)), "replace one")
	s.want("the second victim is gone", s.happens(podGone("low2", 0)), "replace two")
}

// TestGangsWhosePlacesComeBackRest: pods of a workload that is being stopped use the places of two others. These need no
// other places, wait until the pods are gone, and the engine rests meanwhile.
func TestGangsWhosePlacesComeBackRest(t *testing.T) {
	q := evicting(queueOf("q", "", 100), lower)
	s := newScene(t, Options{}, slices.Concat(onNodes, []Event{q, localOf("q"), node("a1", "a", 4), node("a2", "a", 4), node("b1", "b", 4)})...)
	s.happens(job("low", "q", 2, 2, 0, 0))
	at := s.places("low")[0][:2]
	s.happens(job("one", "q", 1, 4, 5, 1), job("two", "q", 1, 4, 5, 2))
	before := [][]string{s.places("one"), s.places("two")}
	s.happens(pod("low", 0, before[0][0][:2], 2), pod("low", 1, before[1][0][:2], 2))
	stopped := job("low", "q", 2, 2, 0, 0)
	stopped.Inactive = true
	s.want("low is stopped, and another pod is where it was admitted", s.happens(stopped, pod("", 9, at, 4)), "low waits: Deactivated")
	if len(s.engine.nodes.replacing) != 2 || s.engine.Busy() {
		t.Errorf("%d workloads wait for their places, busy %v; want 2, and an engine at rest", len(s.engine.nodes.replacing), s.engine.Busy())
	}
	s.want("the pods of low are gone", s.happens(podGone("low", 0), podGone("low", 1)))
	s.wantPlaces("one", before[0]...)
	s.wantPlaces("two", before[1]...)
}
