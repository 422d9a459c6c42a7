package engine

import (
	"fmt"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/engine/durations"
	"github.com/musterhq/muster/internal/engine/evaluate"
	"github.com/musterhq/muster/internal/engine/flavor"
	"github.com/musterhq/muster/internal/engine/place"
)

// TestAPassTakesFewOffTheNodes: whether a workload may pass a planned start on nodes is found by taking all off the
// nodes that end before. Many who want to pass, each with a limit of its own, take many passes: in between others are
// heard.
func TestAPassTakesFewOffTheNodes(t *testing.T) {
	const nodes, perNode, waiting = 20, 8, 60
	e := New(Options{})
	q := queueOf("q", "", 10_000)
	q.Backfill = true
	for _, ev := range []Event{TopologySet{place.Topology{Name: "racks", Levels: []string{place.Hostname}}},
		FlavorSet{Flavor{Name: "default", Topology: "racks"}}, NamespaceSet{Name: "ns"}, q, localOf("q")} {
		e.Apply(ev)
	}
	for i := range nodes {
		name := fmt.Sprint("n", i)
		e.Apply(NodeSet{place.Node{Name: name, Labels: map[string]string{place.Hostname: name},
			Allocatable: map[string]int64{"cpu": perNode, place.Pods: 100}}})
	}
	add := func(name string, pods int32, limit time.Duration, queued int) {
		e.Apply(WorkloadSet{Workload: Workload{Key: Key{Namespace: "ns", Name: name}, UID: name, Generation: 1, Version: 1,
			Queue: "q", QueuedAt: epoch.Add(time.Duration(queued) * time.Second), Time: durations.Known{Limit: limit},
			PodSets: []PodSet{{Name: "main", Count: pods, PerPod: map[string]int64{"cpu": 1},
				Topology: &flavor.TopologyRequest{}}}}})
	}
	for i := range nodes*perNode - 5 {
		add(fmt.Sprint("runs", i), 1, time.Duration(1+i%50)*time.Hour, i)
	}
	decideAll(e, epoch)
	add("gang", nodes*perNode, time.Hour, 1000)
	decideAll(e, epoch)
	for i := range waiting {
		add(fmt.Sprint("waits", i), 1, 100*time.Hour+time.Duration(i)*time.Second, 2000+i)
	}
	most := e.budget*evaluate.TriedPerBudget + 2*nodes*perNode
	all := 0
	for first := true; first || e.Busy(); first = false {
		before := e.evaluator.Tried
		for _, d := range e.Decide(epoch) {
			if d.Admit != nil {
				t.Fatalf("%s was admitted, and delays the gang", d.Key.Name)
			}
		}
		tried := e.evaluator.Tried - before
		if all += tried; tried > most {
			t.Fatalf("a pass has taken %d off the nodes, want at most %d", tried, most)
		}
	}
	if all <= most {
		t.Errorf("all passes have taken %d off the nodes, want more than one may: the test shows nothing", all)
	}
	if _, planned := e.PlannedStart(Key{Namespace: "ns", Name: "gang"}); !planned {
		t.Error("the gang has no planned start: the test shows nothing")
	}
}
