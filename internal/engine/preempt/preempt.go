package preempt

import (
	"cmp"
	"math"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/musterhq/muster/internal/engine/order"
	"github.com/musterhq/muster/internal/engine/quota"
)

// Rule says which workloads may be evicted.
type Rule int

const (
	// Never evicts nobody.
	Never Rule = iota
	// LowerPriority evicts workloads of lower priority.
	LowerPriority
	// LowerOrNewerEqualPriority also evicts those of the same priority that wait since later.
	LowerOrNewerEqualPriority
	// Any evicts whatever the priority.
	Any
)

// Policy is what a ClusterQueue lets its workloads do.
type Policy struct {
	// WithinQueue is for others of the queue, Reclaim for those that borrow what is
	// the queue's own.
	WithinQueue, Reclaim Rule
	// WhileBorrowing lets a workload evict borrowers of lower priority though it borrows
	// itself; Threshold is the highest priority that it may, nil for no bound.
	WhileBorrowing bool
	Threshold      *int32
	// Standing of the queue beside the others of its cohort.
	Standing
}

// Standing is how a queue stands beside the others of its cohort. The zero value is
// that of a queue of which nothing is said.
type Standing struct {
	// Rank lets its workloads evict, while they borrow too, what queues of a lower one
	// borrow, whatever the priorities; those of queues of a higher one are evicted only
	// for what is owed.
	Rank int32
	// Kept has its workloads evicted for none of another queue.
	Kept bool
}

// Allows reports whether anybody may be evicted at all.
func (p Policy) Allows() bool {
	return p.WithinQueue != Never || p.Reclaim != Never || p.MayWhileBorrowing()
}

// MayWhileBorrowing reports whether a workload may evict borrowers though it borrows
// itself.
func (p Policy) MayWhileBorrowing() bool { return p.WhileBorrowing || p.Rank > 0 }

// Cause is why somebody is evicted.
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
	// NodeFailures: for nobody; its nodes failed, and there are no others for it near
	// enough.
	NodeFailures
)

// Holder is a workload that holds quota of a queue, or was promised some.
type Holder struct {
	Key      order.Key
	Priority int32
	// QueuedAt is the time from which it waited, ReservedAt when it was given its quota.
	QueuedAt, ReservedAt time.Time
	Usage                quota.Vector
	// Pod is what one pod takes of a holder that can do with fewer of them, nil of any other,
	// and Spare how many it can do without before it has to stop.
	Pod   quota.Vector
	Spare int32
	// Promised tells that it holds nothing yet: to take it away harms nobody.
	Promised bool
}

// CompareHolders puts those first whose eviction does the least harm: who has
// nothing yet, then the lower priority, then who was given quota last.
func CompareHolders(a, b *Holder) int {
	if a.Promised != b.Promised {
		if a.Promised {
			return -1
		}
		return 1
	}
	return cmp.Or(
		cmp.Compare(a.Priority, b.Priority),
		b.ReservedAt.Compare(a.ReservedAt),
		order.CompareKeys(a.Key, b.Key),
	)
}

// Preemptor is the workload that needs room.
type Preemptor struct {
	Queue    *quota.Node
	Policy   Policy
	Priority int32
	QueuedAt time.Time
	// Usage is all that it will hold, Short those of it that are not there.
	Usage quota.Vector
	Short []quota.Index
	// Spared may not be evicted whatever the policy.
	Spared sets.Set[order.Key]
	// StandingOf is how a queue stands, nil if nothing is said of any.
	StandingOf func(queue *quota.Node) Standing
	// Room is on nodes, nil where only quota matters.
	Room Room
	// Fair are the strategies by which shares of the cohort are compared, none if they
	// are not.
	Fair []Strategy
}

// may reports whether the rule lets the preemptor evict the holder.
func (p *Preemptor) may(rule Rule, h *Holder) bool {
	switch rule {
	case LowerPriority:
		return h.Priority < p.Priority
	case LowerOrNewerEqualPriority:
		return h.Priority < p.Priority || h.Priority == p.Priority && p.QueuedAt.Before(h.QueuedAt)
	case Any:
		return true
	default:
		return false
	}
}

// Room is what the preemptor needs on nodes beside quota: once everyone has gone who was
// told to.
type Room interface {
	// Try runs f and undoes every Without in it.
	Try(f func())
	// Without takes so many pods of a holder off the nodes, of those that it has there: none
	// for 0, and all of them for All.
	Without(holder *Holder, pods int32)
	// Fits reports whether there is room for all pods of the preemptor. Where it does, it
	// does with more pods gone.
	Fits() bool
}

// All are more pods than any holder has.
const All int32 = math.MaxInt32

// Victim is who should go, or do with fewer pods, and why.
type Victim struct {
	*Holder
	Queue *quota.Node
	Cause Cause
	// Gives is how many pods it does without and goes on, 0 for one that has to go.
	Gives int32
	// Equal says that it gives them as one of the same queue and priority, who may not be stopped.
	Equal bool
	// gave is how many it does without already, of one that has to go after all.
	gave int32
}

// Stops reports whether the victim has to go.
func (v *Victim) Stops() bool { return v.Gives == 0 }

// Releases is what the victim gives back.
func (v *Victim) Releases() quota.Vector {
	switch {
	case v.Gives > 0:
		return v.Pod.Times(v.Gives)
	case v.gave > 0:
		return v.Usage.Minus(v.Pod.Times(v.gave))
	}
	return v.Usage
}

// Without is of how many of its pods the nodes are rid, as Room has it.
func (v *Victim) Without() int32 {
	if v.Stops() {
		return All
	}
	return v.Gives
}

// Holders lists those that hold quota of a queue and may be evicted, in the order of
// CompareHolders.
type Holders func(queue *quota.Node) []*Holder

// Search returns who has to go, or to do with fewer pods, so that the preemptor fits within
// what is planned, in the order in which they were chosen; none if nothing helps. It leaves
// the tree as it was.
func Search(tree *quota.Tree, p Preemptor, holders Holders) []Victim {
	s := search{tree: tree, Preemptor: p}
	s.collect(holders)
	if !s.worthTrying() {
		return nil
	}
	if len(p.Fair) > 0 {
		return s.byShares()
	}
	for _, borrow := range s.attempts() {
		if victims := s.try(borrow); len(victims) > 0 {
			return victims
		}
	}
	return nil
}
