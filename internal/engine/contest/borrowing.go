package contest

import (
	"container/heap"

	"github.com/musterhq/muster/internal/engine/order"
	"github.com/musterhq/muster/internal/engine/quota"
)

// byBorrowing is the contest in which queues of a higher rank go first, then those that borrow less, then the first
// in order: a heap.
type byBorrowing struct{ heads borrowingHeap }

func (b *byBorrowing) Add(c *Contestant) { heap.Push(&b.heads, c) }

func (b *byBorrowing) First() *Contestant {
	if len(b.heads) == 0 {
		return nil
	}
	return b.heads[0]
}

func (b *byBorrowing) Replace(_, next *Contestant) {
	if next == nil {
		heap.Pop(&b.heads)
		return
	}
	b.heads[0] = next
	heap.Fix(&b.heads, 0)
}

// Recharged does nothing: contestants with an outdated outcome are stale.
func (b *byBorrowing) Recharged(*quota.Node) {}

type borrowingHeap []*Contestant

func (bh borrowingHeap) Len() int { return len(bh) }
func (bh borrowingHeap) Less(i, j int) bool {
	if a, b := bh[i].QueueRank, bh[j].QueueRank; a != b {
		return a > b
	}
	if bh[i].Borrowing != bh[j].Borrowing {
		return bh[i].Borrowing < bh[j].Borrowing
	}
	return order.Compare(bh[i].Rank, bh[j].Rank) < 0
}
func (bh borrowingHeap) Swap(i, j int) { bh[i], bh[j] = bh[j], bh[i] }
func (bh *borrowingHeap) Push(x any)   { *bh = append(*bh, x.(*Contestant)) }
func (bh *borrowingHeap) Pop() any {
	last := len(*bh) - 1
	c := (*bh)[last]
	*bh = (*bh)[:last]
	return c
}
