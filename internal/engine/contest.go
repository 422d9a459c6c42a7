package engine

import (
	"container/heap"

	"github.com/musterhq/muster/internal/engine/order"
)

// contestant is the head of a queue with the outcome of its evaluation.
type contestant struct {
	queue   *clusterQueue
	class   *class
	rank    order.Rank
	version int
	outcome
}

// stale reports whether the outcome may be out of date.
func (c *contestant) stale() bool {
	return c.version != c.queue.family.version || !c.class.IsFirst() || c.class.Head() != c.rank
}

// contest decides which of the heads of a family's queues goes next.
type contest interface {
	// add adds the head of a queue.
	add(c *contestant)
	// first returns the head that goes next, nil if none is left.
	first() *contestant
	// replace replaces the contestant that was first by the next head of the same queue, nil if it has none.
	replace(was, next *contestant)
	// recharged is called after the planned usage of a queue has changed, whether or not it is in the contest, and
	// after replace if both apply.
	recharged(q *clusterQueue)
}

// newContest returns the contest for the configured rules.
func (e *Engine) newContest() contest {
	if e.options.FairSharing != nil {
		return &tournament{brackets: brackets{}}
	}
	return &byBorrowing{}
}

// byBorrowing is the contest in which queues of a higher rank go first, then those that borrow less, then the first
// in order: a heap.
type byBorrowing struct{ heads borrowingHeap }

func (b *byBorrowing) add(c *contestant) { heap.Push(&b.heads, c) }

func (b *byBorrowing) first() *contestant {
	if len(b.heads) == 0 {
		return nil
	}
	return b.heads[0]
}

func (b *byBorrowing) replace(_, next *contestant) {
	if next == nil {
		heap.Pop(&b.heads)
		return
	}
	b.heads[0] = next
	heap.Fix(&b.heads, 0)
}

// recharged does nothing: contestants with an outdated outcome are stale.
func (b *byBorrowing) recharged(*clusterQueue) {}

type borrowingHeap []*contestant

func (bh borrowingHeap) Len() int { return len(bh) }
func (bh borrowingHeap) Less(i, j int) bool {
	if a, b := bh[i].queue.Preemption.Rank, bh[j].queue.Preemption.Rank; a != b {
		return a > b
	}
	if bh[i].choice.Borrowing != bh[j].choice.Borrowing {
		return bh[i].choice.Borrowing < bh[j].choice.Borrowing
	}
	return order.Compare(bh[i].rank, bh[j].rank) < 0
}
func (bh borrowingHeap) Swap(i, j int) { bh[i], bh[j] = bh[j], bh[i] }
func (bh *borrowingHeap) Push(x any)   { *bh = append(*bh, x.(*contestant)) }
func (bh *borrowingHeap) Pop() any {
	last := len(*bh) - 1
	c := (*bh)[last]
	*bh = (*bh)[:last]
	return c
}
