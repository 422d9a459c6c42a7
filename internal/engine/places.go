package engine

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/musterhq/muster/internal/engine/flavor"
	"github.com/musterhq/muster/internal/engine/order"
	"github.com/musterhq/muster/internal/engine/place"
	"github.com/musterhq/muster/internal/engine/place/find"
)

// nodes is where pods can be, and where those of workloads are: the map of nodes, and what the engine keeps beside it. It
// reads the workloads, and changes of their state only what is about places.
type nodes struct {
	// places is the capacity of nodes, topologies the levels of each topology.
	places     *place.Map
	finder     *find.Finder
	topologies map[string][]string
	flavors    map[string]flavor.Flavor
	workloads  map[Key]*workload
	// nominatedPlaces are the workloads that were promised places.
	nominatedPlaces map[Key]*workload
	// placesVersion counts the changes that may affect where there is capacity.
	placesVersion int
	// nodesVersion counts the changes of nodes, topologies, flavors and quota after which a workload may fit, or may never
	// fit, whatever ends.
	nodesVersion int
	// departing counts the workloads that are expected to release places or node capacity: those being evicted, those
	// that shrink, and those with a promise and pods left from an earlier admission.
	departing int
	// toRepair are the workloads with places that must be repaired, in the order of admission; deferredRepairs those
	// whose repair has to wait until the last decision about them is written.
	toRepair        order.Queue
	deferredRepairs sets.Set[Key]
	// workloadOfPod has the workload of each existing pod that has one, podCounts the number of pods of each
	// workload; lingering are deleted or finished workloads whose pods still exist.
	workloadOfPod map[Key]Key
	podCounts     map[Key]int
	lingering     sets.Set[Key]
	// within are the workloads whose assignment names domains only, and whose nodes must be counted again.
	within sets.Set[Key]
	// replacing are the workloads that wait for other places in place of those that they lost.
	replacing map[Key]*workload
}

func newNodes(workloads map[Key]*workload) *nodes {
	places := place.New()
	return &nodes{places: places, finder: find.New(places), topologies: map[string][]string{}, flavors: map[string]flavor.Flavor{}, workloads: workloads,
		nominatedPlaces: map[Key]*workload{}, deferredRepairs: sets.New[Key](), workloadOfPod: map[Key]Key{}, podCounts: map[Key]int{},
		lingering: sets.New[Key](), within: sets.New[Key](), replacing: map[Key]*workload{}}
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

// placed is what place.Map has of a workload: what it holds or was promised, for which pods, and whether it is
// leaving. releases says whether it is expected to release node capacity.
type placed struct {
	by                           *Admission
	shape                        *shape
	nominated, leaving, releases bool
}

// updatePlaces updates place.Map to what the workload holds or was promised.
func (n *nodes) updatePlaces(w *workload) {
	was, now := w.placed, n.placedNow(w)
	if w.replacement != nil && (w.leaving() || !w.replacement.of.Equal(now.by)) {
		n.dropReplacement(w)
	}
	if now == was {
		return
	}
	if w.gone && now.by != nil {
		n.lingering.Insert(w.Key)
	} else if n.lingering.Has(w.Key) {
		n.lingering.Delete(w.Key)
		n.departing--
	}
	if was.by != nil && now.by.Equal(was.by) && now.shape == was.shape && now.nominated == was.nominated && now.leaving == was.leaving && now.releases == was.releases {
		w.placed = now // the same in a new Admission
		return
	}
	if now.by != was.by {
		n.scheduleWithin(w)
	}
	w.placed = now
	n.places.Hold(w.Key, n.holding(w, now))
	n.placesVersion++
	if was.releases {
		n.departing--
	}
	if now.releases {
		n.departing++
	}
	delete(n.nominatedPlaces, w.Key)
	if now.nominated {
		n.nominatedPlaces[w.Key] = w
	}
}

// placedNow returns what place.Map should have of the workload.
func (n *nodes) placedNow(w *workload) (now placed) {
	switch {
	case w.held != nil:
		now = placed{by: w.held, shape: w.shape, leaving: w.leaving() && !w.lostItsNodes()}
	case w.nomination != nil:
		now = placed{by: w.nomination.given, shape: w.shape, nominated: true}
	default:
		now = n.leftoverPods(w)
	}
	now.releases = now.leaving || now.nominated && n.podCounts[w.Key] > 0 || now.by != nil && n.hasPodsBeyondPlaces(w)
	if now.by != nil && !now.by.OnNodes() && (!now.releases || len(n.topologies) == 0) {
		return placed{}
	}
	return now
}

// leftoverPods returns what nodes have of a workload that holds nothing and was promised nothing: pods that have not
// terminated yet.
func (n *nodes) leftoverPods(w *workload) placed {
	if n.podCounts[w.Key] == 0 {
		return placed{}
	}
	return placed{by: &Admission{}, leaving: true}
}

// holding returns the workload as place.Map has it.
func (n *nodes) holding(w *workload, has placed) *place.Holding {
	if has.by == nil {
		return nil
	}
	out := &place.Holding{Nominated: has.nominated, Leaving: has.leaving}
	for i := range has.by.PodSets {
		a := &has.by.PodSets[i]
		ps, places := w.podSet(a.PodSet), a.Places
		if len(places) == 0 && has.by == w.held {
			places = w.within[a.PodSet]
		}
		if ps == nil || len(places) == 0 {
			continue
		}
		var count int32
		for _, p := range places {
			count += p.Count
		}
		ask, _ := n.askOf(ps, a)
		ask.Count, ask.Avoid, ask.Limits = count, w.avoid.nodes, w.avoid.limits
		set := place.HeldPodSet{Ask: ask, Nodes: places, Ended: max(0, count-a.Count)}
		set.Excess = n.podsBeyondPlaces(w, a)
		out.PodSets = append(out.PodSets, set)
	}
	return out
}

// askOf returns the pod set's request for places on the nodes of its assigned flavors; ok is false if none has a
// topology. With several flavors, nodes must match all of them.
func (n *nodes) askOf(ps *PodSet, a *Assignment) (ask place.Ask, ok bool) {
	ask = place.Ask{PodSet: ps.Name, Count: a.Count, PerPod: ps.TakesOfNode(), HostPorts: ps.HostPorts,
		Tolerations: ps.Tolerations, NodeSelector: ps.NodeSelector, Affinity: ps.Affinity, NodeName: ps.NodeName, Unpinned: ps.Unpinned, ExclusiveKey: ps.ExclusiveKey,
		Bounds: ps.Bounds}
	if t := ps.Topology; t != nil {
		ask.Level, ask.Mandatory, ask.Slices, ask.Group = t.Level, t.Mandatory, t.Slices, t.Group
	}
	ask.Flavor = n.placedBy(a)
	for _, name := range a.Flavors {
		if name != ask.Flavor {
			n.addOtherFlavors(&ask, a)
			break
		}
	}
	return ask, n.flavors[ask.Flavor].Topology != ""
}

// placedBy returns the flavor by whose topology the pods are placed: the first by name that has a topology, or else
// the first by name.
func (n *nodes) placedBy(a *Assignment) (first string) {
	for _, name := range a.Flavors {
		placed := n.flavors[name].Topology != ""
		if was := n.flavors[first].Topology != ""; first == "" || placed && !was || placed == was && name < first {
			first = name
		}
	}
	return first
}

// addOtherFlavors adds the node requirements of the other flavors of the assignment.
func (n *nodes) addOtherFlavors(ask *place.Ask, a *Assignment) {
	own := ask.NodeSelector
	ask.NodeSelector, ask.Tolerations, ask.OtherLabels = writable(own), slices.Clone(ask.Tolerations), map[string]string{}
	for _, name := range slices.Sorted(maps.Values(a.Flavors)) {
		if name == ask.Flavor {
			continue
		}
		other := n.flavors[name]
		maps.Copy(ask.NodeSelector, other.NodeLabels)
		for label, value := range other.NodeLabels {
			if _, asked := own[label]; !asked {
				ask.OtherLabels[label] = value
			}
		}
		for _, t := range other.Tolerations {
			if !slices.Contains(ask.Tolerations, t) {
				ask.Tolerations = append(ask.Tolerations, t)
			}
		}
	}
}

// writable returns a copy of the labels, never nil.
func writable(labels map[string]string) map[string]string {
	out := make(map[string]string, len(labels)+1)
	maps.Copy(out, labels)
	return out
}

// asksOf returns the requests for places of the workload's pods in their assigned flavors.
func (n *nodes) asksOf(podSets []PodSet, given []Assignment, avoid avoidance) []place.Ask {
	var asks []place.Ask
	for i := range given {
		if given[i].Count == 0 {
			continue
		}
		if ask, ok := n.askOf(&podSets[i], &given[i]); ok {
			ask.Avoid, ask.Limits = avoid.nodes, avoid.limits
			asks = append(asks, ask)
		}
	}
	return asks
}

// publishNodes tells all that wait what has changed on the nodes: the classes that were short of places, the families of
// workloads with promised places, and the queues of workloads that would be larger.
func (e *Engine) publishNodes() {
	if now := e.nodes.places.Changes(); now != e.nodesPublishedAt {
		e.nodesPublishedAt = now
		for _, f := range e.families {
			if f.waits.DependsOnUse() {
				f.enqueue()
			}
		}
	}
	freed, reduced := e.nodes.places.TakeFreed(), e.nodes.places.TakeReduced()
	for _, name := range reduced {
		e.waiting.NodesReduced(name)
	}
	if len(freed) == 0 {
		return
	}
	for _, q := range e.queues {
		if q.cramped && q.family != nil {
			q.cramped = false
			q.family.enqueue()
		}
	}
	for _, name := range freed {
		e.waiting.NodesFreed(name)
	}
	for _, key := range slices.SortedFunc(maps.Keys(e.nodes.nominatedPlaces), order.CompareKeys) {
		if f := e.nodes.nominatedPlaces[key].queue.family; f != nil {
			f.enqueue()
		}
	}
}

// withPlaces returns the assignments with the places that were found.
func withPlaces(given []Assignment, found []place.Assignment) []Assignment {
	out := slices.Clone(given)
	for i := range out {
		out[i].Places = nil
		for _, f := range found {
			if f.PodSet == out[i].PodSet {
				out[i].Places = f.Nodes
			}
		}
	}
	return out
}

// placesOf returns the places of the assignments, in the order of the asks.
func placesOf(asks []place.Ask, given []Assignment) []place.Assignment {
	var out []place.Assignment
	for _, ask := range asks {
		for _, a := range given {
			if a.PodSet == ask.PodSet {
				out = append(out, place.Assignment{PodSet: a.PodSet, Nodes: a.Places})
			}
		}
	}
	return out
}
