package waiting

import (
	"slices"

	"github.com/musterhq/muster/internal/engine/quota"
)

// In a strict queue no workload passes a head that does not fit: all wait behind it. In a queue by resource no workload
// passes a head for what the head lacks: workloads that request any of it wait behind the head, and all others are
// evaluated. So there is a head for each kind of resource that is short.

// Head returns the blocked head of a strict queue, nil if there is none.
func (q *Queue) Head() *Class { return q.head }

// HoldAll makes the class, which was just blocked, the head of a strict queue: no other class is evaluated.
func (q *Queue) HoldAll(head *Class) { q.head = head }

// HoldFor makes the class, which was just blocked, a head behind which later classes wait that request any of what it
// lacks.
func (q *Queue) HoldFor(head *Class, lacks []quota.FlavorResource) {
	head.lacks, head.behind = lacks, map[*Class]struct{}{}
	q.heads = append(q.heads, head)
	q.demoteLater(head)
}

// demoteLater makes the heads ready that come after the given head and request what it lacks: they stop being heads
// while they wait behind it, so that the result does not depend on the order of evaluation. It reports whether there
// are any.
func (q *Queue) demoteLater(head *Class) (some bool) {
	for _, other := range slices.Clone(q.heads) {
		if other != head && other.behind != nil && head.Before(other) && slices.ContainsFunc(head.lacks, q.Asks(other)) {
			other.MakeReady()
			some = true
		}
	}
	return some
}

// HeadBefore returns the first head that the class must wait behind in a queue by resource, or nil.
func (q *Queue) HeadBefore(c *Class) (first *Class) {
	for _, head := range q.heads {
		if head.Before(c) && (first == nil || head.Before(first)) && slices.ContainsFunc(head.lacks, q.Asks(c)) {
			first = head
		}
	}
	return first
}

// WaitBehind blocks the class, which is the first to evaluate, for as long as the head waits.
func (c *Class) WaitBehind(head *Class, now State) {
	c.Block(Cause{}, now)
	c.heldBy, head.behind[c] = head, struct{}{}
}

// HeldBy returns the head that the class waits behind in a queue by resource, nil if there is none.
func (c *Class) HeldBy() *Class { return c.heldBy }

// IsHead reports whether the class is a head in a queue by resource, and Lacks what it needs more of.
func (c *Class) IsHead() bool { return c.behind != nil }

// Lacks returns what a head in a queue by resource needs more of.
func (c *Class) Lacks() []quota.FlavorResource { return c.lacks }

// Relack updates what a head lacks, and which classes wait behind it. It reports whether a class may pass.
func (c *Class) Relack(lacks []quota.FlavorResource) (passes bool) {
	c.lacks = lacks
	for _, other := range byHead(c.behind) {
		switch next := c.queue.HeadBefore(other); next {
		case c:
		case nil:
			other.MakeReady()
			passes = true
		default:
			delete(c.behind, other)
			other.heldBy, next.behind[other] = next, struct{}{}
		}
	}
	return c.queue.demoteLater(c) || passes
}

// releaseBehind removes the class from those that wait behind heads, and makes those ready that wait behind it.
func (q *Queue) releaseBehind(c *Class) {
	if c.heldBy != nil {
		delete(c.heldBy.behind, c)
		c.heldBy = nil
	}
	if c.behind == nil {
		return
	}
	held := c.behind
	c.lacks, c.behind = nil, nil
	q.heads = slices.DeleteFunc(q.heads, func(head *Class) bool { return head == c })
	for other := range held { // in any order: those to evaluate are in a heap, and none of them is a head
		other.MakeReady()
	}
}
