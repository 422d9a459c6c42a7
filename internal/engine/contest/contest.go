// Package contest decides which of the heads of a family's queues goes next: the heads are the first workloads of the
// queues that can be given something now. There are two rules. Without fair sharing, queues of a higher rank go first,
// then those that borrow less, then the first workload in order. With fair sharing, the heads play a tournament along
// the tree of cohorts. The package knows neither workloads nor what is done for them.
package contest

import (
	"github.com/musterhq/muster/internal/engine/order"
	"github.com/musterhq/muster/internal/engine/quota"
)

// Contestant is the head of a queue.
type Contestant struct {
	// Of is the head as its owner knows it.
	Of any
	// Queue is its queue, QueueRank the rank of the queue in its cohort.
	Queue     *quota.Node
	QueueRank int32
	// Rank is that of its workload.
	Rank order.Rank
	// Usage is what it would take, Borrowing the level from which that would be borrowed, as in flavor.Choice.
	Usage     quota.Vector
	Borrowing int

	at order.Place // in the heap of byBorrowing
}

// Contest decides which head goes next.
type Contest interface {
	// Add adds the head of a queue.
	Add(c *Contestant)
	// First returns the head that goes next, nil if none is left.
	First() *Contestant
	// Replace replaces the contestant that was first by the next head of the same queue, nil if it has none.
	Replace(was, next *Contestant)
	// Recharged is called after the planned usage of a queue has changed, whether or not it is in the contest, and after
	// Replace if both apply.
	Recharged(queue *quota.Node)
}

// New returns a contest without contestants, by fair shares or by what queues borrow.
func New(fair bool) Contest {
	if fair {
		return &tournament{brackets: brackets{}}
	}
	return newByBorrowing()
}
