package engine

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/musterhq/muster/internal/engine/order"
	"github.com/musterhq/muster/internal/engine/place"
)

// placing is what the engine keeps of places beside the map.
type placing struct {
	// wanting are the classes that were short of places, by flavor, and awaiting those who
	// were promised places.
	wanting  map[string]map[*class]bool
	awaiting map[Key]*workload
	// placesNews counts what may have changed where there is room.
	placesNews int
	// lookedAt are the changes on nodes as of which heads by resource were told of them.
	lookedAt uint64
	// departing is how many have places, or pods on nodes, and were told to go, or wait for
	// others and have pods of an earlier time.
	departing int
	// ailing have places that must be mended, in the order in which they would be admitted; unmended those for whom that has
	// to wait until the last decision on them is written.
	ailing   order.Queue
	unmended sets.Set[Key]
	// workloadOfPod is the workload of each pod that is there and has one, podCounts how many each has;
	// lingering are workloads that are gone, whose pods are not.
	workloadOfPod map[Key]Key
	podCounts     map[Key]int
	lingering     sets.Set[Key]
	// within are those whose pods have domains and no nodes, and must be counted anew.
	within sets.Set[Key]
}

func newPlacing() placing {
	return placing{wanting: map[string]map[*class]bool{}, awaiting: map[Key]*workload{}, unmended: sets.New[Key](),
		workloadOfPod: map[Key]Key{}, podCounts: map[Key]int{}, lingering: sets.New[Key](), within: sets.New[Key]()}
}

func (ev NodeSet) apply(e *Engine) {
	e.places.SetNode(ev.Node)
	e.placesNews++
}

func (ev NodeDeleted) apply(e *Engine) {
	e.places.DeleteNode(ev.Name)
	e.placesNews++
}

func (ev TopologySet) apply(e *Engine) {
	if levels, known := e.topologies[ev.Topology.Name]; known && slices.Equal(levels, ev.Levels) {
		return
	}
	e.topologies[ev.Topology.Name] = ev.Levels
	e.places.SetTopology(ev.Topology)
	e.changeTopology(ev.Topology.Name)
}

func (ev TopologyDeleted) apply(e *Engine) {
	delete(e.topologies, ev.Name)
	e.places.DeleteTopology(ev.Name)
	e.changeTopology(ev.Name)
}

// changeTopology has the queues that offer a flavor of the topology look at everyone
// again.
func (e *Engine) changeTopology(name string) {
	for _, f := range slices.Sorted(maps.Keys(e.flavors)) {
		if e.flavors[f].Topology == name {
			e.changeFlavor(f)
			e.holdAgain(f)
		}
	}
}

// mapFlavor tells the map of places what a flavor is now.
func (e *Engine) mapFlavor(name string) {
	if f, ok := e.flavors[name]; ok {
		e.places.SetFlavor(place.Flavor{Name: name, Topology: f.Topology, NodeLabels: f.NodeLabels, Tolerations: f.Tolerations})
	} else {
		e.places.DeleteFlavor(name)
	}
	e.holdAgain(name)
}

// holdAgain tells the map of places again of those who have some by the flavor, and were
// heard of before it perhaps.
func (e *Engine) holdAgain(name string) {
	for _, w := range inOrder(e.workloads) {
		if by := w.placed.by; by != nil && slices.ContainsFunc(by.PodSets, func(a Assignment) bool { return hasFlavor(a, name) }) {
			w.placed.shape = nil
			e.settlePlaces(w)
		}
	}
}

func hasFlavor(a Assignment, name string) bool {
	for _, flavor := range a.Flavors {
		if flavor == name {
			return true
		}
	}
	return false
}

// placed is what the map of places has of a workload: what it holds or was promised, for
// which pods, and whether it is leaving. clears tells that there are pods that are on their
// way, or places that their holder must leave.
type placed struct {
	by                        *Admission
	shape                     *shape
	promised, leaving, clears bool
}

// settlePlaces brings the map of places in step with what the workload holds or was
// promised.
func (e *Engine) settlePlaces(w *workload) {
	was, now := w.placed, e.placedNow(w)
	if now == was {
		return
	}
	if w.gone && now.by != nil {
		e.lingering.Insert(w.Key)
	} else if e.lingering.Has(w.Key) {
		e.lingering.Delete(w.Key)
		e.departing--
	}
	if was.by != nil && now.by.Equal(was.by) && now.shape == was.shape && now.promised == was.promised && now.leaving == was.leaving && now.clears == was.clears {
		w.placed = now // other news of the same
		return
	}
	if now.by != was.by {
		e.followWithin(w)
	}
	w.placed = now
	e.places.Hold(w.Key, e.holding(w, now))
	e.placesNews++
	if was.clears {
		e.departing--
	}
	if now.clears {
		e.departing++
	}
	delete(e.awaiting, w.Key)
	if now.promised {
		e.awaiting[w.Key] = w
	}
}

// placedNow is what the map of places is to have of the workload.
func (e *Engine) placedNow(w *workload) (now placed) {
	switch {
	case w.held != nil:
		now = placed{by: w.held, shape: w.shape, leaving: w.leaving() && !w.lost()}
	case w.promise != nil:
		now = placed{by: w.promise.given, shape: w.shape, promised: true}
	default:
		now = e.leftBy(w)
	}
	now.clears = now.leaving || now.promised && e.podCounts[w.Key] > 0 || now.by != nil && e.shrinksOnNodes(w)
	if now.by != nil && !now.by.onNodes() && (!now.clears || len(e.topologies) == 0) {
		return placed{}
	}
	return now
}

// leftBy is what nodes have of a workload that holds nothing and was promised nothing: pods
// that are on their way.
func (e *Engine) leftBy(w *workload) placed {
	if e.podCounts[w.Key] == 0 {
		return placed{}
	}
	return placed{by: &Admission{}, leaving: true}
}

// onNodes reports whether any pods have places.
func (a *Admission) onNodes() bool {
	return slices.ContainsFunc(a.PodSets, func(a Assignment) bool { return len(a.Places) > 0 || len(a.Within) > 0 })
}

// holding is what the map of places is told of a workload.
func (e *Engine) holding(w *workload, has placed) *place.Holding {
	if has.by == nil {
		return nil
	}
	out := &place.Holding{Promised: has.promised, Leaving: has.leaving}
	for i := range has.by.PodSets {
		a := &has.by.PodSets[i]
		n := slices.IndexFunc(w.PodSets, func(ps PodSet) bool { return ps.Name == a.PodSet })
		places := a.Places
		if len(places) == 0 && has.by == w.held {
			places = w.within[a.PodSet]
		}
		if n < 0 || len(places) == 0 {
			continue
		}
		var count int32
		for _, p := range places {
			count += p.Count
		}
		ask, _ := e.askOf(&w.PodSets[n], a)
		ask.Count, ask.Avoid = count, w.avoid.nodes
		set := place.HeldPodSet{Ask: ask, Nodes: places, Ended: max(0, count-a.Count)}
		set.Excess = e.leaves(w, a)
		out.PodSets = append(out.PodSets, set)
	}
	return out
}

// askOf is the pod set as it asks for places on the nodes of the flavors that it was
// given; ok is false if they are a matter of quota alone. With several, it must be able
// to run on the nodes of all.
func (e *Engine) askOf(ps *PodSet, a *Assignment) (ask place.Ask, ok bool) {
	ask = place.Ask{PodSet: ps.Name, Count: a.Count, PerPod: ps.TakesOfNode(), HostPorts: ps.HostPorts,
		Tolerations: ps.Tolerations, NodeSelector: ps.NodeSelector, Affinity: ps.Affinity, NodeName: ps.NodeName, Unpinned: ps.Unpinned, ExclusiveKey: ps.ExclusiveKey}
	if t := ps.Topology; t != nil {
		ask.Level, ask.Mandatory, ask.Slices, ask.Group = t.Level, t.Mandatory, t.Slices, t.Group
	}
	ask.Flavor = e.placedBy(a)
	for _, name := range a.Flavors {
		if name != ask.Flavor {
			e.alsoBy(&ask, a)
			break
		}
	}
	return ask, e.flavors[ask.Flavor].Topology != ""
}

// placedBy is the flavor by whose topology the pods are placed: the first by name of
// those that have one.
func (e *Engine) placedBy(a *Assignment) (first string) {
	for _, name := range a.Flavors {
		placed := e.flavors[name].Topology != ""
		if was := e.flavors[first].Topology != ""; first == "" || placed && !was || placed == was && name < first {
			first = name
		}
	}
	return first
}

// alsoBy adds what the other flavors of the assignment ask of a node.
func (e *Engine) alsoBy(ask *place.Ask, a *Assignment) {
	ask.NodeSelector, ask.Tolerations = maps.Clone(ask.NodeSelector), slices.Clone(ask.Tolerations)
	if ask.NodeSelector == nil {
		ask.NodeSelector = map[string]string{}
	}
	for _, name := range slices.Sorted(maps.Values(a.Flavors)) {
		if name == ask.Flavor {
			continue
		}
		other := e.flavors[name]
		maps.Copy(ask.NodeSelector, other.NodeLabels)
		for _, t := range other.Tolerations {
			if !slices.Contains(ask.Tolerations, t) {
				ask.Tolerations = append(ask.Tolerations, t)
			}
		}
	}
}

// asksOf is what the workload's pods ask, as they were given flavors.
func (e *Engine) asksOf(podSets []PodSet, given []Assignment, avoid []string) []place.Ask {
	var asks []place.Ask
	for i := range given {
		if given[i].Count == 0 {
			continue
		}
		if ask, ok := e.askOf(&podSets[i], &given[i]); ok {
			ask.Avoid = avoid
			asks = append(asks, ask)
		}
	}
	return asks
}

// wantPlaces notes that the class, which was just set aside, waits for room on the nodes
// of the flavors.
func (e *Engine) wantPlaces(c *class, flavors []string) {
	for _, name := range flavors {
		if e.wanting[name] == nil {
			e.wanting[name] = map[*class]bool{}
		}
		e.wanting[name][c] = true
	}
}

// wakePlaces has those looked at again who were short of places where there may be room
// now, or who were promised some.
func (e *Engine) wakePlaces() {
	if now := e.places.Changes(); now != e.lookedAt {
		e.lookedAt = now
		for _, f := range e.families {
			if f.hasHeads() {
				f.put()
			}
		}
	}
	freed, reduced := e.places.TakeFreed(), e.places.TakeReduced()
	for _, name := range reduced {
		for _, c := range inRank(e.wanting[name]) {
			if c.blocked && c.waiting.Len() > 0 && c.queue.asksWhatNodesEverHold() {
				delete(e.wanting[name], c)
				c.queue.unblock(c)
			}
		}
	}
	if len(freed) == 0 {
		return
	}
	for _, q := range e.queues {
		if q.cramped && q.family != nil {
			q.cramped = false
			q.family.put()
		}
	}
	for _, name := range freed {
		woken := e.wanting[name]
		delete(e.wanting, name)
		for _, c := range inRank(woken) {
			if c.blocked && c.waiting.Len() > 0 {
				c.queue.unblock(c)
			}
		}
	}
	for _, key := range slices.SortedFunc(maps.Keys(e.awaiting), order.CompareKeys) {
		if f := e.awaiting[key].queue.family; f != nil {
			f.put()
		}
	}
}

// asksWhatNodesEverHold reports whether less on nodes may help those who wait in the
// queue: what no node could ever hold is for new nodes, and holds nobody back.
func (q *clusterQueue) asksWhatNodesEverHold() bool { return q.OnDemand || q.Strategy == ByResource }

// withPlaces are the assignments with the places that were found for the asks.
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

// placesOf are the places of the assignments that the asks are for, in their order.
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
