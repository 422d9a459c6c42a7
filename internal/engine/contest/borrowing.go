package contest

import (
	"cmp"

	"github.com/musterhq/muster/internal/engine/order"
	"github.com/musterhq/muster/internal/engine/quota"
)

// byBorrowing is the contest in which queues of a higher rank go first, then those that borrow less, then the first
// in order.
type byBorrowing struct{ heads order.Heap[*Contestant] }

func newByBorrowing() *byBorrowing {
	return &byBorrowing{order.NewHeap((*Contestant).before, func(c *Contestant) *order.Place { return &c.at })}
}

func (b *byBorrowing) Add(c *Contestant) { b.heads.Put(c) }

func (b *byBorrowing) First() *Contestant {
	if b.heads.Len() == 0 {
		return nil
	}
	return b.heads.First()
}

func (b *byBorrowing) Replace(was, next *Contestant) {
	b.heads.Remove(was)
	if next != nil {
		b.heads.Put(next)
	}
}

// Recharged does nothing: contestants with an outdated outcome are stale.
func (b *byBorrowing) Recharged(*quota.Node) {}

// before reports whether the contestant goes before the other one if they do not compare fair shares.
func (c *Contestant) before(other *Contestant) bool {
	return cmp.Or(cmp.Compare(other.QueueRank, c.QueueRank), cmp.Compare(c.Borrowing, other.Borrowing),
		order.Compare(c.Rank, other.Rank)) < 0
}
