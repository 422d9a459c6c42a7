package engine

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/musterhq/muster/internal/engine/evaluate"
	"github.com/musterhq/muster/internal/engine/flavor"
	"github.com/musterhq/muster/internal/engine/place"
	"github.com/musterhq/muster/internal/engine/preempt"
	"github.com/musterhq/muster/internal/engine/quota"
	"github.com/musterhq/muster/internal/engine/reason"
)

// TestChangeOfALongQueueIsManyShortPasses: a change that routes many workloads is spread over many short passes, with
// events applied in between, and in the end all workloads are routed.
func TestChangeOfALongQueueIsManyShortPasses(t *testing.T) {
	const waiting = 3 * passBudget
	red := queueOf("q0", "", 0)
	red.Namespaces = &metav1.LabelSelector{MatchLabels: map[string]string{"team": "red"}}
	in := func(team string) Event { return NamespaceSet{Name: "ns", Labels: labels.Set{"team": team}} }
	leads := func(to string) LocalQueueSet {
		return LocalQueueSet{LocalQueue{Key: Key{Namespace: "ns", Name: "q0"}, ClusterQueue: to}}
	}
	stopped := leads("q0")
	stopped.Stopped = true
	for name, tc := range map[string]struct {
		given, change Event
		evaluates     bool // the waiting workloads: otherwise all are set aside
	}{
		"a LocalQueue that points elsewhere": {given: queueOf("q1", "", waiting), change: leads("q1"), evaluates: true},
		"a LocalQueue that is stopped":       {change: stopped},
		"a LocalQueue that is deleted":       {change: LocalQueueDeleted{Key{Namespace: "ns", Name: "q0"}}},
		"a queue that is stopped":            {change: stoppedQueue(queueOf("q0", "", 0))},
		"a queue that gets quota":            {change: queueOf("q0", "", waiting), evaluates: true},
		"a namespace whose labels change":    {given: red, change: in("blue")},
	} {
		t.Run(name, func(t *testing.T) {
			e := backlog(waiting, 1, 0)
			e.Apply(in("red"))
			if tc.given != nil {
				e.Apply(tc.given)
			}
			decideAll(e, epoch)
			e.Apply(tc.change)
			passes, admitted := 0, 0
			for e.Busy() {
				if left := e.queues["q0"].Unrouted.Len() +
					e.localQueues[Key{Namespace: "ns", Name: "q0"}].Unrouted.Len(); left > max(0, waiting-passes*passBudget) {
					t.Fatalf("%d workloads are not routed after %d passes", left, passes)
				}
				if passes == 1 {
					e.Apply(job("late", "q0", 1, 1, 0, -1))
					e.Apply(gone(fmt.Sprintf("w%d", waiting-1)))
				}
				got := e.Decide(epoch)
				if len(got) > passBudget {
					t.Errorf("a pass made %d decisions, want at most the budget", len(got))
				}
				for _, d := range got {
					if d.Admit != nil {
						admitted++
					}
				}
				passes++
			}
			if passes < 3 {
				t.Errorf("the change took %d passes, want several", passes)
			}
			if want := map[bool]int{true: waiting}[tc.evaluates]; admitted != want {
				t.Errorf("%d workloads were admitted, want %d", admitted, want)
			}
			counted := 0
			for _, q := range e.queues {
				counted += q.Pending
			}
			if _, gone := tc.change.(LocalQueueDeleted); !gone && counted != waiting-admitted || gone && counted != 0 {
				t.Errorf("%d workloads are pending, want %d", counted, waiting-admitted)
			}
		})
	}
}

// TestSearchesForWorkloadsThatYieldAreSpreadOverPasses: to find that not even all elastic workloads together could make
// room, hundreds of them are tried on nodes for each waiting one. A pass does so for a few of these only, and in the
// end it is known for all.
func TestSearchesForWorkloadsThatYieldAreSpreadOverPasses(t *testing.T) {
	const elastic, waiting = 200, 40
	e := nodePool(elastic)
	e.Apply(queueOf("q", "", 8*elastic))
	for i := range elastic {
		e.Apply(between(fmt.Sprint("elastic", i), 2, 8, 0, i))
	}
	for _, d := range decideAll(e, epoch) {
		e.Apply(Written{Key: d.Key, UID: d.UID, Version: 1})
	}
	for i := range waiting {
		e.Apply(job(fmt.Sprint("w", i), "q", int32(5+i), 8, 0, elastic+i)) // quota suffices for it, and no node is free
	}
	passes, reported := 0, map[Key]bool{}
	for e.Busy() {
		before := e.queues["q"].Waits.Ready()
		for _, d := range e.Decide(epoch) {
			reported[d.Key] = true
		}
		passes++
		if evaluated, most := before-e.queues["q"].Waits.Ready(),
			1+passBudget/(elastic/evaluate.TriedPerBudget); evaluated > most {
			t.Errorf("pass %d has evaluated %d workloads, want at most %d", passes, evaluated, most)
		}
	}
	if len(reported) != waiting || len(e.queues["q"].Elastic) != elastic {
		t.Errorf("%d of %d waiting workloads have a reason, beside %d elastic ones", len(reported), waiting,
			len(e.queues["q"].Elastic))
	}
}

// TestTopologyIsCheapForWorkloadsWithoutPlaces: a change of a topology with many flavors looks at each workload once,
// and sorts only those that have places: sorting all of them for each flavor took seconds with 50,000 workloads.
func TestTopologyIsCheapForWorkloadsWithoutPlaces(t *testing.T) {
	e := New(Options{})
	levels := TopologySet{place.Topology{Name: "racks", Levels: []string{rack, place.Hostname}}}
	e.Apply(levels)
	for i := range 100 {
		e.Apply(FlavorSet{Flavor{Name: fmt.Sprint("f", i), Topology: "racks"}})
	}
	for i := range 2_000 {
		e.Apply(job(fmt.Sprint("w", i), "q", 1, 1, 0, i))
	}
	allocated := testing.AllocsPerRun(3, func() {
		e.Apply(TopologyDeleted{"racks"})
		e.Apply(levels)
	})
	if allocated > 1_000 {
		t.Errorf("%.0f allocations, want few: none for each flavor and workload", allocated)
	}
}

// TestPassCountsFewShapes: a pass ends after some milliseconds also where each workload differs, so that all nodes are
// counted for each; and in the end all are decided on.
func TestPassCountsFewShapes(t *testing.T) {
	const nodes, waiting = 5_000, 100
	e := New(Options{})
	for _, ev := range onNodes {
		e.Apply(ev)
	}
	for i := range nodes {
		e.Apply(node(fmt.Sprint("n", i), fmt.Sprint(i/16), 1))
	}
	e.Apply(queueOf("q", "", 1000))
	e.Apply(localOf("q"))
	for i := range waiting {
		e.Apply(job(fmt.Sprint("w", i), "q", 1, int64(2+i), 0, i))
	}
	passes := 0
	for first := true; first || e.Busy(); first = false {
		before := e.nodes.Finder.Counted()
		e.Decide(epoch)
		passes++
		if counted := e.nodes.Finder.Counted() - before; counted > (passBudget+10)*evaluate.CountedPerBudget {
			t.Fatalf("pass %d counted %d nodes, want %d at most", passes, counted, passBudget*evaluate.CountedPerBudget)
		}
		if passes > 4*waiting {
			t.Fatal("passes never end")
		}
	}
	for _, w := range e.workloads {
		if w.Why.Code != reason.ExceedsNodes {
			t.Errorf("%s waits for %q, want it told that no node is large enough", w.Key, w.Why.Code)
		}
	}
}

// TestEqualFlavorRoutesNothing: a flavor that is set again as it was routes no workload again; one that differs routes
// all.
func TestEqualFlavorRoutesNothing(t *testing.T) {
	e := New(Options{})
	set := func(tainted bool) FlavorSet {
		f := FlavorSet{Flavor{Name: "default", NodeLabels: map[string]string{"pool": "a"}}}
		if tainted {
			f.NodeTaints = []corev1.Taint{{Key: "pool", Effect: corev1.TaintEffectNoSchedule}}
		}
		return f
	}
	e.Apply(set(false))
	e.Apply(queueOf("q", "", 0))
	e.Apply(localOf("q"))
	for i := range 10 {
		e.Apply(job(fmt.Sprint("w", i), "q", 1, 1, 0, i))
	}
	decideAll(e, epoch)
	for _, tc := range []struct {
		tainted bool
		want    int
	}{{false, 0}, {true, 10}, {true, 0}, {false, 10}} {
		e.Apply(set(tc.tainted))
		if got := e.queues["q"].Unrouted.Len(); got != tc.want {
			t.Errorf("a flavor with a taint: %v, routes %d workloads again, want %d", tc.tainted, got, tc.want)
		}
		decideAll(e, epoch)
	}
}

// TestAdmissionLooksAtNoneThatCannotEvict: what an admission costs does not grow with the blocked classes of lower
// priority. With a look at each of 50,000, a pass with 14 admissions took 0.12 s.
func TestAdmissionLooksAtNoneThatCannotEvict(t *testing.T) {
	const waiting = 2_000
	e := New(Options{})
	e.Apply(defaultFlavor)
	e.Apply(evicting(queueOf("q", "", 1), preempt.Policy{WithinQueue: preempt.LowerPriority}))
	e.Apply(localOf("q"))
	for i := range waiting {
		e.Apply(job(fmt.Sprint("w", i), "q", 1, int64(2+i), int32(i%5), i))
	}
	decideAll(e, epoch)
	q := e.queues["q"]
	blocked := 0
	for _, c := range q.Classes {
		if c.IsBlocked() {
			blocked++
		}
	}
	if blocked != waiting || q.Waits.Ready() != 0 {
		t.Fatalf("%d classes are blocked and %d ready, want all %d blocked", blocked, q.Waits.Ready(), waiting)
	}
	shortest := time.Hour // so that other load of the machine does not matter
	for range 20 {
		began := time.Now()
		for range 1_000 { // two million looks at classes otherwise
			q.Waits.Charged(nil, &preempt.Holder{Priority: 5})
		}
		shortest = min(shortest, time.Since(began))
	}
	if shortest > 5*time.Millisecond {
		t.Errorf("1,000 admissions took %v to find that nobody can evict them", shortest)
	}
	if q.Waits.Charged(nil, &preempt.Holder{Priority: 3}); q.Waits.Ready() != waiting/5 {
		t.Errorf("%d classes are ready after an admission that the highest priority can evict, want %d", q.Waits.Ready(), waiting/5)
	}
}

// TestMoreUseIsLookedAtInTurn: workloads that may fit once more is used are all evaluated after an admission, some in
// each pass, and only the first of them in each pass where usage changes all the time. Those behind the eighth were not
// evaluated at all.
func TestMoreUseIsLookedAtInTurn(t *testing.T) {
	const waiting, most = 300, leastShare + 20
	e := New(Options{})
	e.Apply(defaultFlavor)
	e.Apply(FlavorSet{Flavor{Name: "spot", NodeLabels: map[string]string{"kind": "spot"}}})
	q := evicting(queueOf("q", "", 1_000), preempt.Policy{WithinQueue: preempt.LowerPriority})
	q.Groups = []flavor.Group{{Resources: []string{"cpu"}, Flavors: []string{"spot", "default"}}}
	q.Quotas[quota.FlavorResource{Flavor: "spot", Resource: "cpu"}] = quota.Limits{Nominal: 1_000}
	e.Apply(q)
	e.Apply(localOf("q"))
	e.Apply(job("runs", "q", 1, 500, 0, 0))
	decideAll(e, epoch)
	for i := range waiting { // were more of spot used, the first pod set could leave it to the second one
		w := job(fmt.Sprint("w", i), "q", 1, 500, 0, i)
		w.PodSets = append(w.PodSets, PodSet{Name: "other", Count: 1, PerPod: map[string]int64{"cpu": int64(600 + i)},
			NodeSelector: map[string]string{"kind": "spot"}})
		e.Apply(w)
	}
	decideAll(e, epoch)
	evaluated := func(do func()) int {
		before := e.evaluator.Evaluations
		do()
		return e.evaluator.Evaluations - before
	}
	for i := range 3 {
		e.Apply(job(fmt.Sprint("small", i), "q", 1, 1, 0, waiting))
		if n := evaluated(func() { e.Decide(epoch) }); n > most {
			t.Errorf("%d evaluations in a pass that admits one workload, want %d at most", n, most)
		}
	}
	if n := evaluated(func() { decideAll(e, epoch) }); n < waiting-2*most || n > waiting {
		t.Errorf("%d evaluations after the last admission, want one of each of the %d that wait", n, waiting)
	}
}
