package engine

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/musterhq/muster/internal/engine/flavor"
	"github.com/musterhq/muster/internal/engine/order"
	"github.com/musterhq/muster/internal/engine/preempt"
	"github.com/musterhq/muster/internal/engine/quota"
	"github.com/musterhq/muster/internal/engine/reason"
	"github.com/musterhq/muster/internal/engine/waiting"
)

// clusterQueue is a ClusterQueue with the workloads that wait in it and those that hold its quota.
type clusterQueue struct {
	ClusterQueue
	// exists is false if the queue is only known by references to it.
	exists     bool
	namespaces labels.Selector
	// fairly is set if fair sharing is on.
	fairly bool
	// byUsage is set if LocalQueues are ordered by their usage.
	byUsage bool
	// node and family are nil if the queue does not exist or is part of a cohort cycle.
	node   *quota.Node
	family *family

	// classes groups the waiting workloads; waits is what the waiting room knows of them.
	classes map[classKey]*class
	waits   *waiting.Queue
	// entitled are the classes that fit within the queue's own quota, the first in order on top. published is the
	// hold-back that other queues have reckoned with last; heldBack is what is held back of it during a pass, and
	// heldBackFor the workload for which it is.
	entitled    order.Heap[*class]
	published   holdBack
	heldBack    quota.Vector
	heldBackFor order.Rank
	// waiting are the workloads that use the queue and hold nothing, unrouted those of them that must be routed again
	// because the queue has changed. revision counts these changes.
	waiting, unrouted *order.List[*workload]
	revision          int
	// locals are the LocalQueues that point to this queue.
	locals map[Key]*localQueue
	// holders are the workloads that hold or were promised quota and are not being evicted, in the order of
	// preempt.CompareHolders; elasticHolders counts those that can run with fewer pods.
	holders        []*preempt.Holder
	elasticHolders int
	// elastic are the workloads with quota and an elastic pod set, ordered by key.
	elastic []*workload
	// resizable caches those of them whose size may change now; it is nil if it must be rebuilt, and stale has the
	// workloads whose entry is stale. listings counts its updates. cramped is set if a workload would be larger with
	// more capacity on nodes.
	resizable *resizable
	stale     []*workload
	listings  int
	cramped   bool
	// preemptionChecked is the state in which no workload could grow at the expense of others.
	preemptionChecked growthState

	// leaving counts the evicted workloads that still hold quota of the queue, unready the admitted ones whose pods
	// are not ready.
	leaving, unready int
	// promised are the workloads that wait for evicted ones to release quota.
	nominated order.Queue
	tally
}

// localQueue is a LocalQueue with the workloads that use it.
type localQueue struct {
	LocalQueue
	waiting.Local
	exists bool
	// members are the workloads that use it, unrouted those of them that must be routed again because it has changed.
	// left are the ClusterQueues that it pointed to before, in which some of these still wait.
	members, unrouted *order.List[*workload]
	left              []*clusterQueue
	// classes are those of its workloads that wait, in any ClusterQueue.
	classes map[*class]struct{}
	tally
	account
}

// open reports whether its workloads may be given more than they have.
func (l *localQueue) open() bool { return l.exists && !l.Stopped && !l.Terminating }

func (e *Engine) queue(name string) *clusterQueue {
	q := e.queues[name]
	if q == nil {
		q = &clusterQueue{fairly: e.options.FairSharing != nil, classes: map[classKey]*class{}, locals: map[Key]*localQueue{},
			waits:   e.waiting.NewQueue(func(c *waiting.Class) func(quota.FlavorResource) bool { return e.evaluator.formOf(classOf(c)).Asks }),
			waiting: &order.List[*workload]{}, unrouted: &order.List[*workload]{},
			entitled: order.NewHeap(func(a, b *class) bool { return a.Before(&b.Class) }, func(c *class) *order.Place { return &c.entitledAt })}
		q.set(ClusterQueue{Name: name})
		q.exists = false
		e.queues[name] = q
	}
	return q
}

func (cq *clusterQueue) set(spec ClusterQueue) {
	cq.ClusterQueue, cq.exists, cq.resizable = spec, true, nil
	cq.waits.Rules = waiting.Rules{Strategy: spec.Strategy, ByUsage: cq.byUsage, Preemption: spec.Preemption,
		FewerNodes: spec.OnDemand || spec.Strategy == ByResource}
	cq.namespaces = labels.Nothing()
	if spec.Namespaces != nil {
		// The API has validated the selector. If it does not parse, no namespace matches.
		if selector, err := metav1.LabelSelectorAsSelector(spec.Namespaces); err == nil {
			cq.namespaces = selector
		}
	}
}

// queueChanged marks all workloads that wait in the queue to be routed again.
func (e *Engine) queueChanged(q *clusterQueue) {
	q.revision++
	order.MoveAll(&q.waiting, &q.unrouted)
	e.changed.Insert(q.Name)
}

func (cq *clusterQueue) offersAny(flavors sets.Set[string]) bool {
	return slices.ContainsFunc(cq.Groups, func(g flavor.Group) bool { return flavors.HasAny(g.Flavors...) })
}

func (e *Engine) local(key Key) *localQueue {
	l := e.localQueues[key]
	if l == nil {
		l = &localQueue{LocalQueue: LocalQueue{Key: key}, members: &order.List[*workload]{}, unrouted: &order.List[*workload]{}, classes: map[*class]struct{}{}}
		e.localQueues[key] = l
	}
	return l
}

func (e *Engine) dropIfUnused(l *localQueue) {
	if !l.exists && l.members.Len() == 0 && l.unrouted.Len() == 0 {
		delete(e.localQueues, l.Key)
		e.relocated.Delete(l.Key)
		e.forgetLeft(l)
	}
}

// forgetLeft forgets the ClusterQueues that the LocalQueue pointed to before, as none of its workloads waits there any
// more. Those that do not exist, and that nothing else names, are not known any more: anyone may name new ones for ever.
func (e *Engine) forgetLeft(l *localQueue) {
	for _, q := range l.left {
		e.forgetIfUnused(q)
	}
	l.left = nil
}

// forgetIfUnused forgets a ClusterQueue that does not exist once nothing names it. A pass does so if queues have changed.
func (e *Engine) forgetIfUnused(q *clusterQueue) {
	if q.family == nil && q.unreferenced() && e.queues[q.Name] == q && !e.changed.Has(q.Name) {
		delete(e.queues, q.Name)
	}
}

// relocate marks all workloads of the LocalQueue to be routed again, because it was created, deleted, stopped or
// resumed, or points to another ClusterQueue than from.
func (e *Engine) relocate(l *localQueue, from *clusterQueue) {
	if from != nil && from != e.queues[l.ClusterQueue] && !slices.Contains(l.left, from) {
		l.left = append(l.left, from)
	}
	order.MoveAll(&l.members, &l.unrouted)
	e.relocated.Insert(l.Key)
}

// markRouted notes that the workload was routed according to the present state of the LocalQueue.
func (l *localQueue) markRouted(w *workload) {
	if w.localEntry.On() == l.unrouted {
		w.localEntry.Remove()
		l.members.Add(&w.localEntry)
	}
}

// addHolder adds the workload to those that can be evicted.
func (cq *clusterQueue) addHolder(h *preempt.Holder) {
	at, _ := slices.BinarySearchFunc(cq.holders, h, preempt.CompareHolders)
	cq.holders = slices.Insert(cq.holders, at, h)
	if h.Pod != nil {
		cq.elasticHolders++
	}
}

// removeHolder reverses addHolder. The holder's sort keys must not have changed.
func (cq *clusterQueue) removeHolder(h *preempt.Holder) {
	if at, ok := slices.BinarySearchFunc(cq.holders, h, preempt.CompareHolders); ok {
		if cq.holders[at].Pod != nil {
			cq.elasticHolders--
		}
		cq.holders = slices.Delete(cq.holders, at, at+1)
	}
}

// fault returns why the queue cannot admit any workload regardless of free capacity.
func (cq *clusterQueue) fault() reason.Reason {
	switch {
	case !cq.exists:
		return reason.Inadmissiblef("ClusterQueue %s doesn't exist", cq.Name)
	case cq.node == nil:
		return reason.Inadmissiblef("ClusterQueue %s is inactive: its cohorts form a cycle", cq.Name)
	case cq.Inactive != "":
		return reason.Inadmissiblef("ClusterQueue %s is inactive: %s", cq.Name, cq.Inactive)
	case cq.Stopped:
		return reason.OnHoldf("ClusterQueue %s is stopped", cq.Name)
	}
	return reason.Reason{}
}
