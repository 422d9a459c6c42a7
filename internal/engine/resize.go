package engine

import (
	"slices"
	"time"

	"github.com/musterhq/muster/internal/engine/elastic"
	"github.com/musterhq/muster/internal/engine/model"
	"github.com/musterhq/muster/internal/engine/order"
	"github.com/musterhq/muster/internal/engine/place"
	"github.com/musterhq/muster/internal/engine/preempt"
	"github.com/musterhq/muster/internal/engine/quota"
)

// The size of an elastic pod set changes while its workload runs. The workload is admitted with as many pods as fit,
// from its minimum on, like any workload with partial admission. It shrinks for waiting workloads (yield.go) and
// grows into free capacity (grow.go). The quota and the node capacity of removed pods stay held until the pods are
// gone, and are already free in the planned ledger. Remaining ranks keep their places: the last ones are removed.

// elasticSet returns the index of the workload's elastic pod set in what it holds, negative if it has none or its
// size must not change now. Only its job may make one smaller whose pods are tied.
func (w *workload) elasticSet() int {
	if w.held == nil || w.shape == nil || !w.shape.elastic {
		return -1
	}
	for i := range w.PodSets {
		ps := &w.PodSets[i]
		if ps.Elastic <= 0 || ps.MinCount <= 0 || ps.Reclaimable > 0 {
			continue
		}
		return slices.IndexFunc(w.held.PodSets, func(a Assignment) bool { return a.PodSet == ps.Name && a.Count > 0 && len(a.Within) == 0 })
	}
	return -1
}

// resizableSet is elasticSet for a pod set whose size the engine may choose.
func (w *workload) resizableSet() int {
	if at := w.elasticSet(); at >= 0 && !w.podSet(w.held.PodSets[at].PodSet).Tied() {
		return at
	}
	return -1
}

// mayResize reports whether the size of the workload may change now. It may not if the workload does not run, is
// leaving, or has another decision about it in flight and so is no holder.
func (w *workload) mayResize() bool { return w.charged.holder != nil && w.Admitted }

// elasticJob returns the workload as a job whose size the engine may choose; ok is false if it may not now.
func (w *workload) elasticJob() (job elastic.Job, at int, ok bool) {
	at = w.resizableSet()
	if at < 0 || !w.mayResize() {
		return elastic.Job{}, at, false
	}
	ps, size := w.podSet(w.held.PodSets[at].PodSet), w.held.PodSets[at].Count
	// Its present size may be outside of the range that it wants now.
	return elastic.Job{Key: w.Key, Min: min(w.leastOf(at), size), Max: max(ps.Most(), size), Size: size, Priority: w.Priority, QueuedAt: w.QueuedAt,
		RunsSince: w.ReservedAt, ResizedAt: w.ResizedAt, Exponent: ps.Elastic}, at, true
}

// setSpare sets how many pods the holder can do without, if its size may change.
func (l *ledgers) setSpare(w *workload, h *preempt.Holder) {
	if at := w.resizableSet(); at >= 0 && w.Admitted {
		set := &w.held.PodSets[at]
		h.Pod, h.Spare = l.vectorOfPods(set, 1), max(0, set.Count-w.leastOf(at))
	}
}

// leastOf returns how few pods the held pod set at the index may have while the workload runs. Where its job needs a
// number of pods of whichever pod sets, it makes up for those that the others do not have.
func (w *workload) leastOf(at int) int32 {
	ps := w.podSet(w.held.PodSets[at].PodSet)
	var together int32
	for i := range w.PodSets {
		together = max(together, w.PodSets[i].Together)
	}
	for i := range w.held.PodSets {
		if i != at {
			together -= min(together, w.held.PodSets[i].Count)
		}
	}
	return max(ps.Least(), min(together, ps.Most()))
}

// podSet returns the workload's pod set of that name, nil if it has none: a Workload's admission may name any.
func (w *workload) podSet(name string) *PodSet {
	if n := slices.IndexFunc(w.PodSets, func(ps PodSet) bool { return ps.Name == name }); n >= 0 {
		return &w.PodSets[n]
	}
	return nil
}

// list lists the workload among the elastic ones of its queue, or removes it.
func (g *growths) list(w *workload) {
	was, may := w.listedIn, w.queue != nil && w.resizableSet() >= 0
	if was != nil && (!may || was != w.queue) {
		was.removeElastic(w)
		w.listedIn = nil
	}
	if may && w.listedIn == nil {
		w.queue.addElastic(w)
		w.listedIn = w.queue
	}
	for _, q := range []*clusterQueue{was, w.listedIn} {
		if q != nil && (q.resizable == nil || len(q.stale) > 0 || !q.resizable.has(w)) {
			q.markStale(w)
			q.waits.GrowthChanged()
		}
	}
}

// addElastic adds the workload to the elastic ones of the queue, which are sorted by key; removeElastic removes it.
func (cq *clusterQueue) addElastic(w *workload) {
	at, _ := cq.indexOfElastic(w)
	cq.elastic = slices.Insert(cq.elastic, at, w)
}

func (cq *clusterQueue) removeElastic(w *workload) {
	if at, ok := cq.indexOfElastic(w); ok {
		cq.elastic = slices.Delete(cq.elastic, at, at+1)
		cq.markStale(w)
	}
}

// markStale notes that the workload's entry in the queue's resizable is stale.
func (cq *clusterQueue) markStale(w *workload) {
	if cq.resizable != nil {
		cq.stale = append(cq.stale, w)
	}
}

func (cq *clusterQueue) indexOfElastic(w *workload) (int, bool) {
	return slices.BinarySearchFunc(cq.elastic, w.Key, func(w *workload, key Key) int { return order.CompareKeys(w.Key, key) })
}

// plannedOf returns what the workload has once its surplus pods are gone and it has grown as planned.
func (l *ledgers) plannedOf(w *workload) quota.Vector {
	out := l.vectorOf(w.held)
	if w.held.HasSurplus() {
		lean := *w.held
		lean.PodSets = slices.Clone(lean.PodSets)
		for i := range lean.PodSets {
			lean.PodSets[i].Surplus = nil
		}
		out = l.vectorOf(&lean)
	}
	if len(w.growing) > 0 {
		out = quota.VectorOf(slices.Concat(out, w.growing)...)
	}
	return out
}

// vectorOfPods returns what this number of pods of the assignment takes.
func (l *ledgers) vectorOfPods(a *Assignment, pods int32) quota.Vector {
	var amounts []quota.Amount
	for resource, amount := range model.PerPod(a) {
		fr := quota.FlavorResource{Flavor: a.Flavors[resource], Resource: resource}
		amounts = append(amounts, quota.Amount{Index: l.tree.Index(fr), Value: quota.Times(amount, pods)})
	}
	return quota.VectorOf(amounts...)
}

// podsBeyondPlaces returns the pods of an elastic pod set on nodes beyond its places. They have to terminate, even if
// no surplus is recorded any more.
func (n *nodes) podsBeyondPlaces(w *workload, a *Assignment) []place.NodeCount {
	if ps := w.podSet(a.PodSet); ps == nil || ps.Elastic <= 0 || len(a.Places) == 0 {
		return nil
	}
	there := beyond(n.places.PodNodes(w.Key, a.PodSet, nil), a.Places)
	if a.Surplus == nil {
		return there
	}
	return append(there, beyond(w.vacated, there)...) // more of them may still be created
}

// hasPodsBeyondPlaces reports whether any such pods exist.
func (n *nodes) hasPodsBeyondPlaces(w *workload) bool {
	return w.held != nil && w.shape != nil && w.shape.elastic && slices.ContainsFunc(w.held.PodSets, func(a Assignment) bool { return len(n.podsBeyondPlaces(w, &a)) > 0 })
}

// updateShrinking updates places after a pod of the workload was bound or is gone.
func (n *nodes) updateShrinking(of Key) {
	if w := n.workloads[of]; w != nil && w.elasticSet() >= 0 && (w.placed.releases || n.hasPodsBeyondPlaces(w)) {
		w.placed.shape = nil
		n.updatePlaces(w)
	}
}

// beyond returns by how much there exceeds places, by node.
func beyond(there, places []place.NodeCount) []place.NodeCount {
	var out []place.NodeCount
	for _, at := range there {
		for _, p := range places {
			if p.Node == at.Node {
				at.Count -= p.Count
			}
		}
		if at.Count > 0 {
			out = append(out, at)
		}
	}
	return out
}

// resize gives the workload another size.
func (p *pass) resize(w *workload, at int, given *Admission, by Key) {
	from, to := w.held.PodSets[at].Count, given.PodSets[at].Count
	if !w.held.HasSurplus() {
		w.vacated = nil
	}
	w.vacated = merge(w.vacated, beyond(w.held.PodSets[at].Places, given.PodSets[at].Places))
	w.before, w.held = w.held, given
	w.assumed, w.decidedOn = resizes, w.Version
	w.resizedBefore, w.ResizedAt, w.growthFailed = w.ResizedAt, p.engine.growths.now.Truncate(time.Second), false
	if to < from {
		w.growing = nil // a workload that was asked for pods is not given others soon
	}
	p.engine.updateCharges(w)
	sake := w
	if other := p.engine.workloads[by]; other != nil {
		sake = other
	}
	p.addDecision(w, sake.Priority, Decision{Resize: &Resize{Admission: given, PodSet: given.PodSets[at].PodSet, From: from, To: to, For: by}})
}
