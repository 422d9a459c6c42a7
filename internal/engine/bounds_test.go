package engine

import (
	"slices"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/engine/place"
)

// apart makes the pods of a job be on different nodes, by the bound kind.
func apart(w WorkloadSet, kind place.BoundKind) WorkloadSet {
	w.PodSets = slices.Clone(w.PodSets)
	w.PodSets[0].Bounds = []place.Bound{{Kind: kind, Key: place.Hostname, Counts: []string{"main"}, MaxSkew: 1}}
	return w
}

// TestPodsThatMustBeApartGetNodesAtOnce: two small pods get two nodes, although either node could hold both.
func TestPodsThatMustBeApartGetNodesAtOnce(t *testing.T) {
	for _, kind := range []place.BoundKind{place.Apart, place.Even} {
		t.Run(string(kind), func(t *testing.T) {
			s := newScene(t, Options{}, slices.Concat(onNodes, []Event{queueOf("q", "", 1000), localOf("q"), node("a1", "a", 8), node("a2", "a", 8)})...)
			s.want("the job arrives", s.happens(apart(job("two", "q", 2, 1, 0, 0), kind)), "admit two in q")
			s.wantPlaces("two", "a1:1", "a2:1")
			s.want("a job of the same pods without the bound", s.happens(job("free", "q", 2, 1, 0, 1)), "admit free in q")
			s.wantPlaces("free", "a1:2")
		})
	}
}

// TestAJobThatIsTooLargeForItsBoundSaysSo: the message names the constraint, and blames no node.
func TestAJobThatIsTooLargeForItsBoundSaysSo(t *testing.T) {
	s := newScene(t, Options{}, slices.Concat(onNodes, []Event{queueOf("q", "", 1000), localOf("q"), node("a1", "a", 8), node("a2", "a", 8)})...)
	s.want("the job arrives", s.happens(apart(job("three", "q", 3, 1, 0, 0), place.Apart)), "three waits: ExceedsNodes")
	x, _ := s.engine.Explain(Key{Namespace: "ns", Name: "three"})
	nodes := x.PodSets[0].Flavors[0].Nodes
	if message := nodes.PodSets[0].Message(); !strings.Contains(message, "bounded by podAntiAffinity by kubernetes.io/hostname") || strings.Contains(message, "excluded") {
		t.Errorf("message = %q, want the constraint and no node", message)
	}
	if want := `pod set "main" without podAntiAffinity by kubernetes.io/hostname`; nodes.Relaxation != want {
		t.Errorf("relaxation = %q, want %q", nodes.Relaxation, want)
	}
}

// TestARefusalBesideAPodOfTheGangLowersTheCount: kube-scheduler bound one pod of the gang to the node and refuses the next.
// The node keeps what it has, is not avoided, and counts again for the same job later.
func TestARefusalBesideAPodOfTheGangLowersTheCount(t *testing.T) {
	s := newScene(t, Options{}, slices.Concat(onNodes, []Event{queueOf("q", "", 1000), localOf("q"), node("a1", "a", 8), node("a2", "a", 8)})...)
	s.want("the job arrives", s.happens(job("two", "q", 2, 1, 0, 0)), "admit two in q")
	s.wantPlaces("two", "a1:2")
	s.happens(pod("two", 0, "a1", 1))
	s.want("the second pod is refused", s.happens(refuses("two", "a1")), "replace two")
	s.wantPlaces("two", "a1:1", "a2:1")
}

// TestARefusalForOtherPodsHalvesTheCount: no pod of the gang is bound, and kube-scheduler minds other pods on a node that was
// to have four of the gang: these may be the pods that it minds.
func TestARefusalForOtherPodsHalvesTheCount(t *testing.T) {
	s := newScene(t, Options{}, slices.Concat(onNodes, []Event{queueOf("q", "", 1000), localOf("q"), node("a1", "a", 8), node("a2", "a", 8)})...)
	s.happens(job("four", "q", 4, 1, 0, 0))
	refusal := refuses("four", "a1")
	refusal.Why = "1 node(s) didn't match pod topology spread constraints"
	s.want("kube-scheduler refuses the node", s.happens(refusal), "replace four")
	s.wantPlaces("four", "a1:2", "a2:2")
}
