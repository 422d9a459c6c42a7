package engine

import (
	"container/heap"
	"slices"

	"github.com/musterhq/muster/internal/engine/flavor"
	"github.com/musterhq/muster/internal/engine/order"
	"github.com/musterhq/muster/internal/engine/quota"
	"github.com/musterhq/muster/internal/engine/reason"
)

// In a queue by resource nobody passes a head for what it lacks: who asks for any of
// that waits behind it, and all others are looked at. So there is a head for each kind
// of thing that is short. Who could not be admitted if nobody used anything is no head:
// the queue would wait for ever.

// lacksOf is what there has to be more of for a choice for so many pods that does not fit
// now; nothing where more of it would not help. It matters in a queue by resource only.
func (e *Engine) lacksOf(c *class, counts []int32, choice flavor.Choice) []quota.FlavorResource {
	if c.queue.Strategy != ByResource || choice.Mode >= flavor.Awaits || !c.form.CouldFit(counts, c.queue.node) {
		return nil
	}
	out := make([]quota.FlavorResource, len(choice.Short))
	for n, i := range choice.Short {
		out[n] = e.tree.Name(i)
	}
	return out
}

// holdBackFor has those who come after the class, which was just set aside, wait for
// what it lacks.
func (q *clusterQueue) holdBackFor(c *class, lacks []quota.FlavorResource) {
	if len(lacks) > 0 {
		c.lacks, c.behind = lacks, map[*class]bool{}
		q.heads = append(q.heads, c)
	}
}

// headBefore is the first head that holds the class back, nil if none does.
func (e *Engine) headBefore(c *class) (first *class) {
	for _, head := range c.queue.heads {
		if head.before(c) && (first == nil || head.before(first)) && slices.ContainsFunc(head.lacks, e.formOf(c).Asks) {
			first = head
		}
	}
	return first
}

// putBehind sets the class, the first of those to be looked at, aside for as long as the
// head waits.
func (p *pass) putBehind(c, head *class) {
	heap.Pop(&c.queue.ready)
	p.block(c, behind(c.queue), nil)
	c.heldBy, head.behind[c] = head, true
}

// letPass ends what holds the class back, and what it holds back. The caller has the
// class looked at.
func (q *clusterQueue) letPass(c *class) {
	if c.heldBy != nil {
		delete(c.heldBy.behind, c)
		c.heldBy = nil
	}
	if c.behind == nil {
		return
	}
	held := c.behind
	c.lacks, c.behind = nil, nil
	q.heads = slices.DeleteFunc(q.heads, func(head *class) bool { return head == c })
	for _, other := range inRank(held) {
		q.unblock(other)
	}
}

// findHead finds out who holds the workload back in a queue by resource. There may have
// been no pass to find it out.
func (x *explainer) findHead() {
	w, q := x.w, x.w.queue
	if q.Strategy != ByResource || w.class == nil {
		return
	}
	earlier := make([]*class, 0, len(q.classes))
	for _, c := range q.classes {
		if own := (turn{w.local.standing, w.rank()}); c != w.class && (turn{c.from.standing, c.head()}).before(own, q) {
			earlier = append(earlier, c)
		}
	}
	slices.SortFunc(earlier, func(a, b *class) int {
		if a.before(b) {
			return -1
		}
		return 1
	})
	var heads []*class
	lacks := map[*class][]quota.FlavorResource{}
	waitsBehind := func(c *class) func(*class) bool {
		return func(head *class) bool { return slices.ContainsFunc(lacks[head], x.formOf(c).Asks) }
	}
	for _, c := range earlier {
		switch {
		case c.behind != nil:
			heads, lacks[c] = append(heads, c), c.lacks
		case c.blocked || slices.ContainsFunc(heads, waitsBehind(c)):
		default:
			if found := x.seeingThrough(c); found.verdict == hopeless && len(found.lacks) > 0 {
				heads, lacks[c] = append(heads, c), found.lacks
			}
		}
	}
	if n := slices.IndexFunc(heads, waitsBehind(w.class)); n >= 0 {
		x.out.Behind = new(reason.NameOf(heads[n].head().Key))
		for _, fr := range lacks[heads[n]] {
			x.out.BehindLacks = append(x.out.BehindLacks, fr.Resource)
		}
		slices.Sort(x.out.BehindLacks)
		x.out.BehindLacks = slices.Compact(x.out.BehindLacks)
	}
}

// inRank lists classes in the order of their heads, so that nothing follows from the
// order of a map.
func inRank(classes map[*class]bool) []*class {
	out := make([]*class, 0, len(classes))
	for c := range classes {
		out = append(out, c)
	}
	slices.SortFunc(out, func(a, b *class) int { return order.Compare(a.head(), b.head()) })
	return out
}
