package engine

import (
	"container/heap"

	"github.com/musterhq/muster/internal/engine/order"
)

// contestant is the head of a queue and what was found out about it.
type contestant struct {
	queue   *clusterQueue
	class   *class
	rank    order.Rank
	version int
	outcome
}

// stale tells that what was found out may be wrong by now.
func (c *contestant) stale() bool {
	return c.version != c.queue.family.version || !c.class.at.IsFirst() || c.class.head() != c.rank
}

// contest finds out whose turn it is among the heads of the queues of a family.
type contest interface {
	// add takes in the head of a queue.
	add(c *contestant)
	// first is the one whose turn it is, nil if nobody is left.
	first() *contestant
	// replace puts next in the place of the one that was first: the next head of the same
	// queue, nil if it has none.
	replace(was, next *contestant)
	// recharged tells that what is planned of a queue has changed, be it in the contest
	// or not. It comes after replace where that is due too.
	recharged(q *clusterQueue)
}

// newContest is the contest of a family by the rules that are configured.
func (e *Engine) newContest() contest {
	if e.options.FairSharing != nil {
		return &tournament{brackets: brackets{}}
	}
	return &byBorrowing{}
}

// byBorrowing is the contest in which queues of a higher rank go first, then whoever
// borrows less, then who is first in order: a heap.
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

// recharged changes nothing: who was found out about something that is no longer true
// is stale.
func (b *byBorrowing) recharged(*clusterQueue) {}

type borrowingHeap []*contestant

func (h borrowingHeap) Len() int { return len(h) }
func (h borrowingHeap) Less(i, j int) bool {
	if a, b := h[i].queue.Preemption.Rank, h[j].queue.Preemption.Rank; a != b {
		return a > b
	}
	if h[i].choice.Borrowing != h[j].choice.Borrowing {
		return h[i].choice.Borrowing < h[j].choice.Borrowing
	}
	return order.Compare(h[i].rank, h[j].rank) < 0
}
func (h borrowingHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *borrowingHeap) Push(x any)   { *h = append(*h, x.(*contestant)) }
func (h *borrowingHeap) Pop() any {
	last := len(*h) - 1
	c := (*h)[last]
	*h = (*h)[:last]
	return c
}
