package engine

import (
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/musterhq/muster/internal/engine/order"
	"github.com/musterhq/muster/internal/engine/quota"
	"github.com/musterhq/muster/internal/engine/reason"
)

func (e *Engine) queue(name string) *clusterQueue {
	q := e.queues[name]
	if q == nil {
		q = &clusterQueue{
			ClusterQueue: ClusterQueue{Name: name},
			parked:       map[Key]*workload{},
			members:      map[Key]*workload{},
		}
		e.queues[name] = q
	}
	return q
}

// route puts a workload that holds nothing into the queue that its LocalQueue leads
// to, to be looked at, and one that holds quota out of every waiting list.
func (e *Engine) route(w *workload) {
	name := e.localQueues[Key{Namespace: w.Key.Namespace, Name: w.Queue}].ClusterQueue
	if w.held != nil {
		name = w.held.ClusterQueue
	}
	if name != w.queue {
		e.leave(w)
		w.queue = name
	}
	e.touch(w)
	if name == "" {
		e.say(w, reason.Inadmissiblef("LocalQueue %s doesn't exist", w.Queue))
		return
	}
	q := e.queue(name)
	q.members[w.Key] = w
	delete(q.parked, w.Key)
	if w.held != nil {
		q.pending.Remove(w.Key)
		return
	}
	q.pending.Push(w.rank())
	e.dirty.Insert(name)
}

// leave takes the workload out of the queue it is in.
func (e *Engine) leave(w *workload) {
	e.touch(w)
	q := e.queues[w.queue]
	if q == nil {
		return
	}
	q.pending.Remove(w.Key)
	delete(q.parked, w.Key)
	delete(q.members, w.Key)
	// Who stood behind it may be the head now.
	e.dirty.Insert(q.Name)
	if !q.exists && len(q.members) == 0 {
		delete(e.queues, q.Name)
	}
}

// forget removes all trace of the workload.
func (e *Engine) forget(w *workload) {
	e.release(w)
	e.leave(w)
	e.unsaid.Delete(w.Key)
	delete(e.workloads, w.Key)
}

// hold charges what the workload is given in place of what it held.
func (e *Engine) hold(w *workload, a *Admission) {
	if w.held.Equal(a) {
		return
	}
	e.touch(w)
	if w.held != nil {
		e.charge(w.held, -1)
		e.freed.Insert(w.held.ClusterQueue)
	}
	w.held = a
	if a != nil {
		e.charge(a, 1)
		w.why = reason.Reason{}
		e.unsaid.Delete(w.Key)
	}
}

// release gives back what the workload held.
func (e *Engine) release(w *workload) {
	e.hold(w, nil)
}

func (e *Engine) charge(a *Admission, sign int64) {
	for _, ps := range a.PodSets {
		for resource, amount := range ps.Usage {
			fr := quota.FlavorResource{Flavor: ps.Flavors[resource], Resource: resource}
			e.tree.Add(a.ClusterQueue, fr, sign*amount)
		}
	}
}

// reconsiderFreed has everyone looked at again who may fit now that something was
// given back to a queue of the same tree.
func (e *Engine) reconsiderFreed() {
	if e.freed.Len() == 0 {
		return
	}
	roots := sets.New[string]()
	for name := range e.freed {
		if root, ok := e.tree.Root(name); ok {
			roots.Insert(root)
		}
	}
	e.freed.Clear()
	for name, q := range e.queues {
		if root, ok := e.tree.Root(name); ok && roots.Has(root) {
			e.reconsider(q)
		}
	}
}

// reconsiderAll has everyone looked at again: quotas, flavors or namespaces are not
// what they were.
func (e *Engine) reconsiderAll() {
	for _, q := range e.queues {
		e.reconsider(q)
	}
}

func (e *Engine) reconsider(q *clusterQueue) {
	for key, w := range q.parked {
		q.pending.Push(w.rank())
		delete(q.parked, key)
	}
	e.dirty.Insert(q.Name)
}

// rerouteMembers follows a LocalQueue that came, went or leads elsewhere now.
func (e *Engine) rerouteMembers(local Key) {
	for _, w := range e.workloads {
		if w.Key.Namespace == local.Namespace && w.Queue == local.Name && w.held == nil {
			e.route(w)
		}
	}
}

func (w *workload) rank() order.Rank {
	return order.Rank{Priority: w.Priority, Since: w.QueuedAt, Key: w.Key}
}

// queuesByRoot groups the dirty queues that exist by the tree they belong to, and
// returns those that cannot admit anyone apart.
func (e *Engine) queuesByRoot(names sets.Set[string]) (byRoot map[string][]*clusterQueue, stuck []*clusterQueue) {
	byRoot = map[string][]*clusterQueue{}
	for _, name := range sets.List(names) {
		q := e.queues[name]
		if q == nil {
			continue
		}
		if root, ok := e.tree.Root(name); ok && q.exists && !q.Held && q.Inactive == "" {
			byRoot[root] = append(byRoot[root], q)
		} else {
			stuck = append(stuck, q)
		}
	}
	return byRoot, stuck
}
