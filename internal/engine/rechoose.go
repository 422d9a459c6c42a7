package engine

import (
	"maps"
	"slices"

	"github.com/musterhq/muster/internal/engine/order"
)

// A workload may get in because more is used, not less. With a choice of flavors, it is given some for which nothing can
// be evicted, and others once these are full: for the latter something can be evicted. And while it may not take what
// running workloads of its queue are to grow into, it evicts nobody; once that is used, it may evict workloads of others.

// maxChoosers bounds how many classes of a queue are evaluated for that: the first in order.
const maxChoosers = 8

// setChooser notes that the class was blocked with flavors that it would not be given if more of them were used.
func (e *Engine) setChooser(c *class) {
	q := c.queue
	if q.choosers == nil {
		q.choosers = map[*class]stateVersion{}
	}
	q.choosers[c] = e.stateVersionOf(q.family)
}

// retryChoosers evaluates these classes again at the end of a pass, once per state, so that this ends. It reports whether
// that left a class to evaluate.
func (p *pass) retryChoosers(f *family) (left bool) {
	now := p.engine.stateVersionOf(f)
	for _, q := range f.queues {
		first := slices.SortedFunc(maps.Keys(q.choosers), func(a, b *class) int { return order.Compare(a.head(), b.head()) })
		for _, c := range first[:min(len(first), maxChoosers)] {
			if q.choosers[c] == now {
				continue
			}
			if p.budget <= 0 {
				return true
			}
			q.choosers[c] = now
			_, unblocked := p.retryBlocked(c)
			left = left || unblocked
		}
	}
	return left
}
