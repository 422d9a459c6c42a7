package engine

import (
	"fmt"
	"testing"
)

// TestLargeWorkloadIsNotStarvedByBorrowers (L2): what borrowers release of a queue's own quota is reserved, piece by
// piece, for the large workload that waits for it.
func TestLargeWorkloadIsNotStarvedByBorrowers(t *testing.T) {
	e := New(Options{})
	steps := []Event{defaultFlavor, queueOf("own", "lab", 4), queueOf("other", "lab", 4), localOf("own"), localOf("other")}
	for i := range 8 {
		steps = append(steps, job(fmt.Sprintf("small%d", i), "other", 1, 1, 0, i))
	}
	decisionsAfter(e, steps...)
	decisionsAfter(e, job("large", "own", 4, 1, 0, 100))
	for i := range 4 {
		if e.Holds(Key{Namespace: "ns", Name: "large"}) != nil {
			t.Fatalf("large was admitted after only %d borrowers ended", i)
		}
		decisionsAfter(e, job(fmt.Sprintf("next%d", i), "other", 1, 1, 9, i), gone(fmt.Sprintf("small%d", i)))
		if e.Holds(Key{Namespace: "ns", Name: fmt.Sprintf("next%d", i)}) != nil {
			t.Errorf("next%d borrows the quota that large waits for", i)
		}
	}
	if e.Holds(Key{Namespace: "ns", Name: "large"}) == nil {
		t.Error("large waits though its queue's own quota is free")
	}
}

// TestQuotaIsKeptForTheFirstThatFitsIt: one that would have to borrow is not it, even if it is the first in its queue.
func TestQuotaIsKeptForTheFirstThatFitsIt(t *testing.T) {
	s := newScene(t, Options{}, queueOf("own", "lab", 4), queueOf("other", "lab", 4), localOf("own"), localOf("other"),
		job("borrower", "other", 6, 1, 0, 0), job("runs", "other", 2, 1, 0, 0))
	s.want("two arrive", s.happens(job("borrows", "own", 6, 1, 0, 1), job("fits", "own", 4, 1, 0, 2)), "borrows waits: WaitingForQuota", "fits waits: WaitingForQuota")
	s.want("some of the quota is released", s.happens(gone("runs"), job("small", "other", 1, 1, 0, 3)), "small waits: WaitingForQuota")
	s.want("all of it is released", s.happens(gone("borrower")), "admit small in other", "admit borrows in own")
}

func TestQuotaReservedForTheFirstIsAvailableToItsQueue(t *testing.T) {
	e := New(Options{})
	decisionsAfter(e, defaultFlavor, queueOf("own", "lab", 4), queueOf("other", "lab", 4), localOf("own"), localOf("other"),
		job("running", "other", 6, 1, 0, 0))
	if got := decisionsAfter(e, job("large", "own", 4, 1, 0, 1), job("small", "own", 1, 1, 0, 2)); len(got) != 2 || got[0] != "admit small in own" {
		t.Errorf("got decisions %q, want small admitted under BestEffortFIFO", got)
	}
}

func TestKeptQuotaIsLentOnceNoWorkloadWaitsForIt(t *testing.T) {
	e := New(Options{})
	decisionsAfter(e, defaultFlavor, queueOf("own", "lab", 4), queueOf("other", "lab", 4), localOf("own"), localOf("other"),
		job("running", "other", 6, 1, 0, 0))
	decisionsAfter(e, job("large", "own", 4, 1, 0, 1))
	if got := decisionsAfter(e, job("b", "other", 2, 1, 0, 2)); len(got) != 1 || e.Holds(Key{Namespace: "ns", Name: "b"}) != nil {
		t.Errorf("got decisions %q, want b to wait: large waits for that quota", got)
	}
	if got := decisionsAfter(e, gone("large")); len(got) != 1 || got[0] != "admit b in other" {
		t.Errorf("after large was deleted: got decisions %q, want b admitted", got)
	}
}

// TestFirstInOrderKeepsTheLastPiece: two queues wait for their own quota, of which a third has borrowed all but one
// piece. That piece is reserved for the first in order, whatever the order of creation or evaluation.
func TestFirstInOrderKeepsTheLastPiece(t *testing.T) {
	queues := []Event{defaultFlavor, queueOf("a", "lab", 2), queueOf("b", "lab", 2), queueOf("c", "lab", 0),
		localOf("a"), localOf("b"), localOf("c")}
	borrower := job("borrower", "c", 3, 1, 0, 0)
	for name, tc := range map[string]struct {
		largeA, largeB int // since when
		admitted       string
	}{
		"a has waited longer": {largeA: 1, largeB: 2, admitted: "smallA"},
		"b has waited longer": {largeA: 2, largeB: 1, admitted: "smallB"},
	} {
		for order, jobs := range map[string][]string{
			"a is created first": {"largeA", "largeB", "smallB", "smallA"},
			"b is created first": {"largeB", "largeA", "smallA", "smallB"},
		} {
			t.Run(name+", "+order, func(t *testing.T) {
				all := map[string]WorkloadSet{
					"largeA": job("largeA", "a", 2, 1, 0, tc.largeA), "smallA": job("smallA", "a", 1, 1, 0, 10),
					"largeB": job("largeB", "b", 2, 1, 0, tc.largeB), "smallB": job("smallB", "b", 1, 1, 0, 11),
				}
				e := New(Options{})
				decisionsAfter(e, append(queues, borrower)...)
				for _, name := range jobs {
					decisionsAfter(e, all[name])
				}
				// The large ones do not fit; the last piece is for the small one of the queue for which it is reserved.
				for _, name := range []string{"smallA", "smallB"} {
					if holds := e.Holds(Key{Namespace: "ns", Name: name}) != nil; holds != (name == tc.admitted) {
						t.Errorf("%s holds quota = %t, want %s admitted", name, holds, tc.admitted)
					}
				}
			})
		}
	}
}

// TestKeptQuotaDoesNotBlockEarlierWorkloads: of two workloads that use their queues' own quota, the first in order
// need not wait for the other, which was created before it and does not fit.
func TestKeptQuotaDoesNotBlockEarlierWorkloads(t *testing.T) {
	e := New(Options{})
	decisionsAfter(e, defaultFlavor, queueOf("a", "lab", 2), queueOf("b", "lab", 2), queueOf("c", "lab", 0), localOf("a"), localOf("b"), localOf("c"),
		job("borrower", "c", 3, 1, 0, 0))
	decisionsAfter(e, job("low", "a", 2, 1, 0, 1))
	if got := decisionsAfter(e, job("borrower2", "c", 1, 1, 5, 2)); len(got) != 1 || e.Holds(Key{Namespace: "ns", Name: "borrower2"}) != nil {
		t.Errorf("got decisions %q, want the borrower to wait for the reserved quota, whatever its priority", got)
	}
	if got := decisionsAfter(e, job("later", "b", 1, 1, 0, 3)); e.Holds(Key{Namespace: "ns", Name: "later"}) != nil {
		t.Errorf("got decisions %q, want a later workload to wait for the reserved quota", got)
	}
	if got := decisionsAfter(e, job("high", "b", 1, 1, 1, 4)); len(got) != 1 || got[0] != "admit high in b" {
		t.Errorf("got decisions %q, want the earlier workload admitted", got)
	}
}

// threeQueues returns a scene in which a and b have 2 cpu and 2 gpu each, of which c has borrowed all but one cpu.
func threeQueues(t *testing.T) *scene {
	of := func(name string, amount int64) ClusterQueueSet {
		q := byResource(amount, amount)
		q.Name, q.Cohort, q.Strategy = name, "lab", BestEffort
		return q
	}
	borrower := job("borrower", "c", 1, 3, 0, 0)
	borrower.PodSets[0].PerPod["gpu"] = 4
	return newScene(t, Options{}, of("a", 2), of("b", 2), of("c", 0), localOf("a"), localOf("b"), localOf("c"), borrower)
}

// TestKeptQuotaIsGivenAnewWhen the queue keeps it for another workload: the last cpu is kept for the first in order.
func TestKeptQuotaIsGivenAnewWhen(t *testing.T) {
	const waits = " waits: WaitingForQuota"
	onlyGPU := job("gpu", "b", 1, 0, 0, 1)
	onlyGPU.PodSets[0].PerPod["gpu"] = 2
	for name, tc := range map[string]struct {
		waiting []Event
		event   Event
		want    []string
	}{
		"a later one of its class is the first": {
			[]Event{job("first", "a", 2, 1, 0, 1), job("last", "a", 2, 1, 0, 9), job("between", "b", 1, 1, 0, 5)},
			gone("first"), []string{"admit between in b"}},
		"an earlier one arrives, behind which others may pass": {
			[]Event{job("first", "b", 2, 1, 0, 1), job("small", "a", 1, 1, 0, 9)},
			job("earlier", "a", 2, 1, 1, 10), []string{"admit small in a", "earlier" + waits}},
		"an earlier one requests it, behind one of its queue that requests something else": {
			[]Event{onlyGPU, job("later", "a", 2, 1, 0, 9)},
			job("earlier", "b", 1, 1, 0, 5), []string{"admit earlier in b"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := threeQueues(t)
			for _, ev := range tc.waiting {
				s.want("it arrives", s.happens(ev), ev.(WorkloadSet).Key.Name+waits)
			}
			s.want("the event", s.happens(tc.event), tc.want...)
		})
	}
}
