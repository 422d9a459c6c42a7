package contest

import (
	"slices"

	"github.com/musterhq/muster/internal/engine/fair"
	"github.com/musterhq/muster/internal/engine/order"
	"github.com/musterhq/muster/internal/engine/quota"
)

// tournament is the contest by fair shares. In each cohort, the winners of its children are compared: one that stays
// within its queue's own quota wins, then the one with which its child of the cohort has the smaller share, then the
// first in order. The winner of the root goes next.
//
// When something changes in a queue, only the matches of the nodes above that queue are repeated.
type tournament struct {
	brackets brackets
	root     *bracket
}

type brackets map[*quota.Node]*bracket

// bracket is a node of the tree with the winner below it.
type bracket struct {
	node   *quota.Node
	parent *bracket
	// children are the brackets with a winner, the best one first; at is the position in that of the parent.
	children order.Heap[*bracket]
	at       order.Place
	// winner is nil if no contestant is left. share is what the node's share would be with it, passed what its parent
	// would have to lend, and borrows is set if the winner's queue would borrow.
	winner  *Contestant
	share   fair.Share
	passed  quota.Vector
	borrows bool
}

func (t *tournament) Add(c *Contestant) { t.seat(c.Queue, c) }

func (t *tournament) First() *Contestant {
	if t.root == nil {
		return nil
	}
	return t.root.winner
}

func (t *tournament) Replace(was, next *Contestant) { t.seat(was.Queue, next) }

func (t *tournament) Recharged(queue *quota.Node) {
	for n := queue; n != nil; n = n.Parent() {
		if b := t.brackets[n]; b != nil {
			t.replay(b) // no bracket below it exists
			return
		}
	}
}

// seat sets the contestant of a queue, nil for none.
func (t *tournament) seat(queue *quota.Node, c *Contestant) {
	b := t.bracket(queue)
	b.winner = c
	t.replay(b)
}

// bracket returns the bracket of a node, creating it and those above it as needed.
func (t *tournament) bracket(n *quota.Node) *bracket {
	if b := t.brackets[n]; b != nil {
		return b
	}
	b := &bracket{node: n, children: order.NewHeap((*bracket).before, func(b *bracket) *order.Place { return &b.at })}
	t.brackets[n] = b
	if n.Parent() == nil {
		t.root = b
	} else {
		b.parent = t.bracket(n.Parent())
	}
	return b
}

// replay repeats the matches of the bracket and of all above it.
func (t *tournament) replay(b *bracket) {
	for ; b != nil; b = b.parent {
		b.settle()
		if b.parent != nil {
			b.parent.arrange(b)
		}
	}
}

// settle determines the winner below the node, and the node's share with it.
func (b *bracket) settle() {
	var asked quota.Vector
	switch {
	case !b.node.IsQueue() && b.children.Len() == 0:
		b.winner = nil
	case !b.node.IsQueue():
		best := b.children.First()
		b.winner, b.borrows, asked = best.winner, best.borrows, best.passed
	case b.winner != nil:
		asked = b.winner.Usage
		b.borrows = slices.ContainsFunc(asked,
			func(a quota.Amount) bool { return b.node.Over(quota.Planned, a.Index, a.Value) > 0 })
	}
	if b.winner != nil && b.parent != nil {
		b.share = fair.Of(b.node, quota.Planned, asked)
		b.passed = fair.Passed(b.node, quota.Planned, asked)
	}
}

func (b *bracket) before(other *bracket) bool {
	if b.borrows != other.borrows {
		return other.borrows
	}
	if by := b.share.Compare(other.share); by != 0 {
		return by < 0
	}
	return order.Compare(b.winner.Rank, other.winner.Rank) < 0
}

// arrange updates the position of the child among the others; a child without a winner is removed.
func (b *bracket) arrange(child *bracket) {
	if child.winner == nil {
		b.children.Remove(child)
		return
	}
	b.children.Put(child)
}
