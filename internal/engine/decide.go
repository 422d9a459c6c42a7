package engine

import (
	"container/heap"
	"maps"
	"slices"
	"time"

	"github.com/musterhq/muster/internal/engine/flavor"
	"github.com/musterhq/muster/internal/engine/order"
	"github.com/musterhq/muster/internal/engine/quota"
	"github.com/musterhq/muster/internal/engine/reason"
)

// Decision is one change that should be made. Exactly one of Admit and Why is set.
type Decision struct {
	Key Key
	// UID and Generation are those of the workload decided on: an admission must not
	// be written for a later one of the same name, nor for another spec.
	UID        string
	Generation int64
	// Admit says that the workload starts and what it is given. It is assumed at
	// once; AdmissionFailed undoes it.
	Admit *Admission
	// Why says that the workload waits, for another reason than was last said.
	Why reason.Reason
}

// Decide looks at what changed since the last call and returns what follows from
// it, in the order in which it was decided: as many workloads as fit are admitted.
// now is for what depends on time.
func (e *Engine) Decide(now time.Time) []Decision {
	var out []Decision
	e.reconsiderFreed()
	byRoot, stuck := e.queuesByRoot(e.dirty)
	e.dirty.Clear()
	for _, root := range slices.Sorted(maps.Keys(byRoot)) {
		out = e.decideTree(byRoot[root], out)
	}
	for _, q := range stuck {
		e.park(q, e.stuckReason(q))
	}
	return e.sayWhy(out)
}

// decideTree serves the queues of one tree, always the first in order of all their
// heads, until no head fits.
func (e *Engine) decideTree(queues []*clusterQueue, out []Decision) []Decision {
	var heads headHeap
	for _, q := range queues {
		if head, ok := q.pending.Peek(); ok {
			heads = append(heads, queueHead{q, head})
		}
	}
	heap.Init(&heads)
	for len(heads) > 0 {
		q := heads[0].queue
		w := e.workloads[heads[0].head.Key]
		admission, why := e.try(w, q)
		blocked := false
		switch {
		case admission != nil:
			q.pending.Pop()
			w.assumed = true
			e.hold(w, admission)
			out = append(out, Decision{Key: w.Key, UID: w.UID, Generation: w.Generation, Admit: admission})
		case q.Strategy == Strict && waits(why):
			e.say(w, why)
			blocked = true
		default:
			q.pending.Pop()
			q.parked[w.Key] = w
			e.say(w, why)
		}
		if next, ok := q.pending.Peek(); ok && !blocked {
			heads[0].head = next
			heap.Fix(&heads, 0)
		} else {
			heap.Pop(&heads)
		}
	}
	return out
}

// try returns what the workload would be given now, or why it waits.
func (e *Engine) try(w *workload, q *clusterQueue) (*Admission, reason.Reason) {
	switch local := e.localQueues[Key{Namespace: w.Key.Namespace, Name: w.Queue}]; {
	case w.Refused != "":
		return nil, reason.Inadmissiblef("%s", w.Refused)
	case w.refusal.Message != "" && w.refusal.Generation == w.Generation:
		return nil, reason.Inadmissiblef("the API server refuses the admission, until the Workload is changed: %s", w.refusal.Message)
	case w.Inactive:
		return nil, reason.Inadmissiblef("The workload is deactivated")
	case local.Held:
		return nil, reason.OnHoldf("LocalQueue %s is stopped", w.Queue)
	case q.Namespaces == nil || !q.Namespaces.Matches(e.namespaces[w.Key.Namespace]):
		return nil, reason.Inadmissiblef("Workload namespace doesn't match ClusterQueue selector")
	}
	podSets, why := flavor.Assign(w.PodSets, q.Groups, e.flavors, room{&e.tree, q.Name})
	if why.Code != reason.None {
		return nil, why
	}
	return &Admission{ClusterQueue: q.Name, PodSets: podSets}, reason.Reason{}
}

// waits tells a head that holds its queue back from one that is itself at fault.
func waits(why reason.Reason) bool {
	return why.Code != reason.Inadmissible && why.Code != reason.OnHold
}

// stuckReason says why nobody of the queue can be admitted.
func (e *Engine) stuckReason(q *clusterQueue) reason.Reason {
	switch {
	case !q.exists:
		return reason.Inadmissiblef("ClusterQueue %s doesn't exist", q.Name)
	case e.tree.Cyclic(q.Name):
		return reason.Inadmissiblef("ClusterQueue %s is inactive: its cohorts form a cycle", q.Name)
	case q.Inactive != "":
		return reason.Inadmissiblef("ClusterQueue %s is inactive: %s", q.Name, q.Inactive)
	default:
		return reason.OnHoldf("ClusterQueue %s is stopped", q.Name)
	}
}

// park sets everyone of the queue aside for the same reason.
func (e *Engine) park(q *clusterQueue, why reason.Reason) {
	for q.pending.Len() > 0 {
		w := e.workloads[q.pending.Pop().Key]
		q.parked[w.Key] = w
	}
	for _, w := range q.parked {
		e.say(w, why)
	}
}

// say notes why a workload waits, to be returned if it is news.
func (e *Engine) say(w *workload, why reason.Reason) {
	if !w.why.Equal(why) {
		w.why = why
		e.unsaid.Insert(w.Key)
	}
}

// sayWhy appends the reasons that are news, in the order of names.
func (e *Engine) sayWhy(out []Decision) []Decision {
	news := e.unsaid.UnsortedList()
	e.unsaid.Clear()
	slices.SortFunc(news, order.CompareKeys)
	for _, key := range news {
		w := e.workloads[key]
		out = append(out, Decision{Key: key, UID: w.UID, Generation: w.Generation, Why: w.why})
	}
	return out
}

// room is what the tree has left for a queue.
type room struct {
	tree  *quota.Tree
	queue string
}

func (r room) Available(fr quota.FlavorResource) int64 { return r.tree.Available(r.queue, fr) }
func (r room) Capacity(fr quota.FlavorResource) int64  { return r.tree.Capacity(r.queue, fr) }

// queueHead is the first in order of one queue; headHeap orders queues by it.
type queueHead struct {
	queue *clusterQueue
	head  order.Rank
}

type headHeap []queueHead

func (h headHeap) Len() int           { return len(h) }
func (h headHeap) Less(i, j int) bool { return order.Compare(h[i].head, h[j].head) < 0 }
func (h headHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *headHeap) Push(x any)        { *h = append(*h, x.(queueHead)) }
func (h *headHeap) Pop() any {
	last := len(*h) - 1
	head := (*h)[last]
	*h = (*h)[:last]
	return head
}
