package engine

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/musterhq/muster/internal/engine/order"
	"github.com/musterhq/muster/internal/engine/quota"
)

// TakeTouched returns the queues whose usage or counts may have changed since it was
// last called, in the order of names.
func (e *Engine) TakeTouched() (clusterQueues []string, localQueues []Key) {
	clusterQueues = sets.List(e.touched)
	localQueues = e.touchedLocal.UnsortedList()
	slices.SortFunc(localQueues, order.CompareKeys)
	e.touched.Clear()
	e.touchedLocal.Clear()
	return clusterQueues, localQueues
}

// touch notes that the numbers of the workload's queues change.
func (e *Engine) touch(w *workload) {
	if w.queue != "" {
		e.touched.Insert(w.queue)
	}
	if w.held != nil {
		e.touched.Insert(w.held.ClusterQueue)
	}
	e.touchedLocal.Insert(Key{Namespace: w.Key.Namespace, Name: w.Queue})
}

// touchQueue notes that a ClusterQueue, and so the LocalQueues that lead to it, may
// admit where it could not before, or the other way round.
func (e *Engine) touchQueue(name string) {
	e.touched.Insert(name)
	for key, local := range e.localQueues {
		if local.ClusterQueue == name {
			e.touchedLocal.Insert(key)
		}
	}
}

// touchAll notes the same for every ClusterQueue: a cohort may close a cycle over any.
func (e *Engine) touchAll() {
	for name := range e.queues {
		e.touchQueue(name)
	}
}

// touchFlavor notes the same for the ClusterQueues that offer a flavor.
func (e *Engine) touchFlavor(name string) {
	for _, q := range e.queues {
		for _, g := range q.Groups {
			if slices.Contains(g.Flavors, name) {
				e.touchQueue(q.Name)
			}
		}
	}
}

// Usage is what a ClusterQueue has given out, and to how many.
type Usage struct {
	Used     map[quota.FlavorResource]int64
	Borrowed map[quota.FlavorResource]int64
	// Pending wait, Reserving hold quota.
	Pending, Reserving int
	// Cyclic says that the cohorts above the queue form a cycle: it has no quota.
	Cyclic bool
}

// QueueUsage returns the usage of a ClusterQueue; ok is false if it does not exist.
func (e *Engine) QueueUsage(name string) (u Usage, ok bool) {
	q := e.queues[name]
	if q == nil || !q.exists {
		return Usage{}, false
	}
	u = Usage{Used: e.tree.Charges(name), Borrowed: map[quota.FlavorResource]int64{}, Cyclic: e.tree.Cyclic(name)}
	for fr := range u.Used {
		if _, borrowed := e.tree.Used(name, fr); borrowed > 0 {
			u.Borrowed[fr] = borrowed
		}
	}
	u.count(q.members)
	return u, true
}

// LocalQueueUsage is the same for a LocalQueue; amounts of others of the same
// ClusterQueue are not in it, and nothing is Borrowed.
func (e *Engine) LocalQueueUsage(key Key) (u Usage, ok bool) {
	local, ok := e.localQueues[key]
	if !ok {
		return Usage{}, false
	}
	u = Usage{Used: map[quota.FlavorResource]int64{}}
	mine := map[Key]*workload{}
	if q := e.queues[local.ClusterQueue]; q != nil {
		for k, w := range q.members {
			if k.Namespace == key.Namespace && w.Queue == key.Name {
				mine[k] = w
			}
		}
	}
	for _, w := range mine {
		if w.held == nil {
			continue
		}
		for _, ps := range w.held.PodSets {
			for resource, amount := range ps.Usage {
				fr := quota.FlavorResource{Flavor: ps.Flavors[resource], Resource: resource}
				u.Used[fr] = quota.Add(u.Used[fr], amount)
			}
		}
	}
	u.count(mine)
	return u, true
}

func (u *Usage) count(members map[Key]*workload) {
	for _, w := range members {
		switch {
		case w.held != nil:
			u.Reserving++
		case !w.Inactive:
			u.Pending++
		}
	}
}
