package engine

import (
	"testing"
	"time"

	"github.com/musterhq/muster/internal/engine/fair"
	"github.com/musterhq/muster/internal/engine/preempt"
)

// TestWorkloadBeforeAPromiseInAStrictQueueIsEvaluated: workloads before the promise are evaluated, and workloads after
// it report that they wait behind it.
func TestWorkloadBeforeAPromiseInAStrictQueueIsEvaluated(t *testing.T) {
	e := New(Options{})
	q := strict(queueOf("q", "", 4))
	q.Preemption.WithinQueue = 1 // LowerPriority
	decisionsAfter(e, defaultFlavor, q, localOf("q"), job("low", "q", 3, 1, 0, 0))
	confirmed := job("low", "q", 3, 1, 0, 0)
	confirmed.Admission = e.Holds(confirmed.Key)
	decisionsAfter(e, confirmed)
	decisionsAfter(e, job("promised", "q", 2, 1, 5, 1))
	if got := decisionsAfter(e, job("behind", "q", 1, 1, 0, 2)); len(got) != 1 {
		t.Errorf("the workload behind: got decisions %q, want one reason", got)
	}
	if got := decisionsAfter(e, job("urgent", "q", 1, 1, 9, 3)); len(got) != 1 || got[0] != "admit urgent in q" {
		t.Errorf("the workload before: got decisions %q, want its admission", got)
	}
}

// TestWorkloadThatBecomesTheHeadIsToldWhatItLacks: it had been told that it waits behind the head. The others are not
// told anything again.
func TestWorkloadThatBecomesTheHeadIsToldWhatItLacks(t *testing.T) {
	lacks := func(name string) string {
		return name + " waits: WaitingForQuota: couldn't assign flavors to pod set main: insufficient unused quota for cpu in flavor default, 1 more needed"
	}
	for behind, q := range map[string]ClusterQueueSet{
		"waits behind the head of ClusterQueue q, which is StrictFIFO":               strict(queueOf("q", "", 4000)),
		"an earlier workload of ClusterQueue q waits for some of the same resources": byResource(4000, 0),
	} {
		behind = " waits: WaitingForQuota: " + behind
		s := newScene(t, Options{}, q, localOf("q"))
		tell := func(events ...Event) []string { return decisionsAfter(s.engine, events...) }
		s.want("the jobs arrive", tell(job("running", "q", 3, 1000, 0, 0), job("head", "q", 1, 2000, 0, 1), job("second", "q", 2, 1000, 0, 2),
			job("third", "q", 2, 1000, 0, 3), job("last", "q", 4, 500, 0, 4)),
			"admit running in q", lacks("head"), "second"+behind, "third"+behind, "last"+behind)
		s.want("the head is gone", tell(gone("head")), lacks("second"))
		s.want("nothing more happens", tell())
		s.want("the second is gone", tell(gone("second")), lacks("third"))
		s.want("the third is gone", tell(gone("third")), lacks("last"))
	}
}

// TestInAStrictQueueByUsageNoneBelowAPromisePasses: only a workload whose LocalQueue has used less passes a promise.
func TestInAStrictQueueByUsageNoneBelowAPromisePasses(t *testing.T) {
	for name, tc := range map[string]struct {
		preemptor, other string // the LocalQueues of both
		priority         int32  // the priority of the other
		want, gone       []string
	}{
		"higher priority, but its LocalQueue has used more": {"q", "greedy", 5,
			[]string{"other waits: WaitingForQuota"}, []string{"admit large in q", "admit other in q", "borrower waits: WaitingForQuota"}},
		"lower priority, but its LocalQueue has used less": {"greedy", "q", -5,
			[]string{"admit other in q"}, []string{"admit large in q", "borrower waits: WaitingForQuota"}},
	} {
		t.Run(name, func(t *testing.T) {
			q := strict(evicting(queueOf("q", "lab", 4), preempt.Policy{Reclaim: preempt.Any}))
			q.ByUsage = true
			greedy := LocalQueueSet{LocalQueue{Key: Key{Namespace: "ns", Name: "greedy"}, ClusterQueue: "q",
				Consumed: fair.Consumption{"cpu": 1000}, ConsumedAt: epoch}}
			s := newScene(t, Options{AdmissionFairSharing: &AdmissionFairSharing{HalfLife: time.Hour, Interval: time.Hour}}, q, queueOf("other", "lab", 0),
				localOf("q"), greedy, localOf("other"), job("borrower", "other", 2, 1, 0, 0))
			s.want("the owner of the quota arrives", s.happens(job("large", tc.preemptor, 3, 1, 0, 1)),
				"evict borrower for large: reclaimed", "large waits: WaitingForPreemptedWorkloads")
			s.want("a workload arrives that fits", s.happens(job("other", tc.other, 1, 1, tc.priority, 2)), tc.want...)
			behind := tc.want[0] == "other waits: WaitingForQuota"
			if x, _ := s.engine.Explain(Key{Namespace: "ns", Name: "other"}); (x.Behind != nil) != behind {
				t.Errorf("Behind = %v, want one: %t", x.Behind, behind)
			}
			s.want("the borrower's pods are gone", s.happens(s.stopped("borrower")), tc.gone...)
		})
	}
}

// TestWhatIsFixedIsNoReasonBehindAHead: workloads that requested more than their queue could borrow wait behind its head
// once others can lend that.
func TestWhatIsFixedIsNoReasonBehindAHead(t *testing.T) {
	lent := func(cpu int64) Event { return queueOf("p", "lab", cpu) }
	s := newScene(t, Options{}, strict(queueOf("q", "lab", 4)), localOf("q"), lent(0), job("running", "q", 3, 1, 0, 0))
	s.want("two request too much", s.happens(job("large", "q", 6, 1, 0, 1), job("same", "q", 6, 1, 0, 2)),
		"large waits: ExceedsMaxQuota", "same waits: ExceedsMaxQuota")
	s.want("others lend quota, and another comes first", s.happens(lent(2), job("urgent", "q", 5, 1, 1, 3)),
		"urgent waits: WaitingForQuota", "large waits: WaitingForQuota", "same waits: WaitingForQuota")
	s.want("they lend less, and the two are not evaluated", s.happens(lent(1)))
	s.want("the head starts", s.happens(gone("running")), "admit urgent in q", "large waits: ExceedsMaxQuota", "same waits: ExceedsMaxQuota")
}

// TestWhatIsFixedIsNoReasonWhilePodsAreNotReady is the same while no workload is evaluated.
func TestWhatIsFixedIsNoReasonWhilePodsAreNotReady(t *testing.T) {
	s := newScene(t, Options{BlockUntilReady: BlockAll}, queueOf("q", "lab", 4), localOf("q"))
	s.want("one requests too much", s.happens(job("large", "q", 6, 1, 0, 1)), "large waits: ExceedsMaxQuota")
	s.want("another is admitted", s.happens(job("other", "q", 1, 1, 0, 2)), "admit other in q")
	s.want("another queue lends quota", s.happens(queueOf("p", "lab", 3)), "large waits: WaitingForPodsReady")
	s.want("the pods are ready", s.happens(s.changed("other", func(w *Workload) { w.Ready = true })), "admit large in q")
}
