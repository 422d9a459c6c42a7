package engine

import (
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/engine/reason"
)

// explained returns the explanation of the named job.
func (s *scene) explained(name string) reason.Explanation {
	s.Helper()
	x, ok := s.engine.Explain(Key{Namespace: "ns", Name: name})
	if !ok {
		s.Fatalf("there is no job %s", name)
	}
	return x
}

// TestWhatTheNodesNeverHoldHasACodeOfItsOwn: four nodes of 4 cpu in two racks.
func TestWhatTheNodesNeverHoldHasACodeOfItsOwn(t *testing.T) {
	for name, tc := range map[string]struct {
		given []Event
		job   WorkloadSet
		want  string
	}{
		"more pods than the nodes hold": {nil, job("j", "q", 5, 4, 0, 1), "ExceedsNodes"},
		"a pod larger than any node":    {nil, job("j", "q", 1, 5, 0, 1), "ExceedsNodes"},
		"a gang larger than any rack":   {nil, within(job("j", "q", 3, 4, 0, 1)), "ExceedsNodes"},
		"while others run on all nodes": {[]Event{job("other", "q", 4, 4, 0, 0)},
			job("j", "q", 5, 4, 0, 1), "ExceedsNodes"},
		"it fits once others end": {[]Event{job("other", "q", 4, 4, 0, 0)}, job("j", "q", 4, 4, 0, 1),
			"TopologyPlacementFailed"},
		"its smallest size fits once others end": {[]Event{job("other", "q", 4, 4, 0, 0)},
			smaller(job("j", "q", 5, 4, 0, 1), 2), "TopologyPlacementFailed"},
		"its smallest size never fits": {nil, smaller(job("j", "q", 9, 4, 0, 1), 5), "ExceedsNodes"},
		"a cordoned node counts": {[]Event{cordoned(node("a1", "a", 4))}, job("j", "q", 4, 4, 0, 1),
			"TopologyPlacementFailed"},
		"a node that is not ready may be so": {[]Event{failed(node("a1", "a", 4))}, job("j", "q", 4, 4, 0, 1),
			"TopologyPlacementFailed"},
	} {
		t.Run(name, func(t *testing.T) {
			s := cluster(t)
			s.happens(tc.given...)
			s.want(name, s.happens(tc.job), "j waits: "+tc.want)
			x := s.explained("j")
			if string(x.Code) != tc.want || strings.Contains(x.Message, "never") != (tc.want == "ExceedsNodes") {
				t.Errorf("explained as %s: %s", x.Code, x.Message)
			}
		})
	}
}

// TestAllBehindAHeadThatNeverStartsAreToldSo: by quota and by nodes.
func TestAllBehindAHeadThatNeverStartsAreToldSo(t *testing.T) {
	for name, tc := range map[string]struct {
		head WorkloadSet
		code reason.Code
	}{
		"too much for the quota": {job("head", "q", 24, 1000, 1, 0), reason.ExceedsMaxQuota},
		"too much for the nodes": {job("head", "q", 5, 4, 1, 0), reason.ExceedsNodes},
	} {
		t.Run(name, func(t *testing.T) {
			s := cluster(t, strict(queueOf("q", "", 1000)))
			s.want("both arrive", s.happens(tc.head, job("second", "q", 1, 1, 0, 1)),
				"head waits: "+string(tc.code), "second waits: WaitingForQuota")
			s.want("another one arrives", s.happens(job("third", "q", 2, 1, 0, 2)), "third waits: WaitingForQuota")
			for _, behind := range []string{"second", "third"} {
				x := s.explained(behind)
				if x.BehindCode != tc.code || !strings.Contains(x.Message, "never starts with") {
					t.Errorf("%s is behind %s, explained as: %s", behind, x.BehindCode, x.Message)
				}
				if said := s.engine.workloads[Key{Namespace: "ns", Name: behind}].Why.Message(); said != x.Message {
					t.Errorf("%s is told %q, and explained as %q", behind, said, x.Message)
				}
			}
			s.want("the head is gone", s.happens(gone("head")), "admit second in q", "admit third in q")
		})
	}
}
