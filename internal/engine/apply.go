package engine

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/musterhq/muster/internal/engine/elastic"
	"github.com/musterhq/muster/internal/engine/place"
	"github.com/musterhq/muster/internal/engine/reason"
)

// Apply updates the state with one event. It makes no decisions.
func (e *Engine) Apply(ev Event) { ev.apply(e) }

func (c ClusterQueueSet) apply(e *Engine) {
	q := e.queue(c.Name)
	q.byUsage = c.ByUsage && e.options.AdmissionFairSharing != nil
	q.set(c.ClusterQueue)
	q.reorder()
	for _, l := range q.locals {
		e.usageHistory.updateStanding(l)
	}
	e.tree.SetQueue(c.Name, c.Cohort, c.Quotas)
	e.tree.SetQueueWeight(c.Name, c.Weight)
	e.reshaped = true
	e.queueChanged(q)
	e.tallies.markUsage(c.Name)
}

func (c ClusterQueueDeleted) apply(e *Engine) {
	q := e.queue(c.Name)
	q.set(ClusterQueue{Name: c.Name})
	q.exists = false
	e.tree.DeleteQueue(c.Name)
	e.reshaped = true
	e.queueChanged(q)
	e.tallies.markUsage(c.Name)
}

func (c CohortSet) apply(e *Engine) {
	e.tree.SetCohort(c.Name, c.Parent, c.Quotas)
	e.tree.SetCohortWeight(c.Name, c.Weight)
	e.recohorted.Insert(c.Name)
	e.reshaped = true
}

func (c CohortDeleted) apply(e *Engine) {
	e.tree.DeleteCohort(c.Name)
	e.recohorted.Insert(c.Name)
	e.reshaped = true
}

func (f FlavorSet) apply(e *Engine) {
	if known, ok := e.nodes.flavors[f.Name]; ok && equality.Semantic.DeepEqual(known, f.Flavor) {
		return // what the engine knows of it is the same: no decision depends on anything else
	}
	e.nodes.flavors[f.Name] = f.Flavor
	e.updateFlavor(f.Name)
	e.flavorsChanged(sets.New(f.Name))
}

func (f FlavorDeleted) apply(e *Engine) {
	delete(e.nodes.flavors, f.Name)
	e.updateFlavor(f.Name)
	e.flavorsChanged(sets.New(f.Name))
}

// flavorsChanged routes all workloads again in the queues that offer any of the flavors.
func (e *Engine) flavorsChanged(flavors sets.Set[string]) {
	for _, q := range e.queues {
		if q.offersAny(flavors) {
			e.queueChanged(q)
			e.tallies.markUsage(q.Name)
		}
	}
}

func (n NamespaceSet) apply(e *Engine) {
	before := e.namespaces[n.Name]
	e.namespaces[n.Name] = n.Labels
	e.namespaceChanged(n.Name, before)
}

func (n NamespaceDeleted) apply(e *Engine) {
	before := e.namespaces[n.Name]
	delete(e.namespaces, n.Name)
	e.namespaceChanged(n.Name, before)
}

// namespaceChanged routes all workloads again in the queues that accept the namespace now and did not before, or the
// other way round.
func (e *Engine) namespaceChanged(name string, before labels.Set) {
	now := e.namespaces[name]
	for _, l := range e.localQueues {
		q := e.queues[l.ClusterQueue]
		if l.Key.Namespace == name && q != nil && q.namespaces.Matches(before) != q.namespaces.Matches(now) {
			e.queueChanged(q)
		}
	}
}

func (lqs LocalQueueSet) apply(e *Engine) {
	l := e.local(lqs.Key)
	from := e.queues[l.ClusterQueue]
	same := l.exists && l.ClusterQueue == lqs.ClusterQueue && l.Stopped == lqs.Stopped && l.Terminating == lqs.Terminating
	e.setLocalQueue(l, lqs.LocalQueue)
	l.exists = true
	e.queue(lqs.ClusterQueue).locals[lqs.Key] = l
	if !same {
		e.relocate(l, from)
	}
	e.usageHistory.restore(l)
}

func (lqd LocalQueueDeleted) apply(e *Engine) {
	l := e.local(lqd.Key)
	from := e.queues[l.ClusterQueue]
	e.setLocalQueue(l, LocalQueue{Key: lqd.Key})
	l.exists = false
	e.relocate(l, from)
	l.rank(0)
	l.account = account{}
	e.dropIfUnused(l)
}

// setLocalQueue sets the spec of the LocalQueue, and with it the ClusterQueue that it points to.
func (e *Engine) setLocalQueue(l *localQueue, to LocalQueue) {
	if q := e.queues[l.ClusterQueue]; q != nil {
		delete(q.locals, l.Key)
	}
	l.LocalQueue = to
	e.tallies.localUsageChanged.Insert(l.Key)
}

func (n NodeSet) apply(e *Engine) {
	e.nodes.places.SetNode(n.Node)
	e.nodes.placesVersion++
	e.nodes.nodesVersion++
}

func (n NodeDeleted) apply(e *Engine) {
	e.nodes.places.DeleteNode(n.Name)
	e.nodes.placesVersion++
	e.nodes.nodesVersion++
}

func (t TopologySet) apply(e *Engine) {
	if levels, known := e.nodes.topologies[t.Topology.Name]; known && slices.Equal(levels, t.Levels) {
		return
	}
	e.nodes.topologies[t.Topology.Name] = t.Levels
	e.nodes.places.SetTopology(t.Topology)
	e.topologyChanged(t.Topology.Name)
}

func (t TopologyDeleted) apply(e *Engine) {
	delete(e.nodes.topologies, t.Name)
	e.nodes.places.DeleteTopology(t.Name)
	e.topologyChanged(t.Name)
}

// topologyChanged routes all workloads again in the queues that offer a flavor of the topology.
func (e *Engine) topologyChanged(name string) {
	flavors := sets.New[string]()
	for f := range e.nodes.flavors {
		if e.nodes.flavors[f].Topology == name {
			flavors.Insert(f)
		}
	}
	e.flavorsChanged(flavors)
	e.refreshPlaces(flavors)
}

// updateFlavor updates the flavor in place.Map.
func (e *Engine) updateFlavor(name string) {
	if f, ok := e.nodes.flavors[name]; ok {
		e.nodes.places.SetFlavor(place.Flavor{Name: name, Topology: f.Topology, NodeLabels: f.NodeLabels, Tolerations: f.Tolerations})
	} else {
		e.nodes.places.DeleteFlavor(name)
	}
	e.refreshPlaces(sets.New(name))
}

// refreshPlaces updates place.Map for the workloads with places in the flavors, which may have been observed before
// these.
func (e *Engine) refreshPlaces(flavors sets.Set[string]) {
	e.nodes.nodesVersion++
	placed := map[Key]*workload{}
	for key, w := range e.workloads {
		if w.placed.by.HasAny(flavors) {
			placed[key] = w
		}
	}
	for _, w := range sortedByKey(placed) {
		w.placed.shape = nil
		e.nodes.updatePlaces(w)
	}
}

func (p PodBound) apply(e *Engine) {
	e.nodes.places.SetPod(p.Pod)
	e.nodes.placesVersion++
	if of := e.nodes.workloadOfPod[p.Key]; of != p.Workload {
		e.nodes.uncountPod(p.Key)
		e.nodes.countPod(p.Key, p.Workload)
	}
	e.nodes.recountWithin(p.Workload)
	e.nodes.updateShrinking(p.Workload)
}

func (p PodGone) apply(e *Engine) {
	if e.nodes.places.DeletePod(p.Key) {
		e.nodes.podLeft(p.Key)
	}
}

func (p PodEnded) apply(e *Engine) {
	if e.nodes.places.EndPod(p.Key, p.Of) {
		e.nodes.podLeft(p.Key)
	}
}

func (p PodUnschedulable) apply(e *Engine) {
	w := e.workloads[p.Workload]
	if w == nil || w.held == nil || slices.Contains(w.avoid.nodes, p.Node) {
		return
	}
	if most := e.nodes.mostOn(w, p); most > 0 {
		w.avoid.limit(p.Node, most)
		w.placed.shape = nil
		e.nodes.updatePlaces(w)
		return
	}
	w.avoid.nodes = slices.Sorted(slices.Values(append(slices.Clone(w.avoid.nodes), p.Node)))
	w.avoid.why = p.Why
	w.placed.shape = nil
	e.nodes.updatePlaces(w)
}

func (ws WorkloadSet) apply(e *Engine) {
	w := e.workloads[ws.Key]
	if w != nil && w.UID != ws.UID {
		e.forget(w)
		w = nil
	}
	switch {
	case w == nil:
		w = &workload{Workload: Workload{Generation: ws.Generation}, refusal: reportedRefusal(&ws.Workload)}
		w.queueEntry.Of, w.localEntry.Of = w, w
		e.workloads[ws.Key] = w
	case ws.Version < w.Version:
		return // stale event
	}
	ws.PodSets = withinBounds(ws.PodSets)
	shape := e.shapeOf(ws.PodSets)
	if w.shape != nil {
		e.releaseShape(w.shape)
	}
	if w.held == nil && ws.Admission == nil && w.shape == shape && w.WaitsLike(ws.Workload) {
		// Nothing relevant changed: it keeps its position, and what it was promised.
		w.Workload = ws.Workload
		e.reports.refresh(w)
		return
	}
	e.leave(w)
	if w.local != nil && w.LocalKey() != ws.LocalKey() {
		e.leaveLocal(w)
	}
	if w.Generation != ws.Generation {
		e.forgetPrecedence(w.Key)
		e.refusals.clear(w)
	}
	w.Workload, w.shape = ws.Workload, shape
	if w.local == nil {
		w.local = e.local(w.LocalKey())
		w.local.members.Add(&w.localEntry)
	}
	if w.why.Code == reason.None {
		w.why, w.reported = reason.Reason{Code: ws.ReportedCode, Detail: ws.ReportedMessage}, ws.ReportedMessage
	}
	e.observeAdmission(w, ws.Admission)
	e.evictions.trackWithdrawn(w)
	e.route(w)
	e.reports.refresh(w)
	if w.listedIn != nil && w.queue.family != nil {
		w.queue.family.enqueue() // it may be able to grow now, or no longer
	}
}

// withinBounds returns the pod sets so that one of more pods than elastic.MaxReplicas keeps the size that it starts with,
// which may be smaller than its count like that of any other with a minimum. A policy refuses such elastic pod sets; one
// may be older, or the policies not installed.
func withinBounds(podSets []PodSet) []PodSet {
	tooLarge := func(ps PodSet) bool { return ps.Elastic > 0 && ps.Count > elastic.MaxReplicas }
	if !slices.ContainsFunc(podSets, tooLarge) {
		return podSets
	}
	podSets = slices.Clone(podSets)
	for i := range podSets {
		if tooLarge(podSets[i]) {
			podSets[i].Elastic, podSets[i].Wanted = 0, 0
		}
	}
	return podSets
}

func (wg WorkloadGone) apply(e *Engine) {
	if w := e.workloads[wg.Key]; w != nil {
		e.forget(w)
	}
}

func (wr Written) apply(e *Engine) {
	w := e.unconfirmed(wr.Key, wr.UID, wr.Serial)
	if w == nil || wr.Version <= w.decidedOn {
		return // the last one: the result of an earlier decision
	}
	if w.Version > wr.Version {
		// It was written, and has been changed again since.
		e.rollBack(w)
		return
	}
	w.Evicted = w.Evicted || w.assumed == evicts
	w.Admitted = w.Admitted || w.assumed == admits && len(w.held.Checks) == 0
	w.LostNodes = w.LostNodes && w.assumed != admits || w.lostNodes
	w.assumed, w.before, w.Version = nothing, nil, wr.Version
	e.evictions.trackWithdrawn(w)
	e.refusals.clear(w)
	e.updateCharges(w)
	e.nodes.queueRepair(w)
}

func (r Refused) apply(e *Engine) {
	if w := e.unconfirmed(r.Key, r.UID, r.Serial); w != nil {
		e.refusals.backOff(w, r)
		e.rollBack(w)
	}
}

func (f Failed) apply(e *Engine) {
	if w := e.unconfirmed(f.Key, f.UID, f.Serial); w != nil {
		e.rollBack(w)
	}
}

func (t Tried) apply(e *Engine) {
	if w := e.unconfirmed(t.Key, t.UID, t.Serial); w != nil && w.assumed == tries {
		w.refusal.proven = true
		e.rollBack(w)
	}
}

// Event is a change that was observed. Each event carries the complete new state of its object, so that applying it
// twice is the same as applying it once.
type Event interface {
	apply(e *Engine)
}
