package engine

import (
	"fmt"
	"testing"

	"github.com/musterhq/muster/internal/engine/quota"
)

// TestChangesOfALongLocalQueueDoNotStopOthers: a LocalQueue with more workloads than a few passes can sort again is
// stopped and resumed before it has been sorted, again and again. Workloads of other trees are admitted all the same,
// also those whose own LocalQueue is changed; those of its tree wait until it has been sorted.
func TestChangesOfALongLocalQueueDoNotStopOthers(t *testing.T) {
	e := backlog(20*passBudget, 1, 0)
	long := queueOf("q0", "lab", 0)
	// it borrows nothing
	long.Quotas[quota.FlavorResource{Flavor: "default", Resource: "cpu"}] = quota.Limits{Lending: quota.Unlimited}
	for _, ev := range []Event{long, queueOf("peer", "lab", 1), queueOf("other", "", 1), queueOf("new", "", 1),
		localOf("peer"), localOf("other")} {
		e.Apply(ev)
	}
	decideAll(e, epoch)
	toggle := localOf("q0")
	for _, ev := range []Event{job("a", "peer", 1, 1, 0, 0), job("b", "other", 1, 1, 0, 0), job("c", "new", 1, 1, 0, 0),
		localOf("new")} {
		e.Apply(ev)
	}
	admitted := map[string]int{}
	decide := func(pass int) {
		for _, d := range e.Decide(epoch) {
			if d.Admit != nil {
				admitted[d.Key.Name] = pass
			}
		}
	}
	for pass := range 12 {
		if pass%3 == 0 {
			toggle.Stopped = !toggle.Stopped
			e.Apply(toggle)
		}
		decide(pass)
	}
	if got, want := fmt.Sprint(admitted), "map[b:0 c:0]"; got != want {
		t.Errorf("admitted, with the pass: %s, want %s", got, want)
	}
	for e.Busy() {
		decide(12)
	}
	if _, ok := admitted["a"]; !ok {
		t.Error("the workload of its tree was not admitted after it had been sorted")
	}
}

// TestNoneIsDecidedBeforeAllAreSorted: while the workloads of a LocalQueue are being moved to another tree, nothing is
// admitted in the tree that they leave, nor in the one that they come to.
func TestNoneIsDecidedBeforeAllAreSorted(t *testing.T) {
	e := backlog(3*passBudget, 1, 0)
	for _, ev := range []Event{queueOf("next", "", 1), localOf("next")} {
		e.Apply(ev)
	}
	decideAll(e, epoch)
	moved := localOf("q0")
	moved.ClusterQueue = "next"
	for _, ev := range []Event{queueOf("q0", "", 1), moved, job("late", "next", 1, 1, 0, 9*passBudget)} {
		e.Apply(ev)
	}
	var got []string
	for _, d := range decideAll(e, epoch) {
		if d.Admit != nil {
			got = append(got, d.Key.Name+" in "+d.Admit.ClusterQueue)
		}
	}
	if want := "[w0 in next]"; fmt.Sprint(got) != want {
		t.Errorf("admitted %s, want %s", got, want)
	}
}
