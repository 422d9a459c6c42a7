package engine

import (
	"testing"

	"github.com/musterhq/muster/internal/engine/flavor"
	"github.com/musterhq/muster/internal/engine/preempt"
	"github.com/musterhq/muster/internal/engine/quota"
)

// ranked returns a queue of the rank without quota of its own that may borrow up to a bound.
func ranked(name string, rank int32, bound int64) ClusterQueueSet {
	q := queueOf(name, "cluster", 0)
	q.Preemption.Rank = rank
	q.Fungibility = flavor.Fungibility{NextBeforePreempting: true}
	q.Quotas = quota.Quotas{{Flavor: "default", Resource: "cpu"}: {Borrowing: bound, Lending: quota.Unlimited}}
	return q
}

func protected(q ClusterQueueSet) ClusterQueueSet { q.Preemption.Protected = true; return q }

// TestQueuesOfAHigherRank is the table of the public description: a cluster of 300, queues with bounds and ranks, and
// the result of one more workload in each.
func TestQueuesOfAHigherRank(t *testing.T) {
	cluster := func(change func(ClusterQueueSet) ClusterQueueSet) *scene {
		s := newScene(t, Options{}, cohortOf("cluster", "", 300),
			change(ranked("a", 1, 200)), localOf("a"), ranked("b", 1, 100), localOf("b"), ranked("c", 2, 50), localOf("c"), ranked("d", 2, 200), localOf("d"))
		s.want("the initial workloads", s.happens(
			job("a1", "a", 1, 50, 2, 0), job("a2", "a", 1, 50, 2, 1), job("a3", "a", 1, 50, 1, 2),
			job("b1", "b", 1, 50, 5, 3), job("c1", "c", 1, 50, 0, 4), job("d1", "d", 1, 50, 0, 5)),
			"admit c1 in c", "admit d1 in d", "admit b1 in b", "admit a1 in a", "admit a2 in a", "admit a3 in a")
		return s
	}
	same := func(q ClusterQueueSet) ClusterQueueSet { return q }

	s := cluster(same)
	s.want("one more in the queue of low rank", s.happens(job("b2", "b", 1, 50, 9, 10)), "b2 waits: WaitingForQuota")
	s.want("one more beyond the borrowing bound", s.happens(job("c2", "c", 1, 50, 9, 11)), "c2 waits: WaitingForQuota")
	s.want("one more in the queue of high rank", s.happens(job("d2", "d", 1, 50, 0, 12)),
		"evict a3 for d2: while borrowing", "d2 waits: WaitingForPreemptedWorkloads")

	s = cluster(protected)
	s.want("one more in the queue of high rank, and the lowest queue is protected", s.happens(job("d2", "d", 1, 50, 0, 12)),
		"evict b1 for d2: while borrowing", "d2 waits: WaitingForPreemptedWorkloads")
}

// TestHigherQueueLosesOnlyBorrowedQuota: a queue of higher rank returns borrowed quota to its owner, but loses nothing
// to a workload of higher priority in a lower queue that borrows itself.
func TestHigherQueueLosesOnlyBorrowedQuota(t *testing.T) {
	low := queueOf("low", "cluster", 1)
	low.Preemption = preempt.Policy{Reclaim: preempt.LowerPriority, WhileBorrowing: true}
	high := ranked("high", 5, 10)
	s := newScene(t, Options{}, cohortOf("cluster", "", 1), low, localOf("low"), high, localOf("high"))
	s.want("the higher queue gets all", s.happens(job("h", "high", 2, 1, 0, 0)), "admit h in high")
	s.want("a workload that would borrow arrives", s.happens(job("l2", "low", 2, 1, 9, 1)), "l2 waits: WaitingForQuota")
	s.want("a workload within its queue's own quota arrives", s.happens(job("l1", "low", 1, 1, 9, 2)),
		"evict h for l1: reclaimed", "l1 waits: WaitingForPreemptedWorkloads")
}
