package engine

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/musterhq/muster/internal/engine/flavor"
	"github.com/musterhq/muster/internal/engine/order"
	"github.com/musterhq/muster/internal/engine/place"
	"github.com/musterhq/muster/internal/engine/place/find"
	"github.com/musterhq/muster/internal/engine/state"
)

// nodes is where pods can be, and where those of workloads are: the map of nodes, and what the engine keeps beside it. It
// reads the workloads, and changes of their state only what is about places.
type nodes struct {
	// places is the capacity of nodes, topologies the levels of each topology.
	places     *place.Map
	finder     *find.Finder
	topologies map[string][]string
	flavors    map[string]flavor.Flavor
	workloads  map[Key]*state.Workload
	// nominatedPlaces are the workloads that were promised places.
	nominatedPlaces map[Key]*state.Workload
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
	replacing map[Key]*state.Workload
}

func newNodes(workloads map[Key]*state.Workload) *nodes {
	places := place.New()
	return &nodes{places: places, finder: find.New(places), topologies: map[string][]string{}, flavors: map[string]flavor.Flavor{}, workloads: workloads,
		nominatedPlaces: map[Key]*state.Workload{}, deferredRepairs: sets.New[Key](), workloadOfPod: map[Key]Key{}, podCounts: map[Key]int{},
		lingering: sets.New[Key](), within: sets.New[Key](), replacing: map[Key]*state.Workload{}}
}

// updatePlaces updates place.Map to what the workload holds or was promised.
func (n *nodes) updatePlaces(w *state.Workload) {
	was, now := w.Placed, n.placedNow(w)
	if w.Replacement != nil && (w.Leaving() || !w.Replacement.Of.Equal(now.By)) {
		n.dropReplacement(w)
	}
	if now == was {
		return
	}
	if w.Gone && now.By != nil {
		n.lingering.Insert(w.Key)
	} else if n.lingering.Has(w.Key) {
		n.lingering.Delete(w.Key)
		n.departing--
	}
	if was.By != nil && now.By.Equal(was.By) && now.Shape == was.Shape && now.Nominated == was.Nominated && now.Leaving == was.Leaving && now.Releases == was.Releases {
		w.Placed = now // the same in a new Admission
		return
	}
	if now.By != was.By {
		n.scheduleWithin(w)
	}
	w.Placed = now
	n.places.Hold(w.Key, n.holding(w, now))
	n.placesVersion++
	if was.Releases {
		n.departing--
	}
	if now.Releases {
		n.departing++
	}
	delete(n.nominatedPlaces, w.Key)
	if now.Nominated {
		n.nominatedPlaces[w.Key] = w
	}
}

// placedNow returns what place.Map should have of the workload.
func (n *nodes) placedNow(w *state.Workload) (now state.Placed) {
	switch {
	case w.Held != nil:
		now = state.Placed{By: w.Held, Shape: w.Shape, Leaving: w.Leaving() && !w.LostItsNodes()}
	case w.Nomination != nil:
		now = state.Placed{By: w.Nomination.Given, Shape: w.Shape, Nominated: true}
	default:
		now = n.leftoverPods(w)
	}
	now.Releases = now.Leaving || now.Nominated && n.podCounts[w.Key] > 0 || now.By != nil && n.hasPodsBeyondPlaces(w)
	if now.By != nil && !now.By.OnNodes() && (!now.Releases || len(n.topologies) == 0) {
		return state.Placed{}
	}
	return now
}

// leftoverPods returns what nodes have of a workload that holds nothing and was promised nothing: pods that have not
// terminated yet.
func (n *nodes) leftoverPods(w *state.Workload) state.Placed {
	if n.podCounts[w.Key] == 0 {
		return state.Placed{}
	}
	return state.Placed{By: &Admission{}, Leaving: true}
}

// holding returns the workload as place.Map has it.
func (n *nodes) holding(w *state.Workload, has state.Placed) *place.Holding {
	if has.By == nil {
		return nil
	}
	out := &place.Holding{Nominated: has.Nominated, Leaving: has.Leaving}
	for i := range has.By.PodSets {
		a := &has.By.PodSets[i]
		ps, places := w.PodSet(a.PodSet), a.Places
		if len(places) == 0 && has.By == w.Held {
			places = w.Within[a.PodSet]
		}
		if ps == nil || len(places) == 0 {
			continue
		}
		var count int32
		for _, p := range places {
			count += p.Count
		}
		ask, _ := n.askOf(ps, a)
		ask.Count, ask.Avoid, ask.Limits = count, w.Avoid.Nodes, w.Avoid.Limits
		set := place.HeldPodSet{Ask: ask, Nodes: places, Ended: max(0, count-a.Count)}
		set.Excess = n.podsBeyondPlaces(w, a)
		out.PodSets = append(out.PodSets, set)
	}
	return out
}

// podsBeyondPlaces returns the pods of an elastic pod set on nodes beyond its places. They have to terminate, even if
// no surplus is recorded any more.
func (n *nodes) podsBeyondPlaces(w *state.Workload, a *Assignment) []place.NodeCount {
	if ps := w.PodSet(a.PodSet); ps == nil || ps.Elastic <= 0 || len(a.Places) == 0 {
		return nil
	}
	there := beyond(n.places.PodNodes(w.Key, a.PodSet, nil), a.Places)
	if a.Surplus == nil {
		return there
	}
	return append(there, beyond(w.Vacated, there)...) // more of them may still be created
}

// hasPodsBeyondPlaces reports whether any such pods exist.
func (n *nodes) hasPodsBeyondPlaces(w *state.Workload) bool {
	return w.Held != nil && w.Shape != nil && w.Shape.Elastic && slices.ContainsFunc(w.Held.PodSets, func(a Assignment) bool { return len(n.podsBeyondPlaces(w, &a)) > 0 })
}

// scheduleWithin schedules the search for the nodes on which the workload's pods are counted, if its assignment names
// none.
func (n *nodes) scheduleWithin(w *state.Workload) {
	if w.Held.IsWithin() {
		n.within.Insert(w.Key)
	} else {
		w.Within = nil
	}
}

// replacementKey is the key under which place.Map has the places promised to replace those that the workload lost. No
// workload has such a key: names have no slash.
func replacementKey(of Key) Key { return Key{Namespace: of.Namespace, Name: of.Name + "/replacement"} }

// dropReplacement takes back what was promised, if anything was.
func (n *nodes) dropReplacement(w *state.Workload) {
	if w.Replacement == nil {
		return
	}
	w.Replacement = nil
	delete(n.replacing, w.Key)
	n.places.Hold(replacementKey(w.Key), nil)
	n.placesVersion++
}

// queueRepair queues a workload whose repair had to wait.
func (n *nodes) queueRepair(w *state.Workload) {
	if w.Assumed != state.Nothing || !n.deferredRepairs.Has(w.Key) {
		return
	}
	n.deferredRepairs.Delete(w.Key)
	n.toRepair.Push(w.Rank())
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
func (n *nodes) asksOf(podSets []PodSet, given []Assignment, avoid state.Avoidance) []place.Ask {
	var asks []place.Ask
	for i := range given {
		if given[i].Count == 0 {
			continue
		}
		if ask, ok := n.askOf(&podSets[i], &given[i]); ok {
			ask.Avoid, ask.Limits = avoid.Nodes, avoid.Limits
			asks = append(asks, ask)
		}
	}
	return asks
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
