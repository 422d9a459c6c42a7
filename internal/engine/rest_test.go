package engine

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/engine/flavor"
	"github.com/musterhq/muster/internal/engine/place"
	"github.com/musterhq/muster/internal/engine/reason"
)

// TestHeadThatNoNodeCanHoldLetsTheEngineRest: a gang of which a later pod set fits on no node is evaluated once, and
// the workloads behind it get their reasons. Evaluating it again and again would keep a processor busy for as long as
// it waits: trying its first pod set on idle nodes once counted as nodes that had become smaller.
func TestHeadThatNoNodeCanHoldLetsTheEngineRest(t *testing.T) {
	gang := func(cpus ...int64) WorkloadSet {
		w := job("gang", "q", 1, cpus[0], 1, 0)
		for i, cpu := range cpus[1:] {
			w.PodSets = append(w.PodSets, PodSet{Name: string(rune('b' + i)), Count: 1, PerPod: map[string]int64{"cpu": cpu}})
		}
		return w
	}
	inOneRack := func(w WorkloadSet) WorkloadSet {
		for i := range w.PodSets {
			w.PodSets[i].Topology = &flavor.TopologyRequest{Level: rack, Mandatory: true, Group: "g"}
		}
		return w
	}
	queue := func(s Strategy, onDemand bool) ClusterQueueSet {
		q := queueOf("q", "", 1000)
		q.Strategy, q.OnDemand = s, onDemand
		return q
	}
	ports := gang(1, 16)
	ports.PodSets[0].HostPorts = []place.HostPort{{Port: 80}}
	for name, tc := range map[string]struct {
		queue ClusterQueueSet
		gang  WorkloadSet
	}{
		"the second pod set fits on no node":           {queue(BestEffort, false), gang(1, 16)},
		"the third fits on no node":                    {queue(BestEffort, false), gang(1, 2, 16)},
		"the first has a host port":                    {queue(BestEffort, false), ports},
		"the pod sets fit, and not in one rack":        {queue(BestEffort, false), inOneRack(gang(4, 5))},
		"nodes are added on demand, and one is in use": {queue(BestEffort, true), inOneRack(gang(4, 4))},
		"both":                      {queue(BestEffort, true), inOneRack(gang(4, 4))},
		"in the order of the queue": {queue(Strict, true), gang(8, 8)},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, Options{},
				slices.Concat(onNodes, []Event{tc.queue, localOf("q"), node("a1", "a", 8), node("b1", "b", 8)})...)
			s.happens(job("runs", "q", 1, 2, 2, 0), job("runs-too", "q", 1, 2, 2, 0))
			before := s.engine.evaluator.Evaluations
			s.happens(tc.gang, job("other", "q", 1, 99, 0, 1))
			if n := s.engine.evaluator.Evaluations - before; n > 12 {
				t.Errorf("%d evaluations, want a few for each of the two jobs", n)
			}
			if s.engine.Busy() {
				t.Error("the engine is busy, want it at rest")
			}
			if s.jobs["other"].ReportedCode == "" && s.jobs["other"].Admission == nil {
				t.Error("the job behind it has no reason")
			}
		})
	}
}

// TestReasonsAreWrittenWhileTheEngineHasWork: a workload does not wait for its reason until the engine rests.
func TestReasonsAreWrittenWhileTheEngineHasWork(t *testing.T) {
	e := New(Options{})
	e.budget = 1
	for _, ev := range []Event{defaultFlavor, queueOf("q", "", 1), localOf("q")} {
		e.Apply(ev)
	}
	decideAll(e, epoch)
	waiting := job("waits", "q", 1, 2, 9, 0)
	e.Apply(waiting)
	told := false
	for n := range 8 { // each time there is more to evaluate than a pass can
		for i := range 3 {
			e.Apply(job(fmt.Sprintf("w%d-%d", n, i), "q", 1, int64(3+3*n+i), 0, n))
		}
		for _, d := range e.Decide(epoch.Add(time.Duration(n) * 300 * time.Millisecond)) {
			told = told || d.Key == waiting.Key && d.Why.Code != reason.None
		}
		if !e.Busy() {
			t.Fatal("the engine is at rest, want it busy")
		}
	}
	if !told {
		t.Error("the job has no reason after two seconds")
	}
}

// TestAReplacementThatMovesAllPodsIsFoundOnce: the pods of two slices all move, and one of the new places is a place
// that the workload has already. This place is free for the workload, although not beside the workload. The replacement
// was taken back and found again in each pass, and each time the workloads that wait for nodes were evaluated: without
// end, where these are more than a pass can evaluate.
func TestAReplacementThatMovesAllPodsIsFoundOnce(t *testing.T) {
	gang := job("gang", "q", 3, 2, 1, 0)
	gang.PodSets[0].Topology = &flavor.TopologyRequest{Slices: []place.Slice{{Level: rack, Size: 2}}}
	s := newScene(t, Options{}, slices.Concat(onNodes, []Event{queueOf("q", "", 100), localOf("q"),
		node("a1", "a", 4), node("a2", "a", 2), gang})...)
	s.happens(node("b1", "b", 4), job("runs", "q", 1, 4, 0, 1))
	s.happens(node("a2", "a", 4), node("b2", "b", 2), job("old", "q", 2, 2, 0, 2))
	s.wantPlaces("gang", "a1:2", "a2:1")
	s.wantPlaces("old", "a2:1", "b2:1")
	for n, node := range []string{"a2", "b2"} {
		s.happens(PodBound{place.Pod{Key: Key{Namespace: "ns", Name: fmt.Sprint("old-", n)}, Node: node,
			Requests: map[string]int64{"cpu": 2},
			Workload: Key{Namespace: "ns", Name: "old"}, PodSet: "main"}})
	}
	s.happens(s.changed("old", func(w *Workload) { w.Evicted = true }))
	for i := range 3 {
		s.happens(job(fmt.Sprint("waits", i), "q", 1, int64(4+i), 0, 3+i))
	}
	s.engine.budget = 1
	s.happens(failed(node("a1", "a", 4)))
	if s.engine.workloads[gang.Key].Replacement == nil {
		t.Fatalf("the gang holds %v, and waits for no other places", s.engine.Holds(gang.Key).PodSets[0].Places)
	}
	before := s.engine.nodes.PlacesVersion
	s.engine.Apply(job("another", "q", 1, 99, 0, 9))
	if s.happens(); s.engine.nodes.PlacesVersion != before {
		t.Error("what was nominated for the gang has changed, want the same places")
	}
}
