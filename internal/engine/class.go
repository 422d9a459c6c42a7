package engine

import (
	"container/ring"
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	"github.com/musterhq/muster/internal/engine/flavor"
	"github.com/musterhq/muster/internal/engine/order"
	"github.com/musterhq/muster/internal/engine/preempt"
	"github.com/musterhq/muster/internal/engine/quota"
	"github.com/musterhq/muster/internal/engine/reason"
)

// shape is the pod sets of workloads: workloads of the same shape and priority in a queue either all fit or do not, so
// that only the first of them is evaluated.
type shape struct {
	key     string
	podSets []PodSet
	users   int
	// elastic is set if a pod set is elastic.
	elastic bool
}

// shapeOf returns the shape of the pod sets and takes a reference to it.
func (e *Engine) shapeOf(podSets []PodSet) *shape {
	key := shapeKey(podSets)
	s := e.shapes[key]
	if s == nil {
		s = &shape{key: key, podSets: podSets, elastic: slices.ContainsFunc(podSets, func(ps PodSet) bool { return ps.Elastic > 0 })}
		e.shapes[key] = s
	}
	s.users++
	return s
}

// releaseShape releases a reference to the shape.
func (e *Engine) releaseShape(s *shape) {
	if s.users--; s.users == 0 {
		delete(e.shapes, s.key)
	}
}

// shapeKey returns a string that is equal for equal pod sets.
func shapeKey(podSets []PodSet) string {
	b := make([]byte, 0, 128)
	text := func(s string) { b = append(strconv.AppendQuote(b, s), ',') }
	number := func(n int64) { b = append(strconv.AppendInt(b, n, 10), ',') }
	for i := range podSets {
		ps := &podSets[i]
		text(ps.Name)
		number(int64(ps.Count))
		number(int64(ps.MinCount))
		number(int64(ps.Together))
		number(int64(ps.Wanted))
		number(int64(ps.Reclaimable))
		b = append(strconv.AppendFloat(b, ps.Elastic, 'g', -1, 64), ',')
		number(int64(len(ps.PerPod)))
		for _, resource := range slices.Sorted(maps.Keys(ps.PerPod)) {
			text(resource)
			number(ps.PerPod[resource])
		}
		if ps.OfNode != nil || ps.Topology != nil || len(ps.HostPorts) > 0 || ps.ExclusiveKey != "" {
			rest, _ := json.Marshal([]any{ps.OfNode, ps.Topology, ps.HostPorts, ps.ExclusiveKey})
			b = append(b, rest...)
		}
		if len(ps.Tolerations) > 0 || len(ps.NodeSelector) > 0 || ps.Affinity != nil || ps.NodeName != "" || ps.Unpinned {
			// Plain API structs: they always marshal, with sorted map keys.
			rest, _ := json.Marshal([]any{ps.Tolerations, ps.NodeSelector, ps.Affinity, ps.NodeName, ps.Unpinned})
			b = append(b, rest...)
		}
		if len(ps.Bounds) > 0 {
			rest, _ := json.Marshal(ps.Bounds)
			b = append(b, rest...)
		}
		b = append(b, ';')
	}
	return string(b)
}

// classKey groups the workloads of a queue for which the same capacity is available.
type classKey struct {
	shape    *shape
	priority int32
	local    Key
	// avoid are the nodes that kube-scheduler refused for them.
	avoid string
}

// class is the workloads of a queue that wait for the same thing: if the first does not fit, none does.
type class struct {
	classKey
	queue   *clusterQueue
	from    *localQueue
	waiting order.Queue
	// at is the position in clusterQueue.ready. blocked is set if the head did not fit; why is the reason, and short
	// the quota of which there has to be more.
	at order.Place
	// waitsForGrowth is set if it waits for other workloads of the queue to grow, grower is one for which there was capacity.
	blocked        bool
	waitsForGrowth bool
	grower         *workload
	why            reason.Reason
	short          []quota.Index
	// unreported are the workloads to which why was not reported yet.
	unreported []Key
	// otherwise are the workloads to which otherCode was reported in place of why, while the class could not be evaluated.
	otherwise []Key
	otherCode reason.Code
	// form is what the class requests of the queue at its revision formedOf. own is the least that it takes of the
	// queue's own quota, empty if it does not fit there; claimAt is the position in clusterQueue.claimants.
	form     *flavor.Form
	formedOf int
	own      quota.Vector
	claimAt  order.Place
	// never is whether the present nodes could hold it.
	never neverOnNodes
	// lacks is what a head of a queue by resource needs more of, as of lackedAt. behind are the classes that wait
	// behind it, and heldBy is the head that this class waits behind.
	lacks    []quota.FlavorResource
	lackedAt stateVersion
	behind   map[*class]bool
	heldBy   *class
	// round is its position in the rounds of the safety net while it is blocked.
	round ring.Ring
}

func (c *class) head() order.Rank {
	head, _ := c.waiting.Peek()
	return head
}

// turn is the sort key of a waiting workload: the standing of its LocalQueue, if the ClusterQueue orders by usage,
// then its rank.
type turn struct {
	standing float64
	rank     order.Rank
}

func (t turn) before(other turn, q *clusterQueue) bool {
	if q.byUsage && t.standing != other.standing {
		return t.standing < other.standing
	}
	return order.Compare(t.rank, other.rank) < 0
}

func (c *class) turn() turn { return turn{c.from.standing, c.head()} }

func (w *workload) turn() turn { return turn{w.local.standing, w.rank()} }

// before is the same as to compare turns, without copies of these: heaps call it more often than anything else.
func (c *class) before(other *class) bool {
	if c.queue.byUsage && c.from.standing != other.from.standing {
		return c.from.standing < other.from.standing
	}
	return c.waiting.Before(&other.waiting)
}

// joinClass adds the workload to its class.
func (e *Engine) joinClass(w *workload, q *clusterQueue) {
	key := classKey{w.shape, w.Priority, w.LocalKey(), w.avoid.key()}
	c := q.classes[key]
	if c == nil {
		c = &class{classKey: key, queue: q, from: w.local}
		q.classes[key], w.local.classes[c] = c, struct{}{}
	} else if c.formedOf != q.revision {
		q.unblock(c) // the queue has changed
	}
	before := c.head()
	c.waiting.Push(w.rank())
	if c.head() != before || c.formedOf != q.revision {
		e.evaluator.addClaimant(c)
	}
	c.unreported = append(c.unreported, w.Key)
	w.class = c
	switch {
	case !c.blocked:
		q.wake(c)
	case c.head() != before && q.Preemption.WithinQueue == preempt.LowerOrNewerEqualPriority:
		// A head that has waited longer may evict more.
		q.unblock(c)
	default:
		e.reportReason(c, c.why)
	}
	if c.heldBy != nil && c.before(c.heldBy) {
		q.unblock(c)
	}
	switch {
	case q.head != nil && q.head != c && c.before(q.head):
		q.unblock(q.head) // it comes before the head that blocks the queue
	case q.head != nil && q.head != c, q.head == nil && c.at.IsFirst() && !e.open(q):
		e.reportOtherwise(c, whyBehind(q))
	}
}

// leaveClass removes the workload from its class.
func (e *Engine) leaveClass(w *workload) {
	c, q := w.class, w.class.queue
	w.class = nil
	head := c.head().Key == w.Key
	c.waiting.Remove(w.Key)
	if head && c.claimAt.In() {
		if q.family != nil {
			q.family.enqueue() // others may take what was kept for it
		}
		if c.waiting.Len() > 0 {
			q.claimants.Put(c)
		}
	}
	if c.waiting.Len() == 0 {
		q.removeClaimant(c)
		q.unblock(c)
		delete(q.classes, c.classKey)
		delete(c.from.classes, c)
		for _, blocked := range e.blockedByFlavor {
			delete(blocked, c)
		}
	} else if head && c.at.In() {
		q.wake(c)
	}
	if (q.head == c || c.behind != nil) && head {
		q.unblock(c)
	}
}

// unblock queues the class for evaluation.
func (cq *clusterQueue) unblock(c *class) {
	if c.blocked {
		c.round.Prev().Unlink(1) // from the rounds of the safety net
	}
	if c.blocked && cq.family != nil {
		for _, i := range c.short {
			delete(cq.family.short[i], c)
		}
	}
	if c.waitsForGrowth {
		cq.growthWaiters--
	}
	c.blocked, c.waitsForGrowth, c.grower = false, false, nil
	delete(cq.choosers, c)
	if same := cq.blocked[c.priority]; same != nil {
		if delete(same, c); len(same) == 0 {
			delete(cq.blocked, c.priority)
		}
	}
	cq.releaseBehind(c)
	if cq.head == c {
		cq.head = nil
		if cq.family != nil {
			cq.family.enqueue()
		}
	}
	cq.wake(c)
}

// block sets the class aside until there is more of what it was short of.
func (e *Engine) block(c *class, why reason.Reason, short []quota.Index) {
	if why.Code != c.why.Code || !why.SameBlame(c.why) {
		c.forgetReason()
	}
	c.reportAgain()
	e.safety.add(c)
	c.blocked, c.why, c.short = true, why, short
	same := c.queue.blocked[c.priority]
	if same == nil {
		same = map[*class]struct{}{}
		c.queue.blocked[c.priority] = same
	}
	same[c] = struct{}{}
	for _, i := range short {
		those := c.queue.family.short[i]
		if those == nil {
			those = map[*class]struct{}{}
			c.queue.family.short[i] = those
		}
		those[c] = struct{}{}
	}
	e.reportReason(c, why)
}

// wakeRivals unblocks the classes that may be able to preempt now: in the queue, those that can evict the holder; in
// the rest of the family, those that can reclaim the charged amounts that the queue borrows. holder is nil while it
// cannot be evicted.
func (cq *clusterQueue) wakeRivals(charged quota.Vector, holder *preempt.Holder) {
	if cq.family == nil {
		return
	}
	for _, a := range charged {
		cq.wakeReclaimers(a.Index, 0)
	}
	if holder == nil || cq.Preemption.WithinQueue == preempt.Never {
		return
	}
	for priority, classes := range cq.blocked {
		if priority > holder.Priority || priority == holder.Priority && cq.Preemption.WithinQueue != preempt.LowerPriority {
			for c := range classes {
				cq.retry(c)
			}
		}
	}
}

// wakeReclaimers unblocks the classes of other queues that may be able to reclaim, as the planned usage of the queue has
// grown, or is about to grow by more. If the queue or a cohort above it exceeds its quota, all that borrows below that
// node can be reclaimed. Example: with a quota of 4 in cohort A, queue p of A borrows all of it, and cannot be evicted for
// a queue of another cohort; once queue r of A uses 1 of its own quota, A exceeds 4, and p can be.
func (cq *clusterQueue) wakeReclaimers(i quota.Index, more int64) {
	if len(cq.family.short[i]) == 0 || !cq.exceeds(i, more) {
		return
	}
	for c := range cq.family.short[i] {
		if c.queue != cq && c.queue.Preemption.Allows() {
			c.queue.retry(c)
		}
	}
}

// exceeds reports whether the queue, or a cohort above it that is not the root, would exceed its quota with that much more.
func (cq *clusterQueue) exceeds(i quota.Index, more int64) bool {
	for n := cq.node; n.Parent() != nil; n = n.Parent() {
		if n.Over(quota.Planned, i, more) > 0 {
			return true
		}
	}
	return false
}
