package engine

import (
	"slices"

	"github.com/musterhq/muster/internal/engine/flavor"
	"github.com/musterhq/muster/internal/engine/order"
	"github.com/musterhq/muster/internal/engine/quota"
	"github.com/musterhq/muster/internal/engine/reason"
)

// In a queue by resource no workload passes a head for what that head lacks: workloads that request any of it wait
// behind the head, and all others are evaluated. So there is a head for each kind of resource that is short. A
// workload that could not be admitted even in an empty cluster is no head: the queue would wait forever.

// lacksOf returns what there has to be more of for a choice that does not fit now; nothing if more would not help. It
// matters only in a queue by resource.
func (ev *evaluator) lacksOf(c *class, counts []int32, choice flavor.Choice) []quota.FlavorResource {
	if c.queue.Strategy != ByResource || choice.Mode >= flavor.Awaits || !c.form.CouldFit(counts, c.queue.node) {
		return nil
	}
	out := make([]quota.FlavorResource, len(choice.Short))
	for n, i := range choice.Short {
		out[n] = ev.tree.Name(i)
	}
	return out
}

// holdBackFor makes the class, which was just blocked, a head behind which later classes wait for what it lacks.
func (e *Engine) holdBackFor(q *clusterQueue, c *class, lacks []quota.FlavorResource) {
	c.lackedAt = e.stateVersionOf(q.family)
	e.tellHead(c)
	if len(lacks) > 0 {
		c.lacks, c.behind = lacks, map[*class]bool{}
		q.heads = append(q.heads, c)
		e.demoteLaterHeads(q, c)
	}
}

// demoteLaterHeads unblocks the heads that come after the given head and request what it lacks: they stop being heads
// while they wait behind it, so that the result does not depend on the order of evaluation. It reports whether there
// are any.
func (e *Engine) demoteLaterHeads(q *clusterQueue, head *class) (some bool) {
	for _, other := range slices.Clone(q.heads) {
		if other != head && other.behind != nil && head.before(other) && slices.ContainsFunc(head.lacks, e.evaluator.formOf(other).Asks) {
			q.unblock(other)
			some = true
		}
	}
	return some
}

// stateVersion identifies the state of quota and of nodes that a finding is based on.
type stateVersion struct {
	places  uint64
	charges int
}

func (e *Engine) stateVersionOf(f *family) stateVersion {
	return stateVersion{e.nodes.places.Changes(), f.charges}
}

// review reevaluates at the end of a pass what the heads of the family lack: that depends on the usage of others, and
// on whether quota or nodes are short first. A head is evaluated once per state, so that this ends. It reports
// whether that left a class to evaluate.
func (p *pass) review(f *family) (left bool) {
	for _, q := range f.queues {
		for _, head := range slices.SortedFunc(slices.Values(q.heads), func(a, b *class) int { return order.Compare(a.head(), b.head()) }) {
			now := p.engine.stateVersionOf(f)
			if head.lackedAt == now || len(head.behind) == 0 && len(q.heads) == 1 {
				continue // what it lacks holds nobody back: neither does another head come after it
			}
			if p.budget <= 0 {
				return true
			}
			head.lackedAt = now
			if found, unblocked := p.retryBlocked(head); unblocked {
				left = true
			} else if !slices.Equal(found.lacks, head.lacks) {
				left = p.engine.updateLacks(q, head, found.lacks) || left
			}
		}
	}
	return left
}

// updateLacks updates what a head lacks, and which classes wait behind it. It reports whether a class may pass.
func (e *Engine) updateLacks(q *clusterQueue, head *class, lacks []quota.FlavorResource) (passes bool) {
	head.lacks = lacks
	for _, other := range byHeadRank(head.behind) {
		switch next := e.headBefore(other); next {
		case head:
		case nil:
			q.unblock(other)
			passes = true
		default:
			delete(head.behind, other)
			other.heldBy, next.behind[other] = next, true
		}
	}
	return e.demoteLaterHeads(q, head) || passes
}

// headBefore returns the first head that the class must wait behind, or nil.
func (e *Engine) headBefore(c *class) (first *class) {
	for _, head := range c.queue.heads {
		if head.before(c) && (first == nil || head.before(first)) && slices.ContainsFunc(head.lacks, e.evaluator.formOf(c).Asks) {
			first = head
		}
	}
	return first
}

// putBehind blocks the class, which is on top of the ready heap, for as long as the head waits.
func (p *pass) putBehind(c, head *class) {
	c.queue.ready.Pop()
	p.engine.block(c, whyBehind(c.queue), nil)
	c.heldBy, head.behind[c] = head, true
}

// releaseBehind removes the class from the ones that wait behind heads, and unblocks those that wait behind it. The
// caller queues the class for evaluation.
func (cq *clusterQueue) releaseBehind(c *class) {
	if c.heldBy != nil {
		delete(c.heldBy.behind, c)
		c.heldBy = nil
	}
	if c.behind == nil {
		return
	}
	held := c.behind
	c.lacks, c.behind = nil, nil
	cq.heads = slices.DeleteFunc(cq.heads, func(head *class) bool { return head == c })
	for other := range held { // in any order: those to evaluate are in a heap, and none of them is a head
		cq.unblock(other)
	}
}

// findHead determines the head that the workload waits behind in a queue by resource, even if no pass has done so
// yet.
func (ex *explainer) findHead() {
	w, q := ex.w, ex.w.queue
	if q.Strategy != ByResource || w.class == nil {
		return
	}
	earlier := make([]*class, 0, len(q.classes))
	for _, c := range q.classes {
		if c != w.class && c.turn().before(w.turn(), q) {
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
		return func(head *class) bool { return slices.ContainsFunc(lacks[head], ex.engine.evaluator.formOf(c).Asks) }
	}
	for _, c := range earlier {
		switch {
		case c.behind != nil:
			heads, lacks[c] = append(heads, c), c.lacks
		case c.blocked || slices.ContainsFunc(heads, waitsBehind(c)):
		default:
			if found := ex.engine.evaluator.evaluateIgnoringKept(c); found.verdict == hopeless && len(found.lacks) > 0 {
				heads, lacks[c] = append(heads, c), found.lacks
			}
		}
	}
	if n := slices.IndexFunc(heads, waitsBehind(w.class)); n >= 0 {
		ex.out.Behind = new(reason.NameOf(heads[n].head().Key))
		for _, fr := range lacks[heads[n]] {
			ex.out.BehindLacks = append(ex.out.BehindLacks, fr.Resource)
		}
		slices.Sort(ex.out.BehindLacks)
		ex.out.BehindLacks = slices.Compact(ex.out.BehindLacks)
	}
}

// byHeadRank returns the classes in the order of their heads, so that no result depends on map iteration order.
func byHeadRank(classes map[*class]bool) []*class {
	out := make([]*class, 0, len(classes))
	for c := range classes {
		out = append(out, c)
	}
	slices.SortFunc(out, func(a, b *class) int { return order.Compare(a.head(), b.head()) })
	return out
}
