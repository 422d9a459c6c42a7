package engine

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/musterhq/muster/internal/engine/fair"
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

func (cq *clusterQueue) offersAny(flavors sets.Set[string]) bool {
	return slices.ContainsFunc(cq.Groups, func(g flavor.Group) bool { return flavors.HasAny(g.Flavors...) })
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

const (
	uncounted state = iota
	pending
	reserving
	admitted
)

// state is the state that a workload is counted in.
type state int

// counted is how a workload counts in the numbers of its queues.
type counted struct {
	state   state
	unready bool
	leaving bool
}

// tally is the numbers of a queue, updated with every change.
type tally struct {
	pending, reserving, admitted int
	// reserved is what is held, used the part of it held by admitted workloads.
	reserved, used sums
}

func (t *tally) add(c counted, v quota.Vector, sign int) {
	switch c.state {
	case pending:
		t.pending += sign
	case reserving, admitted:
		t.reserving += sign
		addTo(&t.reserved, v, int64(sign))
		if c.state == admitted {
			t.admitted += sign
			addTo(&t.used, v, int64(sign))
		}
	}
}

// sums are totals by index, without zeros.
type sums map[quota.Index]quota.Sum

func addTo(all *sums, v quota.Vector, sign int64) {
	if *all == nil {
		*all = sums{}
	}
	for _, a := range v {
		sum := (*all)[a.Index]
		if sum.Add(quota.SumOf(sign * a.Value)); sum == (quota.Sum{}) {
			delete(*all, a.Index)
		} else {
			(*all)[a.Index] = sum
		}
	}
}

// account is the recent usage of a LocalQueue.
type account struct {
	// consumed is the usage as of sampledAt.
	consumed  fair.Consumption
	sampledAt time.Time
	// entered has what was given to workloads since then, each counted once: the queue pays for one interval in
	// advance, so that it cannot get much admitted before the next sample. prepaid is the sum.
	entered map[Key]quota.Vector
	prepaid sums
}

// refund reverses prepay when the admission failed or has been sampled.
func (l *localQueue) refund(key Key) {
	if v, ok := l.entered[key]; ok {
		addTo(&l.prepaid, v, -1)
		delete(l.entered, key)
	}
}

// triesBefore reports whether the queue tries flavor a before flavor b.
func (cq *clusterQueue) triesBefore(a, b string) bool {
	for _, g := range cq.Groups {
		if at := slices.Index(g.Flavors, a); at >= 0 && at < slices.Index(g.Flavors, b) {
			return true
		}
	}
	return false
}

// neverOnNodes is whether the present nodes could not hold a class even if nothing else ran on them, as of a revision of
// its queue, and of versions of the nodes and of the pods that stay on them.
type neverOnNodes struct {
	known           bool
	revision, nodes int
	residents       uint64
	never           bool
}

// growthState is the state, valid until a time, on which the result of preemptForGrowth depends.
type growthState struct {
	listings, others, charges, places int
	until                             time.Time
}
