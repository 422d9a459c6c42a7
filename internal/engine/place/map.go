package place

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/musterhq/muster/internal/engine/order"
)

// Map is where pods can run: nodes, what is on them, and the topologies over them.
// Make one with New; one goroutine may use it.
type Map struct {
	resources resources

	nodes map[string]*node
	// slots are the nodes by their dense index, nil where one is free.
	slots     []*node
	freeSlots []int32
	// devices are on how many nodes there is any of each device.
	devices map[int32]int
	free    freeTable
	// hosts are the nodes by the names that places have for them.
	hosts map[string]*host

	topologies map[string]Topology
	flavors    map[string]Flavor
	layouts    map[string]*layout
	exclusive  map[string]*exclusiveLabel

	pods   map[order.Key]*pod
	podsOf map[order.Key]*workloadPods
	// ended are the pods that have ended well and are not gone, endedOf how many there are of each crew.
	ended   map[order.Key]PodSetKey
	endedOf map[PodSetKey]int32
	holders map[order.Key]*holder

	// versions numbers what filters look at.
	versions uint64
	log      changeLog
	filters  map[string]*filter
	refusals refusals
	tallies  tallies
	// trial tells that what is charged is taken back, so that nobody need hear of it;
	// undo is what Try gives back, nil outside of it.
	trial int
	undo  *undo

	toCheck sets.Set[order.Key]
	// freed are the slots in which there is more room; freedFlavors are those with news
	// of their own.
	freed        sets.Set[int32]
	freedFlavors sets.Set[string]
	// reduced are the flavors whose nodes could hold less than before, were they empty.
	reduced sets.Set[string]
	// changes counts what changed but for trials.
	changes uint64
}

// New is an empty map.
func New() *Map {
	return &Map{
		resources: newResources(),
		devices:   map[int32]int{}, nodes: map[string]*node{}, hosts: map[string]*host{},
		topologies: map[string]Topology{}, flavors: map[string]Flavor{}, layouts: map[string]*layout{}, exclusive: map[string]*exclusiveLabel{},
		pods: map[order.Key]*pod{}, podsOf: map[order.Key]*workloadPods{}, ended: map[order.Key]PodSetKey{}, endedOf: map[PodSetKey]int32{}, holders: map[order.Key]*holder{},
		filters: map[string]*filter{}, refusals: newRefusals(), tallies: tallies{byKey: map[tallyKey]*tally{}},
		toCheck: sets.New[order.Key](), freed: sets.New[int32](), freedFlavors: sets.New[string](), reduced: sets.New[string](),
	}
}

// SetTopology adds a topology or says that it changed.
func (m *Map) SetTopology(t Topology) {
	if old, ok := m.topologies[t.Name]; ok && slices.Equal(old.Levels, t.Levels) {
		return
	}
	m.topologies[t.Name] = t
	m.redefined()
}

// DeleteTopology says that a topology is gone.
func (m *Map) DeleteTopology(name string) {
	delete(m.topologies, name)
	m.redefined()
}

// SetFlavor adds a flavor or says that it changed.
func (m *Map) SetFlavor(f Flavor) {
	m.flavors[f.Name] = f
	m.redefined()
}

// DeleteFlavor says that a flavor is gone.
func (m *Map) DeleteFlavor(name string) {
	delete(m.flavors, name)
	m.redefined()
}

// Places reports whether pods of the flavor are placed on nodes: it names a topology
// that exists.
func (m *Map) Places(flavor string) bool {
	f, ok := m.flavors[flavor]
	if !ok || f.Topology == "" {
		return false
	}
	_, ok = m.topologies[f.Topology]
	return ok
}

// redefined forgets all that follows from flavors and topologies: they change so
// seldom that it need not be known which of it changed.
func (m *Map) redefined() {
	clear(m.filters)
	clear(m.layouts)
	m.tallies.clear()
	m.changes++
	for name := range m.flavors {
		if m.Places(name) {
			m.freedFlavors.Insert(name)
			m.reduced.Insert(name)
		}
	}
	for key := range m.holders {
		m.toCheck.Insert(key)
	}
}

// TakeFreed lists the flavors on whose nodes there may be more room than when it was
// last asked, in order.
func (m *Map) TakeFreed() []string {
	out := m.freedFlavors
	m.freedFlavors = sets.New[string]()
	for slot := range m.freed {
		n := m.slots[slot]
		if n == nil {
			continue
		}
		for name, f := range m.flavors {
			if !out.Has(name) && within(f.NodeLabels, n.Labels) {
				out.Insert(name)
			}
		}
	}
	clear(m.freed)
	for name := range out {
		if !m.Places(name) {
			out.Delete(name)
		}
	}
	return sets.List(out)
}

// Changes counts what has changed on nodes: as long as it is the same, so are all answers
// to the same asks.
func (m *Map) Changes() uint64 { return m.changes }

// TakeReduced lists the flavors for which EverFits may not hold any more although it did
// when it was last asked, in order.
func (m *Map) TakeReduced() []string {
	out := sets.List(m.reduced)
	clear(m.reduced)
	return out
}

// markReduced notes that a node with the labels could hold less than before, or is gone.
func (m *Map) markReduced(labels map[string]string) {
	for name, f := range m.flavors {
		if m.Places(name) && within(f.NodeLabels, labels) {
			m.reduced.Insert(name)
		}
	}
}

// within reports whether all of the labels are among the others.
func within(labels, others map[string]string) bool {
	for key, value := range labels {
		if have, ok := others[key]; !ok || have != value {
			return false
		}
	}
	return true
}
