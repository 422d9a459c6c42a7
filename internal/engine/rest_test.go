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

// TestHeadThatNoNodeCanHoldLetsTheEngineRest: a gang of which a later pod set fits on no node is evaluated once, and the
// workloads behind it get their reasons. Evaluating it again and again would keep a processor busy for as long as it
// waits: trying its first pod set on idle nodes once counted as nodes that had become smaller.
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
		"the second pod set fits on no node":           {queue(ByResource, false), gang(1, 16)},
		"the third fits on no node":                    {queue(ByResource, false), gang(1, 2, 16)},
		"the first has a host port":                    {queue(ByResource, false), ports},
		"the pod sets fit, and not in one rack":        {queue(ByResource, false), inOneRack(gang(4, 5))},
		"nodes are added on demand, and one is in use": {queue(BestEffort, true), inOneRack(gang(4, 4))},
		"both":                      {queue(ByResource, true), inOneRack(gang(4, 4))},
		"in the order of the queue": {queue(Strict, true), gang(8, 8)},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, Options{}, slices.Concat(onNodes, []Event{tc.queue, localOf("q"), node("a1", "a", 8), node("b1", "b", 8)})...)
			s.happens(job("runs", "q", 1, 2, 2, 0), job("runs-too", "q", 1, 2, 2, 0))
			before := s.engine.evaluator.evaluations
			s.happens(tc.gang, job("other", "q", 1, 99, 0, 1))
			if n := s.engine.evaluator.evaluations - before; n > 12 {
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
