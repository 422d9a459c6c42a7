package engine

import (
	"maps"
	"slices"
	"time"

	"github.com/musterhq/muster/internal/engine/elastic"
	"github.com/musterhq/muster/internal/engine/order"
	"github.com/musterhq/muster/internal/engine/place"
	"github.com/musterhq/muster/internal/engine/preempt"
	"github.com/musterhq/muster/internal/engine/quota"
)

// The size of an elastic pod set changes while its workload runs. It is admitted with as
// many pods as fit, from its minimum on, as any that can start with fewer. It shrinks for
// those who wait (yield.go) and grows into what is free (grow.go). What pods that have to go
// use is held until they are gone, and planned for others: their quota as their room on
// nodes. Ranks keep their places; the last ones go.

// elasticSet is the place of the workload's elastic pod set in what it holds, below zero if
// it has none or its size is not to be changed now.
func (w *workload) elasticSet() int {
	if w.held == nil || w.shape == nil || !w.shape.elastic {
		return -1
	}
	for i := range w.PodSets {
		ps := &w.PodSets[i]
		if ps.Elastic <= 0 || ps.MinCount <= 0 || ps.Reclaimable > 0 || ps.Tied() {
			continue
		}
		return slices.IndexFunc(w.held.PodSets, func(a Assignment) bool { return a.PodSet == ps.Name && a.Count > 0 && len(a.Within) == 0 })
	}
	return -1
}

// elasticJob is the workload as one whose size may change; ok is false where it may not now,
// since it does not run, is on its way, or was just told something else and so is no holder.
func (w *workload) elasticJob() (job elastic.Job, at int, ok bool) {
	at = w.elasticSet()
	if at < 0 || w.charged.holder == nil || !w.Admitted {
		return elastic.Job{}, at, false
	}
	ps, size := w.podSet(w.held.PodSets[at].PodSet), w.held.PodSets[at].Count
	// What it wants may have been less, or more, than it is as yet.
	return elastic.Job{Key: w.Key, Min: min(ps.Least(), size), Max: max(ps.Most(), size), Size: size, Priority: w.Priority, QueuedAt: w.QueuedAt,
		RunsSince: w.ReservedAt, ResizedAt: w.ResizedAt, Exponent: ps.Elastic}, at, true
}

// spare says of the holder how many pods it can do without, if its size may change.
func (e *Engine) spare(w *workload, h *preempt.Holder) {
	if at := w.elasticSet(); at >= 0 && w.Admitted {
		set := &w.held.PodSets[at]
		h.Pod, h.Spare = e.vectorOfPods(set, 1), max(0, set.Count-w.podSet(set.PodSet).Least())
	}
}

// podSet is the workload's of that name.
func (w *workload) podSet(name string) *PodSet {
	return &w.PodSets[slices.IndexFunc(w.PodSets, func(ps PodSet) bool { return ps.Name == name })]
}

// enlist lists the workload among the elastic ones of its queue.
func (e *Engine) enlist(w *workload) {
	was, may := w.listedIn, w.queue != nil && w.elasticSet() >= 0
	if was != nil && (!may || was != w.queue) {
		was.strikeElastic(w)
		w.listedIn = nil
	}
	if may && w.listedIn == nil {
		w.queue.addElastic(w)
		w.listedIn = w.queue
	}
	for _, q := range []*clusterQueue{was, w.listedIn} {
		if q != nil && (q.resizable == nil || len(q.toList) > 0 || !q.resizable.has(w)) {
			q.listLater(w)
			q.wakeOutgrown()
		}
	}
}

// addElastic lists the workload among the elastic ones of the queue, in the order of names;
// strikeElastic is the inverse.
func (q *clusterQueue) addElastic(w *workload) {
	at, _ := q.placeOfElastic(w)
	q.elastic = slices.Insert(q.elastic, at, w)
}

func (q *clusterQueue) strikeElastic(w *workload) {
	if at, ok := q.placeOfElastic(w); ok {
		q.elastic = slices.Delete(q.elastic, at, at+1)
		q.listLater(w)
	}
}

// listLater notes that the list of the queue does not have the workload as it is.
func (q *clusterQueue) listLater(w *workload) {
	if q.resizable != nil {
		q.toList = append(q.toList, w)
	}
}

func (q *clusterQueue) placeOfElastic(w *workload) (int, bool) {
	return slices.BinarySearchFunc(q.elastic, w.Key, func(w *workload, key Key) int { return order.CompareKeys(w.Key, key) })
}

// hasSurplus reports whether pods that have to go are there yet.
func (a *Admission) hasSurplus() bool {
	return a != nil && slices.ContainsFunc(a.PodSets, func(a Assignment) bool { return a.Surplus != nil })
}

// pods are how many it is for.
func (a *Admission) pods() (sum int64) {
	for i := range a.PodSets {
		sum += int64(a.PodSets[i].Count)
	}
	return sum
}

// plannedOf is what the workload has once pods that have to go are gone and it has grown as
// it is planned to.
func (e *Engine) plannedOf(w *workload) quota.Vector {
	out := e.vectorOf(w.held)
	if w.held.hasSurplus() {
		lean := *w.held
		lean.PodSets = slices.Clone(lean.PodSets)
		for i := range lean.PodSets {
			lean.PodSets[i].Surplus = nil
		}
		out = e.vectorOf(&lean)
	}
	if len(w.growing) > 0 {
		out = quota.VectorOf(slices.Concat(out, w.growing)...)
	}
	return out
}

// perPod is what one pod of the assignment has.
func perPod(a *Assignment) map[string]int64 {
	out := make(map[string]int64, len(a.Usage))
	for resource, amount := range a.Usage {
		out[resource] = amount / int64(a.Count)
	}
	return out
}

// vectorOfPods is what so many more pods of the assignment take.
func (e *Engine) vectorOfPods(a *Assignment, pods int32) quota.Vector {
	var amounts []quota.Amount
	for resource, amount := range perPod(a) {
		fr := quota.FlavorResource{Flavor: a.Flavors[resource], Resource: resource}
		amounts = append(amounts, quota.Amount{Index: e.tree.Index(fr), Value: quota.Times(amount, pods)})
	}
	return quota.VectorOf(amounts...)
}

// sized is what is held with so many pods of the pod set at that place: more at the places
// given, or fewer, of which the last are to go.
func (a *Admission) sized(at int, to int32, more []place.NodeCount) *Admission {
	out := *a
	out.PodSets = slices.Clone(out.PodSets)
	set := &out.PodSets[at]
	each := perPod(set)
	fewer := set.Count - to
	if fewer > 0 {
		set.Surplus = maps.Clone(set.Surplus)
		if set.Surplus == nil {
			set.Surplus = map[string]int64{}
		}
	}
	set.Usage = make(map[string]int64, len(each))
	for resource, amount := range each {
		set.Usage[resource] = quota.Times(amount, to)
		if fewer > 0 {
			set.Surplus[resource] = quota.Add(set.Surplus[resource], quota.Times(amount, fewer))
		}
	}
	set.Count = to
	if len(set.Places) > 0 {
		set.Places = append(first(set.Places, to), more...)
	}
	return &out
}

// first are the places of the first so many pods.
func first(places []place.NodeCount, pods int32) []place.NodeCount {
	var out []place.NodeCount
	for _, p := range places {
		if p.Count = min(p.Count, pods); p.Count > 0 {
			out = append(out, p)
			pods -= p.Count
		}
	}
	return out
}

// leaves are the pods of an elastic pod set that are on nodes beyond its places. They have to
// go, even if nobody tells so any more.
func (e *Engine) leaves(w *workload, a *Assignment) []place.NodeCount {
	if n := slices.IndexFunc(w.PodSets, func(ps PodSet) bool { return ps.Name == a.PodSet }); n < 0 || w.PodSets[n].Elastic <= 0 || len(a.Places) == 0 {
		return nil
	}
	there := beyond(e.places.PodNodes(w.Key, a.PodSet, nil), a.Places)
	if a.Surplus == nil {
		return there
	}
	return append(there, beyond(w.vacated, there)...) // more of them may be about to come
}

// shrinksOnNodes reports whether any are there.
func (e *Engine) shrinksOnNodes(w *workload) bool {
	return w.held != nil && w.shape != nil && w.shape.elastic && slices.ContainsFunc(w.held.PodSets, func(a Assignment) bool { return len(e.leaves(w, &a)) > 0 })
}

// followShrinking follows a pod of a workload that came or went.
func (e *Engine) followShrinking(of Key) {
	if w := e.workloads[of]; w != nil && w.elasticSet() >= 0 && (w.placed.clears || e.shrinksOnNodes(w)) {
		w.placed.shape = nil
		e.settlePlaces(w)
	}
}

// beyond is what there is more of than places, by node.
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
	if !w.held.hasSurplus() {
		w.vacated = nil
	}
	w.vacated = merge(w.vacated, beyond(w.held.PodSets[at].Places, given.PodSets[at].Places))
	w.before, w.held = w.held, given
	w.assumed, w.decidedOn = resizes, w.Version
	w.resizedBefore, w.ResizedAt, w.gaveUp = w.ResizedAt, p.now.Truncate(time.Second), false
	if to < from {
		w.growing = nil // who is asked for pods is not given others soon
	}
	p.settle(w)
	sake := w
	if other := p.workloads[by]; other != nil {
		sake = other
	}
	p.decided(w, sake.Priority, Decision{Resize: &Resize{Admission: given, PodSet: given.PodSets[at].PodSet, From: from, To: to, For: by}})
}

// wakeFor has those looked at again for whom the holder, which could not be told to yield
// before, might yield now.
func (q *clusterQueue) wakeFor(w *workload, holder *preempt.Holder) {
	if q.family == nil || holder == nil || w.elasticSet() < 0 {
		return
	}
	q.family.put() // it may grow, or others for whom it yields
	for _, c := range q.classes {
		if c.blocked && c.priority >= holder.Priority {
			q.unblock(c)
		}
	}
}
