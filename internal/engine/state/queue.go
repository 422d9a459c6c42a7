package state

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/musterhq/muster/internal/engine/fair"
	"github.com/musterhq/muster/internal/engine/flavor"
	"github.com/musterhq/muster/internal/engine/model"
	"github.com/musterhq/muster/internal/engine/order"
	"github.com/musterhq/muster/internal/engine/preempt"
	"github.com/musterhq/muster/internal/engine/quota"
	"github.com/musterhq/muster/internal/engine/reason"
	"github.com/musterhq/muster/internal/engine/waiting"
)

// ClusterQueue is a ClusterQueue with the workloads that wait in it and those that hold its quota.
type ClusterQueue struct {
	model.ClusterQueue
	// Exists is false if the queue is only known by references to it.
	Exists   bool
	Selector labels.Selector
	// Fairly is set if fair sharing is on.
	Fairly bool
	// RanksByUsage is set if LocalQueues are ordered by their usage.
	RanksByUsage bool
	// Node and Family are nil if the queue does not exist or is part of a cohort cycle.
	Node   *quota.Node
	Family *Family

	// Classes groups the waiting workloads; Waits is what the waiting room knows of them.
	Classes map[ClassKey]*Class
	Waits   *waiting.Queue
	// Entitled are the classes that fit within the queue's own quota, the first in order on top. Published is the
	// hold-back that other queues have reckoned with last; HeldBack is what is held back of it during a pass, and
	// HeldBackFor the workload for which it is.
	Entitled    order.Heap[*Class]
	Published   HoldBack
	HeldBack    quota.Vector
	HeldBackFor order.Rank
	// Waiting are the workloads that use the queue and hold nothing, Unrouted those of them that must be routed again
	// because the queue has changed. Revision counts these changes.
	Waiting, Unrouted *order.List[*Workload]
	Revision          int
	// Locals are the LocalQueues that point to this queue.
	Locals map[order.Key]*LocalQueue
	// Holders are the workloads that hold quota or have some nominated and are not being evicted, in the order of
	// preempt.CompareHolders; ElasticHolders counts those that can run with fewer pods.
	Holders        []*preempt.Holder
	ElasticHolders int
	// Elastic are the workloads with quota and an elastic pod set, ordered by key.
	Elastic []*Workload
	// Resizable caches those of them whose size may change now; it is nil if it must be rebuilt, and Stale has the
	// workloads whose entry is stale. Listings counts its updates. Cramped is set if a workload would be larger with
	// more capacity on nodes.
	Resizable *Resizable
	Stale     []*Workload
	Listings  int
	Cramped   bool
	// PreemptionChecked is the state in which no workload could grow at the expense of others.
	PreemptionChecked GrowthState

	// Leaving counts the evicted workloads that still hold quota of the queue, Unready the admitted ones whose pods
	// are not ready.
	Leaving, Unready int
	// Nominated are the workloads that wait for evicted ones to release quota.
	Nominated order.Queue
	Tally
}

// LocalQueue is a LocalQueue with the workloads that use it.
type LocalQueue struct {
	model.LocalQueue
	waiting.Local
	Exists bool
	// Members are the workloads that use it, unrouted those of them that must be routed again because it has changed.
	// left are the ClusterQueues that it pointed to before, in which some of these still wait.
	Members, Unrouted *order.List[*Workload]
	Left              []*ClusterQueue
	// Classes are those of its workloads that wait, in any ClusterQueue.
	Classes map[*Class]struct{}
	Tally
	Account
}

// open reports whether its workloads may be given more than they have.
func (l *LocalQueue) open() bool { return l.Exists && !l.Stopped && !l.Terminating }

// Set gives the queue its specification.
func (cq *ClusterQueue) Set(spec model.ClusterQueue) {
	cq.ClusterQueue, cq.Exists, cq.Resizable = spec, true, nil
	cq.Waits.Rules = waiting.Rules{Strategy: spec.Strategy, ByUsage: cq.RanksByUsage, Preemption: spec.Preemption,
		Backfill:   spec.Backfill && spec.Strategy == model.BestEffort,
		FewerNodes: spec.OnDemand}
	cq.Selector = labels.Nothing()
	if spec.Namespaces != nil {
		// The API has validated the selector. If it does not parse, no namespace matches.
		if selector, err := metav1.LabelSelectorAsSelector(spec.Namespaces); err == nil {
			cq.Selector = selector
		}
	}
}

// OffersAny reports whether the queue offers any of the flavors.
func (cq *ClusterQueue) OffersAny(flavors sets.Set[string]) bool {
	return slices.ContainsFunc(cq.Groups, func(g flavor.Group) bool { return flavors.HasAny(g.Flavors...) })
}

// MarkRouted notes that the workload was routed according to the present state of the LocalQueue.
func (l *LocalQueue) MarkRouted(w *Workload) {
	if w.LocalEntry.On() == l.Unrouted {
		w.LocalEntry.Remove()
		l.Members.Add(&w.LocalEntry)
	}
}

// AddHolder adds the workload to those that can be evicted.
func (cq *ClusterQueue) AddHolder(h *preempt.Holder) {
	at, _ := slices.BinarySearchFunc(cq.Holders, h, preempt.CompareHolders)
	cq.Holders = slices.Insert(cq.Holders, at, h)
	if h.Pod != nil {
		cq.ElasticHolders++
	}
}

// RemoveHolder reverses AddHolder. The holder's sort keys must not have changed.
func (cq *ClusterQueue) RemoveHolder(h *preempt.Holder) {
	if at, ok := slices.BinarySearchFunc(cq.Holders, h, preempt.CompareHolders); ok {
		if cq.Holders[at].Pod != nil {
			cq.ElasticHolders--
		}
		cq.Holders = slices.Delete(cq.Holders, at, at+1)
	}
}

// Fault returns why the queue cannot admit any workload regardless of free capacity.
func (cq *ClusterQueue) Fault() reason.Reason {
	switch {
	case !cq.Exists:
		return reason.Inadmissiblef("ClusterQueue %s doesn't exist", cq.Name)
	case cq.Node == nil:
		return reason.Inadmissiblef("ClusterQueue %s is inactive: its cohorts form a cycle", cq.Name)
	case cq.Inactive != "":
		return reason.Inadmissiblef("ClusterQueue %s is inactive: %s", cq.Name, cq.Inactive)
	case cq.Stopped:
		return reason.OnHoldf("ClusterQueue %s is stopped", cq.Name)
	}
	return reason.Reason{}
}

const (
	uncounted Phase = iota
	Pending
	Reserving
	Admitted
)

// Phase is the state that a workload is counted in.
type Phase int

// counted is how a workload counts in the numbers of its queues.
type counted struct {
	Phase   Phase
	Unready bool
	Leaving bool
}

// Tally is the numbers of a queue, updated with every change.
type Tally struct {
	Pending, Reserving, Admitted int
	// Reserved is what is held, used the part of it held by admitted workloads.
	Reserved, Used sums
}

// Add counts a workload with what it holds, or discounts it if the sign is negative.
func (t *Tally) Add(c counted, v quota.Vector, sign int) {
	switch c.Phase {
	case Pending:
		t.Pending += sign
	case Reserving, Admitted:
		t.Reserving += sign
		AddTo(&t.Reserved, v, int64(sign))
		if c.Phase == Admitted {
			t.Admitted += sign
			AddTo(&t.Used, v, int64(sign))
		}
	}
}

// sums are totals by index, without zeros.
type sums map[quota.Index]quota.Sum

// AddTo adds the amounts to the sums, or subtracts them if the sign is negative.
func AddTo(all *sums, v quota.Vector, sign int64) {
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

// Account is the recent usage of a LocalQueue.
type Account struct {
	// Recent is the usage as of SampledAt.
	Recent    fair.Consumption
	SampledAt time.Time
	// Entered has what was given to workloads since then, each counted once: the queue pays for one interval in
	// advance, so that it cannot get much admitted before the next sample. prepaid is the sum.
	Entered map[order.Key]quota.Vector
	Prepaid sums
}

// Refund reverses prepay when the admission failed or has been sampled.
func (l *LocalQueue) Refund(key order.Key) {
	if v, ok := l.Entered[key]; ok {
		AddTo(&l.Prepaid, v, -1)
		delete(l.Entered, key)
	}
}

// TriesBefore reports whether the queue tries flavor a before flavor b.
func (cq *ClusterQueue) TriesBefore(a, b string) bool {
	for _, g := range cq.Groups {
		if at := slices.Index(g.Flavors, a); at >= 0 && at < slices.Index(g.Flavors, b) {
			return true
		}
	}
	return false
}

// NeverOnNodes is whether the present nodes could not hold a class even if nothing else ran on them, as of a revision
// of its queue, and of versions of the nodes and of the pods that stay on them.
type NeverOnNodes struct {
	Known           bool
	Revision, Nodes int
	Residents       uint64
	Never           bool
}

// GrowthState is the state, valid until a time, on which the result of preemptForGrowth depends.
type GrowthState struct {
	Listings, Others, Charges, Places int
	Until                             time.Time
}

// Unreferenced reports whether the queue does not exist and nothing refers to it.
func (cq *ClusterQueue) Unreferenced() bool {
	return !cq.Exists && len(cq.Locals) == 0 && cq.Waiting.Len() == 0 && cq.Unrouted.Len() == 0 && len(cq.Holders) == 0 &&
		cq.Pending == 0 && cq.Reserving == 0
}

// ChecksFor returns the names of the checks of the queue that apply to the given flavors, without duplicates: a queue
// may list a check several times, each for some flavors.
func (cq *ClusterQueue) ChecksFor(given *model.Admission) []string {
	var names []string
	for _, check := range cq.Checks {
		if check.AppliesTo(given) && !slices.Contains(names, check.Name) {
			names = append(names, check.Name)
		}
	}
	return names
}

// Reorder sorts the classes of the queue again after the rule of their order may have changed.
func (cq *ClusterQueue) Reorder() {
	cq.Waits.Rearrange()
	cq.Entitled.Rearrange()
	cq.Reordered()
}

// Reordered does what follows from another order of the queue's classes.
func (cq *ClusterQueue) Reordered() {
	cq.Waits.Reordered()
	if cq.Entitled.Len() > 0 || cq.Nominated.Len() > 0 {
		cq.Family.Enqueue() // another class may have the hold-back, or come before those with a nomination
	}
}

// Rank gives the LocalQueue another standing. Some of its classes may still wait in the ClusterQueues that it pointed
// to before.
func (l *LocalQueue) Rank(standing float64) {
	var ready []*waiting.Class
	var entitled []*Class
	for c := range l.Classes {
		if c.IsReady() {
			ready = append(ready, &c.Class)
		}
		if c.EntitledAt.In() {
			entitled = append(entitled, c)
			c.Queue.Entitled.Remove(c)
		}
	}
	waiting.Move(ready, func() { l.Standing = standing })
	for _, c := range entitled {
		c.Queue.Entitled.Put(c)
	}
	for _, q := range l.Left {
		q.Reordered()
	}
}

// Nominees returns the workloads of the queue with a nomination, sorted by key.
func (cq *ClusterQueue) Nominees(workloads map[order.Key]*Workload) []*Workload {
	var out []*Workload
	for _, r := range cq.Nominated.All() { // not all are holders: a nomination may be of places alone
		out = append(out, workloads[r.Key])
	}
	slices.SortFunc(out, func(a, b *Workload) int { return order.CompareKeys(a.Key, b.Key) })
	return out
}

// IsOpen reports whether the queue has a class to evaluate and nothing blocks the queue. A strict queue is blocked by
// its blocked head, and by a workload with a nomination unless the next class comes before it.
func (cq *ClusterQueue) IsOpen(workloads map[order.Key]*Workload) bool {
	if cq.Waits.Head() != nil || cq.Waits.Ready() == 0 {
		return false
	}
	first := ClassOf(cq.Waits.First()).Turn()
	return cq.Strategy != model.Strict || !slices.ContainsFunc(cq.Nominated.All(), func(r order.Rank) bool {
		return !first.Before(workloads[r.Key].Turn(), cq)
	})
}
