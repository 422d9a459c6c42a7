package engine

import (
	"fmt"
	"testing"

	"github.com/musterhq/muster/internal/engine/preempt"
)

// overloaded returns an engine in which queues evil and good share a cohort, other is on its own, and evil has as many
// waiting workloads as given, all of different sizes, and as many small ones that run. All of them have been evaluated.
func overloaded(t *testing.T, options Options, reclaims bool, waiting int) *Engine {
	const large = 1_000_000
	e := New(options)
	running := int64(waiting)
	evil := queueOf("evil", "lab", large+running)
	if reclaims {
		evil.Preemption = preempt.Policy{Reclaim: preempt.LowerPriority}
	}
	for _, ev := range []Event{defaultFlavor, evil, queueOf("good", "lab", 1), queueOf("other", "", 1),
		localOf("evil"), localOf("good"), localOf("other"), runs(job("large", "evil", 1, large, 9, 0))} {
		e.Apply(ev)
	}
	for i := range waiting {
		e.Apply(runs(job(fmt.Sprintf("small%d", i), "evil", 1, 1, 9, 0)))
	}
	decideAll(e, epoch)
	for i := range waiting {
		e.Apply(job(fmt.Sprintf("w%d", i), "evil", 1, 500_000+int64(i), 5, 1+i))
	}
	for _, d := range decideAll(e, epoch) {
		if d.Admit != nil {
			t.Fatalf("%s was admitted, want all to wait", d.Key.Name)
		}
	}
	return e
}

// runs returns the workload of one pod as it is while this runs.
func runs(w WorkloadSet) WorkloadSet {
	w.Admitted, w.Ready, w.ReservedAt = true, true, epoch
	w.Admission = &Admission{ClusterQueue: w.Queue, PodSets: []Assignment{{PodSet: "main", Count: 1,
		Flavors: map[string]string{"cpu": "default"}, Usage: w.PodSets[0].PerPod}}}
	return w
}

// TestManySizesInOneQueueDoNotStopOthers: one queue has more workloads of different sizes than a pass can evaluate, and
// each release lets all of them be tried again. Those of other trees are admitted at once all the same, and those of
// its cohort once each of them was tried.
func TestManySizesInOneQueueDoNotStopOthers(t *testing.T) {
	const waiting, sweep = 4 * passBudget, 6
	for name, tc := range map[string]struct {
		options   Options
		reclaims  bool // the queue may evict workloads of others for a fairer share
		arrive    bool // there is a new small workload for each one that ends, and it comes first in order
		inOneTurn bool // the workloads of all trees are admitted one after the other
	}{
		"quota is released":    {},
		"and taken by its own": {arrive: true},
		"and shares change": {
			options:  Options{FairSharing: &FairSharing{Strategies: []preempt.Strategy{preempt.LessThanInitialShare}}},
			reclaims: true},
		"pods of the queue are ready": {options: Options{BlockUntilReady: BlockQueue}},
		"pods of all are ready":       {options: Options{BlockUntilReady: BlockAll}, inOneTurn: true},
	} {
		t.Run(name, func(t *testing.T) {
			e := overloaded(t, tc.options, tc.reclaims, waiting)
			arrivals := []Event{job("good", "good", 1, 1, 0, 9), job("other", "other", 1, 1, 0, 9)}
			admitted := map[string]int{} // the pass of each admission
			for pass := range 2 * sweep {
				arrivals = append(arrivals, gone(fmt.Sprintf("small%d", pass)))
				if tc.arrive {
					arrivals = append(arrivals, job(fmt.Sprintf("new%d", pass), "evil", 1, 1, 9, 0))
				}
				for _, ev := range arrivals {
					e.Apply(ev)
				}
				arrivals = nil
				for _, d := range e.Decide(epoch) {
					if d.Admit != nil {
						admitted[d.Key.Name] = pass
						done := d.Admit
						arrivals = append(arrivals, Written{Key: d.Key, UID: d.UID, Serial: d.Serial, Version: 1}, ready(e, d.Key, done))
					}
				}
				if left := e.queues["evil"].Waits.Ready(); pass == 0 && left < waiting-passBudget {
					t.Errorf("%d workloads are left to evaluate after a pass, want at least %d", left, waiting-passBudget)
				}
			}
			most := map[string]int{"other": 0, "good": sweep}
			if tc.inOneTurn { // each has to wait until all were tried
				most["good"], most["other"] = sweep, 2*sweep-1
			}
			for name, most := range most {
				if at, ok := admitted[name]; !ok || at > most {
					t.Errorf("%s was admitted in pass %d (%t), want pass %d at the latest", name, at, ok, most)
				}
			}
		})
	}
}

// ready returns the event that the pods of the admitted workload are ready.
func ready(e *Engine, key Key, given *Admission) WorkloadSet {
	ev := WorkloadSet{e.workloads[key].Workload}
	ev.Version, ev.Admission, ev.Admitted, ev.Ready = 2, given, true, true
	return ev
}
