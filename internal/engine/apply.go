package engine

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/musterhq/muster/internal/engine/durations"
	"github.com/musterhq/muster/internal/engine/elastic"
	"github.com/musterhq/muster/internal/engine/reason"
	"github.com/musterhq/muster/internal/engine/state"
)

// Apply updates the state with one event. It makes no decisions.
func (e *Engine) Apply(ev Event) { ev.apply(e) }

func (c ClusterQueueSet) apply(e *Engine) {
	q := e.queue(c.Name)
	q.RanksByUsage = c.ByUsage && e.options.AdmissionFairSharing != nil
	otherTimes := q.Durations != c.Durations
	q.Set(c.ClusterQueue)
	if otherTimes {
		e.starts.runs.Forget(func(w *state.Workload) bool { return w.ClusterQueue == q })
	}
	q.Reorder()
	for _, l := range q.Locals {
		e.usageHistory.updateStanding(l)
	}
	e.tree.SetQueue(c.Name, c.Cohort, c.Quotas)
	e.tree.SetQueueWeight(c.Name, c.Weight)
	e.reshaped = true
	e.routing.queueChanged(q)
	e.tallies.markUsage(c.Name)
}

func (c ClusterQueueDeleted) apply(e *Engine) {
	q := e.queue(c.Name)
	q.Set(ClusterQueue{Name: c.Name})
	q.Exists = false
	e.tree.DeleteQueue(c.Name)
	e.reshaped = true
	e.routing.queueChanged(q)
	e.tallies.markUsage(c.Name)
}

func (c CohortSet) apply(e *Engine) {
	e.tree.SetCohort(c.Name, c.Parent, c.Quotas)
	e.tree.SetCohortWeight(c.Name, c.Weight)
	e.routing.recohorted.Insert(c.Name)
	e.reshaped = true
}

func (c CohortDeleted) apply(e *Engine) {
	e.tree.DeleteCohort(c.Name)
	e.routing.recohorted.Insert(c.Name)
	e.reshaped = true
}

func (f FlavorSet) apply(e *Engine) {
	if known, ok := e.nodes.Flavors[f.Name]; ok && equality.Semantic.DeepEqual(known, f.Flavor) {
		return // what the engine knows of it is the same: no decision depends on anything else
	}
	e.nodes.Flavors[f.Name] = f.Flavor
	e.nodes.UpdateFlavor(f.Name)
	e.flavorsChanged(sets.New(f.Name))
}

func (f FlavorDeleted) apply(e *Engine) {
	delete(e.nodes.Flavors, f.Name)
	e.nodes.UpdateFlavor(f.Name)
	e.flavorsChanged(sets.New(f.Name))
}

// flavorsChanged routes all workloads again in the queues that offer any of the flavors.
func (e *Engine) flavorsChanged(flavors sets.Set[string]) {
	for _, q := range e.queues {
		if q.OffersAny(flavors) {
			e.routing.queueChanged(q)
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
		if l.Key.Namespace == name && q != nil && q.Selector.Matches(before) != q.Selector.Matches(now) {
			e.routing.queueChanged(q)
		}
	}
}

func (lqs LocalQueueSet) apply(e *Engine) {
	l := e.routing.local(lqs.Key)
	from := e.queues[l.ClusterQueue]
	if l.Durations != lqs.Durations {
		defer e.starts.runs.Forget(func(w *state.Workload) bool { return w.Local == l })
	}
	same := l.Exists && l.ClusterQueue == lqs.ClusterQueue && l.Stopped == lqs.Stopped &&
		l.Terminating == lqs.Terminating && l.Durations == lqs.Durations
	e.setLocalQueue(l, lqs.LocalQueue)
	l.Exists = true
	e.queue(lqs.ClusterQueue).Locals[lqs.Key] = l
	if !same {
		e.routing.relocate(l, from)
	}
	e.usageHistory.restore(l)
}

func (lqd LocalQueueDeleted) apply(e *Engine) {
	l := e.routing.local(lqd.Key)
	from := e.queues[l.ClusterQueue]
	e.setLocalQueue(l, LocalQueue{Key: lqd.Key})
	l.Exists = false
	e.routing.relocate(l, from)
	l.Rank(0)
	l.Account = state.Account{}
	e.routing.dropIfUnused(l)
}

// setLocalQueue sets the spec of the LocalQueue, and with it the ClusterQueue that it points to.
func (e *Engine) setLocalQueue(l *state.LocalQueue, to LocalQueue) {
	if q := e.queues[l.ClusterQueue]; q != nil {
		delete(q.Locals, l.Key)
	}
	l.LocalQueue = to
	e.tallies.localUsageChanged.Insert(l.Key)
}

func (n NodeSet) apply(e *Engine) {
	e.nodes.Places.SetNode(n.Node)
	e.nodes.PlacesVersion++
	e.nodes.NodesVersion++
}

func (n NodeDeleted) apply(e *Engine) {
	e.nodes.Places.DeleteNode(n.Name)
	e.nodes.PlacesVersion++
	e.nodes.NodesVersion++
}

func (t TopologySet) apply(e *Engine) {
	if levels, known := e.nodes.Topologies[t.Topology.Name]; known && slices.Equal(levels, t.Levels) {
		return
	}
	e.nodes.Topologies[t.Topology.Name] = t.Levels
	e.nodes.Places.SetTopology(t.Topology)
	e.topologyChanged(t.Topology.Name)
}

func (t TopologyDeleted) apply(e *Engine) {
	delete(e.nodes.Topologies, t.Name)
	e.nodes.Places.DeleteTopology(t.Name)
	e.topologyChanged(t.Name)
}

// topologyChanged routes all workloads again in the queues that offer a flavor of the topology.
func (e *Engine) topologyChanged(name string) {
	flavors := sets.New[string]()
	for f := range e.nodes.Flavors {
		if e.nodes.Flavors[f].Topology == name {
			flavors.Insert(f)
		}
	}
	e.flavorsChanged(flavors)
	e.nodes.RefreshPlaces(flavors)
}

func (p PodBound) apply(e *Engine) {
	e.nodes.Places.SetPod(p.Pod)
	e.nodes.PlacesVersion++
	if of := e.nodes.WorkloadOfPod[p.Key]; of != p.Workload {
		e.nodes.UncountPod(p.Key)
		e.nodes.CountPod(p.Key, p.Workload)
	}
	e.nodes.RecountWithin(p.Workload)
	e.nodes.UpdateShrinking(p.Workload)
}

func (p PodGone) apply(e *Engine) {
	if e.nodes.Places.DeletePod(p.Key) {
		e.nodes.PodLeft(p.Key)
	}
}

func (p PodEnded) apply(e *Engine) {
	if e.nodes.Places.EndPod(p.Key, p.Of) {
		e.nodes.PodLeft(p.Key)
	}
}

func (p PodUnschedulable) apply(e *Engine) {
	w := e.workloads[p.Workload]
	if w == nil || w.Held == nil || slices.Contains(w.Avoid.Nodes, p.Node) {
		return
	}
	if most := e.nodes.MostOn(w, p.Node, p.Why); most > 0 {
		w.Avoid.Limit(p.Node, most)
	} else {
		w.Avoid.Nodes = slices.Sorted(slices.Values(append(slices.Clone(w.Avoid.Nodes), p.Node)))
		w.Avoid.Why = p.Why
	}
	e.nodes.Refresh(w)
}

func (ws WorkloadSet) apply(e *Engine) {
	w := e.workloads[ws.Key]
	if w != nil && w.UID != ws.UID {
		e.forget(w)
		w = nil
	}
	switch {
	case w == nil:
		w = &state.Workload{Workload: Workload{Generation: ws.Generation}, Refusal: state.ReportedRefusal(&ws.Workload)}
		w.QueueEntry.Of, w.LocalEntry.Of = w, w
		e.workloads[ws.Key] = w
	case ws.Version < w.Version:
		return // stale event
	}
	ws.PodSets = withinBounds(ws.PodSets)
	shape := e.shapes.of(ws.PodSets)
	if w.Shape != nil {
		e.shapes.release(w.Shape)
	}
	if w.Held == nil && ws.Admission == nil && w.Shape == shape && w.WaitsLike(ws.Workload) {
		// Nothing relevant changed: it keeps its position, and what is nominated for it.
		w.Workload = ws.Workload
		e.reports.refresh(w)
		return
	}
	e.leave(w)
	if w.Held == nil && ws.Admission == nil {
		e.starts.forget(w) // it was promised as what it was
	}
	if w.Local != nil && w.LocalKey() != ws.LocalKey() {
		e.leaveLocal(w)
	}
	if w.Generation != ws.Generation {
		e.evictions.forget(w.Key)
		e.refusals.clear(w)
	}
	if !w.Time.Equal(ws.Time) || w.Queue != ws.Queue {
		w.Forecast = durations.Forecast{}
	}
	w.Workload, w.Shape = ws.Workload, shape
	if w.Local == nil {
		w.Local = e.routing.local(w.LocalKey())
		w.Local.Members.Add(&w.LocalEntry)
	}
	if w.Why.Code == reason.None {
		w.Why, w.Reported = reason.Reason{Code: ws.ReportedCode, Detail: ws.ReportedMessage}, ws.ReportedMessage
	}
	e.observeAdmission(w, ws.Admission)
	e.evictions.trackWithdrawn(w)
	e.route(w)
	e.reports.refresh(w)
	if w.ListedIn != nil {
		w.ClusterQueue.Family.Enqueue() // it may be able to grow now, or no longer
	}
}

// withinBounds returns the pod sets so that one of more pods than elastic.MaxReplicas keeps the size that it starts
// with, which may be smaller than its count like that of any other with a minimum. A policy refuses such elastic pod
// sets; one may be older, or the policies not installed.
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

func (r RunEnded) apply(e *Engine) { e.starts.runs.Learned.Note(&r.Time, r.Took) }

func (wr Written) apply(e *Engine) {
	w := e.unconfirmed(wr.Key, wr.UID, wr.Serial)
	if w == nil || wr.Version <= w.DecidedOn {
		return // the last one: the result of an earlier decision
	}
	if w.Version > wr.Version {
		// It was written, and has been changed again since.
		e.rollBack(w)
		return
	}
	w.Evicted = w.Evicted || w.Assumed == state.Evicts
	w.Admitted = w.Admitted || w.Assumed == state.Admits && len(w.Held.Checks) == 0
	w.LostNodes = w.LostNodes && w.Assumed != state.Admits || w.NodesFailed
	if w.Assumed == state.Admits {
		e.starts.confirmed(w)
	}
	w.Assumed, w.Before, w.Version = state.Nothing, nil, wr.Version
	e.evictions.trackWithdrawn(w)
	e.refusals.clear(w)
	e.updateCharges(w)
	e.nodes.QueueRepair(w)
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
	if w := e.unconfirmed(t.Key, t.UID, t.Serial); w != nil && w.Assumed == state.Tries {
		w.Refusal.Proven = true
		e.rollBack(w)
	}
}

// Event is a change that was observed. Each event carries the complete new state of its object, so that applying it
// twice is the same as applying it once.
type Event interface {
	apply(e *Engine)
}
