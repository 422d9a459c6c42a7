package engine

import "github.com/musterhq/muster/internal/engine/preempt"

// A pass first finds the heads of a family's queues, and blocks the hopeless classes that come before them. With many
// classes that takes several passes: a sweep. If classes were unblocked meanwhile for whatever is released, the sweep
// would begin anew each time, and where something is released before each pass, no head would ever be served. So what
// is released during a sweep unblocks none before its end. It ends once all heads are known and some, or all, have
// been served.
//
// A class that the sweep has passed can therefore lose what is released to one behind it in its queue. That happens
// only if more classes are hopeless than a pass can evaluate.

// enoughServed is how many heads are served after a sweep of several passes before another one may begin. If it were
// one, a queue whose workloads come first in order could keep all others from being served.
const enoughServed = 20

// retry unblocks the class: during a sweep of several passes, at the end of that.
func (cq *clusterQueue) retry(c *class) {
	f := cq.family
	if f == nil || !f.sweeping || !c.blocked {
		cq.unblock(c)
		return
	}
	if f.again == nil {
		f.again = map[*class]struct{}{}
	}
	f.again[c] = struct{}{}
}

// retryBlocked evaluates a blocked class, and unblocks it if it is not hopeless.
func (p *pass) retryBlocked(c *class) (found outcome, unblocked bool) {
	begin := p.engine.evaluator.workSoFar()
	found = p.engine.reevaluate(c)
	p.budget -= p.engine.evaluator.costSince(begin)
	if found.verdict == hopeless {
		return found, false
	}
	c.queue.unblock(c)
	return found, true
}

// reevaluate evaluates a class as at the beginning of a pass.
func (e *Engine) reevaluate(c *class) (found outcome) {
	e.holdBacks.chargeAll(c.queue.family)
	defer e.holdBacks.releaseAll(c.queue.family)
	return e.evaluator.evaluateIgnoringKept(c)
}

// wakeFreed unblocks the classes that were short of quota that was released, and those to retry after a sweep.
//
// With fair sharing, any change of shares may allow other evictions, so that all classes of queues that can reclaim
// are unblocked.
func (f *family) wakeFreed() {
	if f.sweeping {
		return
	}
	for c := range f.again {
		if c.blocked {
			c.queue.unblock(c)
		}
	}
	f.again = nil
	for _, i := range f.freed {
		for c := range f.short[i] {
			c.queue.unblock(c)
		}
	}
	if f.sharesMoved {
		for _, q := range f.queues {
			if q.Preemption.Reclaim != preempt.Never {
				for _, classes := range q.blocked {
					for c := range classes {
						q.unblock(c)
					}
				}
			}
		}
	}
	f.freed, f.sharesMoved = nil, false
}
