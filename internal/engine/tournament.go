package engine

import (
	"slices"

	"github.com/musterhq/muster/internal/engine/fair"
	"github.com/musterhq/muster/internal/engine/order"
	"github.com/musterhq/muster/internal/engine/quota"
)

// tournament is the contest by fair shares. In every cohort those that won below it
// meet: who asks for no more than its queue's own quota wins, then the one whose child
// of the cohort has the smaller share with it, then who is first in order. Whoever wins
// in the root goes first.
//
// When something changes in a queue, only the matches over that queue are held again.
type tournament struct {
	brackets brackets
	root     *bracket
}

type brackets map[*quota.Node]*bracket

// bracket is a node of the tree and who has won below it.
type bracket struct {
	node   *quota.Node
	parent *bracket
	// children are those in which somebody is left, the best one first; at is the place
	// among those of the parent.
	children order.Heap[*bracket]
	at       order.Place
	// winner is nil if nobody is left. With it, the node has the share, and its parent has
	// to lend it what was passed; borrows tells that its queue borrows for it.
	winner  *contestant
	share   fair.Share
	passed  quota.Vector
	borrows bool
}

func (t *tournament) add(c *contestant) { t.seat(c.queue.node, c) }

func (t *tournament) first() *contestant {
	if t.root == nil {
		return nil
	}
	return t.root.winner
}

func (t *tournament) replace(was, next *contestant) { t.seat(was.queue.node, next) }

func (t *tournament) recharged(q *clusterQueue) {
	for n := q.node; n != nil; n = n.Parent() {
		if b := t.brackets[n]; b != nil {
			t.replay(b) // below it nobody has ever been in the contest
			return
		}
	}
}

// seat puts the contestant, nil for nobody, in the place of a queue.
func (t *tournament) seat(queue *quota.Node, c *contestant) {
	b := t.bracket(queue)
	b.winner = c
	t.replay(b)
}

// bracket is that of a node, which is made with those above it when it is needed.
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

// replay holds the matches of the bracket and of all above it again.
func (t *tournament) replay(b *bracket) {
	for ; b != nil; b = b.parent {
		b.settle()
		if b.parent != nil {
			b.parent.arrange(b)
		}
	}
}

// settle finds out who wins below the node, and its share with him.
func (b *bracket) settle() {
	var asked quota.Vector
	switch {
	case !b.node.IsQueue() && b.children.Len() == 0:
		b.winner = nil
	case !b.node.IsQueue():
		best := b.children.First()
		b.winner, b.borrows, asked = best.winner, best.borrows, best.passed
	case b.winner != nil:
		asked = b.winner.choice.Usage
		b.borrows = slices.ContainsFunc(asked, func(a quota.Amount) bool { return b.node.Over(quota.Planned, a.Index, a.Value) > 0 })
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
	return order.Compare(b.winner.rank, other.winner.rank) < 0
}

// arrange has the child, in which somebody may be left, take its place among the others.
func (b *bracket) arrange(child *bracket) {
	if child.winner == nil {
		b.children.Remove(child)
		return
	}
	b.children.Put(child)
}
