package nodes

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/musterhq/muster/internal/engine/flavor"
	"github.com/musterhq/muster/internal/engine/model"
	"github.com/musterhq/muster/internal/engine/order"
	"github.com/musterhq/muster/internal/engine/place"
	"github.com/musterhq/muster/internal/engine/place/find"
	"github.com/musterhq/muster/internal/engine/state"
)

// Nodes is where pods can be, and where those of workloads are: the map of nodes, and what the engine keeps beside it.
// It reads the workloads, and changes of their state only what is about places.
type Nodes struct {
	// Places is the capacity of nodes, Finder looks for places in it. Topologies are the levels of each topology.
	Places     *place.Map
	Finder     *find.Finder
	Topologies map[string][]string
	Flavors    map[string]flavor.Flavor
	workloads  map[order.Key]*state.Workload
	// NominatedPlaces are the workloads for which places are nominated.
	NominatedPlaces map[order.Key]*state.Workload
	// PlacesVersion counts the changes that may affect where there is capacity.
	PlacesVersion int
	// NodesVersion counts the changes of nodes, topologies, flavors and quota after which a workload may fit, or may never
	// fit, whatever ends.
	NodesVersion int
	// Departing counts the workloads that are expected to release places or node capacity: those being evicted, those
	// that shrink, and those with a nomination and pods left from an earlier admission.
	Departing int
	// ToRepair are the workloads with places that must be repaired, in the order of admission; DeferredRepairs those
	// whose repair has to wait until the last decision about them is written.
	ToRepair        order.Queue
	DeferredRepairs sets.Set[order.Key]
	// WorkloadOfPod has the workload of each existing pod that has one, PodCounts the number of pods of each
	// workload; Lingering are deleted or finished workloads whose pods still exist.
	WorkloadOfPod map[order.Key]order.Key
	PodCounts     map[order.Key]int
	Lingering     sets.Set[order.Key]
	// Within are the workloads whose assignment names domains only, and whose nodes must be counted again.
	Within sets.Set[order.Key]
	// Replacing are the workloads that wait for other places in place of those that they lost.
	Replacing map[order.Key]*state.Workload
}

// New returns an empty map of nodes that reads the workloads.
func New(workloads map[order.Key]*state.Workload) *Nodes {
	places := place.New()
	return &Nodes{Places: places, Finder: find.New(places), Topologies: map[string][]string{},
		Flavors: map[string]flavor.Flavor{}, workloads: workloads,
		NominatedPlaces: map[order.Key]*state.Workload{}, DeferredRepairs: sets.New[order.Key](),
		WorkloadOfPod: map[order.Key]order.Key{}, PodCounts: map[order.Key]int{},
		Lingering: sets.New[order.Key](), Within: sets.New[order.Key](), Replacing: map[order.Key]*state.Workload{}}
}

// UpdatePlaces updates place.Map to what the workload holds or has nominated.
func (n *Nodes) UpdatePlaces(w *state.Workload) {
	was, now := w.Placed, n.placedNow(w)
	if w.Replacement != nil && (w.Leaving() || !w.Replacement.Of.Equal(now.By)) {
		n.DropReplacement(w)
	}
	if now == was {
		return
	}
	if w.Gone && now.By != nil {
		n.Lingering.Insert(w.Key)
	} else if n.Lingering.Has(w.Key) {
		n.Lingering.Delete(w.Key)
		n.Departing--
	}
	if was.By != nil && now.By.Equal(was.By) && now.Shape == was.Shape && now.Nominated == was.Nominated &&
		now.Leaving == was.Leaving && now.Releases == was.Releases {
		w.Placed = now // the same in a new Admission
		return
	}
	if now.By != was.By {
		if w.Held.IsWithin() {
			n.Within.Insert(w.Key) // the nodes on which its pods are counted are searched: its assignment names none
		} else {
			w.Within = nil
		}
	}
	w.Placed = now
	n.HoldAs(w, now)
	n.PlacesVersion++
	if was.Releases {
		n.Departing--
	}
	if now.Releases {
		n.Departing++
	}
	delete(n.NominatedPlaces, w.Key)
	if now.Nominated {
		n.NominatedPlaces[w.Key] = w
	}
}

// Refresh updates place.Map to the workload after what it depends on has changed, other than what it holds.
func (n *Nodes) Refresh(w *state.Workload) {
	w.Placed.Shape = nil
	n.UpdatePlaces(w)
}

// HoldAs makes place.Map have this of the workload.
func (n *Nodes) HoldAs(w *state.Workload, has state.Placed) { n.Places.Hold(w.Key, n.Holding(w, has)) }

// placedNow returns what place.Map should have of the workload.
func (n *Nodes) placedNow(w *state.Workload) (now state.Placed) {
	switch {
	case w.Held != nil:
		now = state.Placed{By: w.Held, Shape: w.Shape, Leaving: w.Leaving() && !w.LostItsNodes()}
	case w.Nomination != nil:
		now = state.Placed{By: w.Nomination.Given, Shape: w.Shape, Nominated: true}
	default:
		now = n.LeftoverPods(w)
	}
	now.Releases = now.Leaving || now.Nominated && n.PodCounts[w.Key] > 0 || now.By != nil && n.hasPodsBeyondPlaces(w)
	if now.By != nil && !now.By.OnNodes() && (!now.Releases || len(n.Topologies) == 0) {
		return state.Placed{}
	}
	return now
}

// LeftoverPods returns what nodes have of a workload that holds nothing and has nothing nominated: pods that have not
// terminated yet.
func (n *Nodes) LeftoverPods(w *state.Workload) state.Placed {
	if n.PodCounts[w.Key] == 0 {
		return state.Placed{}
	}
	return state.Placed{By: &model.Admission{}, Leaving: true}
}

// Holding returns the workload as place.Map has it.
func (n *Nodes) Holding(w *state.Workload, has state.Placed) *place.Holding {
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
		ask, _ := n.AskOf(ps, a, &w.Avoid)
		ask.Count = CountOf(places)
		out.PodSets = append(out.PodSets, place.HeldPodSet{Ask: ask, Nodes: places, Ended: max(0, ask.Count-a.Count),
			Excess: n.podsBeyondPlaces(w, a)})
	}
	return out
}

// podsBeyondPlaces returns the pods of an elastic pod set on nodes beyond its places. They have to terminate, even if
// no surplus is recorded any more.
func (n *Nodes) podsBeyondPlaces(w *state.Workload, a *flavor.Assignment) []place.NodeCount {
	if ps := w.PodSet(a.PodSet); ps == nil || ps.Elastic <= 0 || len(a.Places) == 0 {
		return nil
	}
	there := Beyond(n.Places.PodNodes(w.Key, a.PodSet, nil), a.Places)
	if a.Surplus == nil {
		return there
	}
	return append(there, Beyond(w.Vacated, there)...) // more of them may still be created
}

// hasPodsBeyondPlaces reports whether any such pods exist.
func (n *Nodes) hasPodsBeyondPlaces(w *state.Workload) bool {
	return w.Held != nil && w.Shape != nil && w.Shape.Elastic &&
		slices.ContainsFunc(w.Held.PodSets, func(a flavor.Assignment) bool { return len(n.podsBeyondPlaces(w, &a)) > 0 })
}

// QueueRepair queues a workload whose repair had to wait.
func (n *Nodes) QueueRepair(w *state.Workload) {
	if w.Assumed != state.Nothing || !n.DeferredRepairs.Has(w.Key) {
		return
	}
	n.DeferredRepairs.Delete(w.Key)
	n.ToRepair.Push(w.Rank())
}

// AskOf returns the pod set's request for places on the nodes of its assigned flavors, other than those to avoid; ok is
// false if no flavor has a topology. With several flavors, nodes must match all of them.
func (n *Nodes) AskOf(ps *flavor.PodSet, a *flavor.Assignment, avoid *state.Avoidance) (ask place.Ask, ok bool) {
	ask = place.Ask{PodSet: ps.Name, Count: a.Count, PerPod: ps.TakesOfNode(), HostPorts: ps.HostPorts,
		Tolerations: ps.Tolerations, NodeSelector: ps.NodeSelector, Affinity: ps.Affinity, NodeName: ps.NodeName,
		Unpinned: ps.Unpinned, ExclusiveKey: ps.ExclusiveKey, Bounds: ps.Bounds, Avoid: avoid.Nodes, Limits: avoid.Limits}
	if t := ps.Topology; t != nil {
		ask.Level, ask.Mandatory, ask.Slices, ask.Group = t.Level, t.Mandatory, t.Slices, t.Group
	}
	ask.Flavor = n.PlacedBy(a)
	for _, name := range a.Flavors {
		if name != ask.Flavor {
			n.addOtherFlavors(&ask, a)
			break
		}
	}
	return ask, n.Flavors[ask.Flavor].Topology != ""
}

// PlacedBy returns the flavor by whose topology the pods are placed: the first by name that has a topology, or else
// the first by name.
func (n *Nodes) PlacedBy(a *flavor.Assignment) (first string) {
	for _, name := range a.Flavors {
		placed := n.Flavors[name].Topology != ""
		if was := n.Flavors[first].Topology != ""; first == "" || placed && !was || placed == was && name < first {
			first = name
		}
	}
	return first
}

// addOtherFlavors adds the node requirements of the other flavors of the assignment.
func (n *Nodes) addOtherFlavors(ask *place.Ask, a *flavor.Assignment) {
	own := ask.NodeSelector
	ask.NodeSelector, ask.Tolerations, ask.OtherLabels = writable(own), slices.Clone(ask.Tolerations), map[string]string{}
	for _, name := range slices.Sorted(maps.Values(a.Flavors)) {
		if name == ask.Flavor {
			continue
		}
		other := n.Flavors[name]
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

// AsksOf returns the requests for places of the workload's pods in their assigned flavors.
func (n *Nodes) AsksOf(podSets []flavor.PodSet, given []flavor.Assignment, avoid state.Avoidance) []place.Ask {
	var asks []place.Ask
	for i := range given {
		if given[i].Count == 0 {
			continue
		}
		if ask, ok := n.AskOf(&podSets[i], &given[i], &avoid); ok {
			asks = append(asks, ask)
		}
	}
	return asks
}

// Beyond returns by how much there exceeds places, by node.
func Beyond(there, places []place.NodeCount) []place.NodeCount {
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

// UpdateFlavor updates the flavor in place.Map.
func (n *Nodes) UpdateFlavor(name string) {
	if f, ok := n.Flavors[name]; ok {
		n.Places.SetFlavor(place.Flavor{Name: name, Topology: f.Topology, NodeLabels: f.NodeLabels,
			Tolerations: f.Tolerations})
	} else {
		n.Places.DeleteFlavor(name)
	}
	n.RefreshPlaces(sets.New(name))
}

// RefreshPlaces updates place.Map for the workloads with places in the flavors, which may have been observed before
// these.
func (n *Nodes) RefreshPlaces(flavors sets.Set[string]) {
	n.NodesVersion++
	placed := map[order.Key]*state.Workload{}
	for key, w := range n.workloads {
		if w.Placed.By.HasAny(flavors) {
			placed[key] = w
		}
	}
	for _, w := range state.SortedByKey(placed) {
		n.Refresh(w)
	}
}
