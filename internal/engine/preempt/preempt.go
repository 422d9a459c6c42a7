package preempt

import (
	"cmp"
	"math"
	"time"

	"github.com/musterhq/muster/internal/engine/order"
	"github.com/musterhq/muster/internal/engine/quota"
)

// Rule says which workloads may be evicted.
type Rule int

const (
	// Never evicts no workloads.
	Never Rule = iota
	// LowerPriority evicts workloads of lower priority.
	LowerPriority
	// LowerOrNewerEqualPriority also evicts those of equal priority that were queued later.
	LowerOrNewerEqualPriority
	// Any evicts workloads of any priority.
	Any
)

// Policy is the preemption policy of a ClusterQueue.
type Policy struct {
	// WithinQueue applies to workloads of the same queue, Reclaim to those that borrow the queue's own quota.
	WithinQueue, Reclaim Rule
	// WhileBorrowing lets a workload that borrows evict borrowers of lower priority; Threshold is the highest
	// priority that it may evict, nil for no bound.
	WhileBorrowing bool
	Threshold      *int32
	// Standing is that of the queue in its cohort.
	Standing
}

// Standing is how a queue compares to the other queues of its cohort. The zero value is the default.
type Standing struct {
	// Rank lets the queue's workloads evict, even while they borrow, workloads of lower-ranked queues that borrow,
	// regardless of priority. Workloads of higher-ranked queues are evicted only to reclaim the queue's own quota.
	Rank int32
	// Protected excludes the queue's workloads from preemption by other queues. The JSON name is that of recorded logs.
	Protected bool `json:"Kept"`
}

// Allows reports whether any workload may be evicted at all.
func (p Policy) Allows() bool {
	return p.WithinQueue != Never || p.Reclaim != Never || p.MayWhileBorrowing()
}

// MayWhileBorrowing reports whether a workload that borrows may evict other borrowers.
func (p Policy) MayWhileBorrowing() bool { return p.WhileBorrowing || p.Rank > 0 }

// Cause is why a workload is evicted.
type Cause int

const (
	// InQueue: for another workload of the same queue.
	InQueue Cause = iota
	// Reclaimed: to give back what was borrowed.
	Reclaimed
	// ReclaimedWhileBorrowing: for a workload of higher priority that borrows too.
	ReclaimedWhileBorrowing
	// FairShare: for a fairer share of the cohort.
	FairShare
	// NodeFailures: not for another workload; its nodes failed, and there are no other places for it that are close
	// enough.
	NodeFailures
)

// Holder is a workload that holds quota of a queue or has some nominated.
type Holder struct {
	Key      order.Key
	Priority int32
	// QueuedAt is the time since which it had been waiting, ReservedAt when it got its quota.
	QueuedAt, ReservedAt time.Time
	Usage                quota.Vector
	// Pod is what one pod takes if the holder can run with fewer pods, nil otherwise; Spare is how many pods it can
	// give up without being stopped.
	Pod   quota.Vector
	Spare int32
	// Nominated is set if it only has a nomination: taking that away stops nothing.
	Nominated bool
}

// CompareHolders orders holders by the harm of their eviction: nominations first, then lower priorities, then the most
// recent reservations.
func CompareHolders(a, b *Holder) int {
	return cmp.Or(
		order.TrueFirst(a.Nominated, b.Nominated),
		cmp.Compare(a.Priority, b.Priority),
		b.ReservedAt.Compare(a.ReservedAt),
		order.CompareKeys(a.Key, b.Key),
	)
}

// NodeCapacity tells whether the preemptor has capacity on nodes once all evicted workloads are gone.
type NodeCapacity interface {
	// Try runs f and rolls back every Without in it.
	Try(f func())
	// Without takes this number of a holder's pods off the nodes, counted from its present state: none for 0, all for
	// All.
	Without(holder *Holder, pods int32)
	// Fits reports whether all pods of the preemptor fit. If they do, they also fit with more pods gone.
	Fits() bool
}

// All is more than the pods of any holder.
const All int32 = math.MaxInt32

// Victim is a workload to evict or shrink.
type Victim struct {
	*Holder
	Queue *quota.Node
	Cause Cause
	// Gives is the number of pods by which it shrinks, 0 if it is evicted.
	Gives int32
	// Equal is set if it shrinks for a workload of the same queue and priority, for which it must not be stopped.
	Equal bool
	// gave is the number of pods that a victim had given before it was chosen to stop.
	gave int32
}

// Stops reports whether the victim is evicted rather than shrunk.
func (v *Victim) Stops() bool { return v.Gives == 0 }

// Releases returns the quota that the victim gives back.
func (v *Victim) Releases() quota.Vector {
	switch {
	case v.Gives > 0:
		return v.Pod.Times(v.Gives)
	case v.gave > 0:
		return v.Usage.Minus(v.Pod.Times(v.gave))
	}
	return v.Usage
}

// Without returns the number of its pods to take off the nodes, as for NodeCapacity.Without.
func (v *Victim) Without() int32 {
	if v.Stops() {
		return All
	}
	return v.Gives
}

// Holders returns the holders of a queue that may be evicted, in the order of CompareHolders, and whether any of them
// has a Pod.
type Holders func(queue *quota.Node) (holders []*Holder, elastic bool)

// Search returns the workloads to evict or shrink, in the order in which they were chosen, so that the preemptor fits
// in the planned ledger; none if nothing helps. It leaves the tree as it was.
func Search(tree *quota.Tree, p Preemptor, holders Holders) []Victim {
	s := search{tree: tree, Preemptor: p}
	s.collect(holders)
	return s.victims()
}

// victims returns what Search returns, of the candidates listed.
func (s *search) victims() []Victim {
	if !s.worthTrying() {
		return nil
	}
	if len(s.Fair) > 0 {
		return s.byShares()
	}
	s.sortCandidates()
	for _, borrow := range s.attempts() {
		if victims := s.try(borrow); len(victims) > 0 {
			return victims
		}
	}
	return nil
}
