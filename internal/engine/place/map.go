package place

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/musterhq/muster/internal/engine/order"
)

// Map keeps the nodes, what is on them and the topologies over them. Use New to create one. It is not safe
// for concurrent use.
type Map struct {
	resources resources

	nodes map[string]*node
	// slots holds the nodes by their dense index, nil if an index is free.
	slots     []*node
	freeSlots []int32
	// devices counts, for each device resource, the nodes that have it.
	devices map[int32]int
	free    freeTable
	// hosts holds the nodes by their names in places.
	hosts map[string]*host

	topologies map[string]Topology
	flavors    map[string]Flavor
	layouts    map[string]*layout
	// exclusive holds the tracked labels, exclusiveOn the number of nodes on which pods or places are exclusive
	// by a label.
	exclusive   map[string]*exclusiveLabel
	exclusiveOn map[string]int
	// exclusiveForgotten is set once a label was tracked and is not any more.
	exclusiveForgotten bool

	pods   map[order.Key]*pod
	podsOf map[order.Key]*workloadPods
	// ended holds the pods that have succeeded and are not deleted yet, endedOf their number by pod set.
	ended   map[order.Key]PodSetKey
	endedOf map[PodSetKey]int32
	holders map[order.Key]*holder

	// versions numbers changes to the node properties that filters depend on.
	versions uint64
	log      changeLog
	filters  map[string]*filter
	refusals refusals
	tallies  tallies
	// counted is how many nodes were counted for tallies that were new or too old to be updated.
	counted int
	// trial is positive while charges are tentative and will be taken back, so that no change is recorded.
	// undo holds what Try has to restore; it is nil outside of Try.
	trial int
	undo  *undo

	// toCheck holds the workloads whose places may have become invalid.
	toCheck sets.Set[order.Key]
	// freed holds the slots whose free capacity has grown, freedFlavors flavors that have changed
	// themselves.
	freed        sets.Set[int32]
	freedFlavors sets.Set[string]
	// reduced holds the flavors whose nodes could hold less than before if they were empty.
	reduced sets.Set[string]
	// changes counts changes outside of trials, residentChanges those of the pods that stay when all work has ended.
	changes, residentChanges uint64
}

// New returns an empty Map.
func New() *Map {
	return &Map{
		resources: newResources(),
		devices:   map[int32]int{}, nodes: map[string]*node{}, hosts: map[string]*host{},
		topologies: map[string]Topology{}, flavors: map[string]Flavor{}, layouts: map[string]*layout{}, exclusive: map[string]*exclusiveLabel{}, exclusiveOn: map[string]int{},
		pods: map[order.Key]*pod{}, podsOf: map[order.Key]*workloadPods{}, ended: map[order.Key]PodSetKey{}, endedOf: map[PodSetKey]int32{}, holders: map[order.Key]*holder{},
		filters: map[string]*filter{}, refusals: newRefusals(), tallies: tallies{byKey: map[tallyKey]*tally{}},
		toCheck: sets.New[order.Key](), freed: sets.New[int32](), freedFlavors: sets.New[string](), reduced: sets.New[string](),
	}
}

// SetTopology adds or updates a topology.
func (m *Map) SetTopology(t Topology) {
	if old, ok := m.topologies[t.Name]; ok && slices.Equal(old.Levels, t.Levels) {
		return
	}
	m.topologies[t.Name] = t
	m.redefined()
}

// DeleteTopology removes a topology.
func (m *Map) DeleteTopology(name string) {
	delete(m.topologies, name)
	m.redefined()
}

// SetFlavor adds or updates a flavor.
func (m *Map) SetFlavor(f Flavor) {
	m.flavors[f.Name] = f
	m.redefined()
}

// DeleteFlavor removes a flavor.
func (m *Map) DeleteFlavor(name string) {
	delete(m.flavors, name)
	m.redefined()
}

// Places reports whether pods of the flavor are placed on nodes: it names a topology that exists.
func (m *Map) Places(flavor string) bool {
	f, ok := m.flavors[flavor]
	if !ok || f.Topology == "" {
		return false
	}
	_, ok = m.topologies[f.Topology]
	return ok
}

// redefined discards everything derived from flavors and topologies. They change so seldom that the
// effects of a single change are not tracked.
func (m *Map) redefined() {
	clear(m.filters)
	clear(m.layouts)
	clear(m.tallies.byKey)
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

// TakeFreed returns, sorted, the flavors whose nodes may have more free capacity than at the last call.
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

// Changes returns a counter. While it stays the same, so do the answers to equal asks.
func (m *Map) Changes() uint64 { return m.changes }

// ResidentChanges returns a counter. While it and the nodes stay the same, so do the answers of EverFits.
func (m *Map) ResidentChanges() uint64 { return m.residentChanges }

// TakeReduced returns, sorted, the flavors for which EverFits or FitsWhenIdle may have turned false since the
// last call.
func (m *Map) TakeReduced() []string {
	out := sets.List(m.reduced)
	clear(m.reduced)
	return out
}

// markReduced records that a node with these labels could hold less than before, or is gone.
func (m *Map) markReduced(labels map[string]string) {
	for name, f := range m.flavors {
		if m.Places(name) && within(f.NodeLabels, labels) {
			m.reduced.Insert(name)
		}
	}
}

// within reports whether others contains all of the labels.
func within(labels, others map[string]string) bool {
	for key, value := range labels {
		if have, ok := others[key]; !ok || have != value {
			return false
		}
	}
	return true
}
