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

// TestAJobThatIsTooLargeForItsBoundSaysSo: the message names the constraint, and blames no node.
func TestAJobThatIsTooLargeForItsBoundSaysSo(t *testing.T) {
	s := newScene(t, Options{},
		slices.Concat(onNodes, []Event{queueOf("q", "", 1000), localOf("q"), node("a1", "a", 8), node("a2", "a", 8)})...)
	s.want("the job arrives", s.happens(apart(job("three", "q", 3, 1, 0, 0), place.Apart)), "three waits: ExceedsNodes")
	x, _ := s.engine.Explain(Key{Namespace: "ns", Name: "three"})
	nodes := x.PodSets[0].Flavors[0].Nodes
	if message := nodes.PodSets[0].Message(); !strings.Contains(message,
		"bounded by podAntiAffinity by kubernetes.io/hostname") || strings.Contains(message, "excluded") {
		t.Errorf("message = %q, want the constraint and no node", message)
	}
	if want := `pod set "main" without podAntiAffinity by kubernetes.io/hostname`; nodes.Relaxation != want {
		t.Errorf("relaxation = %q, want %q", nodes.Relaxation, want)
	}
}
