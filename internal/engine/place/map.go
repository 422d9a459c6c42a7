package place

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/musterhq/muster/internal/engine/order"
)

// Map keeps the nodes, what is on them and the topologies over them. Use New to create one. It is not safe for
// concurrent use. Each part of a Map owns its state: only the part's own methods change it.
type Map struct {
	// A search reads these parts. It charges what it has found to Usage, and takes it back.
	Nodes     *Nodes
	Usage     *Usage
	Exclusive *ExclusiveLabels
	Layouts   *Layouts
	Shapes    *Shapes

	resources *resources
	catalog   *catalog
	changes   *changes
	filters   *filters
	pods      *podTable
	holdings  *holdings
}

// New returns an empty Map.
func New() *Map {
	resources, catalog, pods := newResources(), newCatalog(), newPodTable()
	changes := newChanges(catalog)
	nodes := newNodes(resources, changes)
	exclusive := newExclusiveLabels(nodes, changes)
	usage := &Usage{nodes: nodes, changes: changes, exclusive: exclusive}
	filters := newFilters(catalog, nodes, resources)
	return &Map{
		Nodes: nodes, Usage: usage, Exclusive: exclusive,
		Layouts:   &Layouts{catalog: catalog, nodes: nodes, byKey: map[string]*Layout{}},
		Shapes:    &Shapes{resources: resources, nodes: nodes, usage: usage, exclusive: exclusive, filters: filters},
		resources: resources, catalog: catalog, changes: changes, filters: filters, pods: pods,
		holdings: &holdings{changes: changes, nodes: nodes, usage: usage, pods: pods, resources: resources,
			filters: filters, holders: map[order.Key]*holder{}},
	}
}

// SetTopology adds or updates a topology.
func (m *Map) SetTopology(t Topology) {
	if old, ok := m.catalog.topologies[t.Name]; ok && slices.Equal(old.Levels, t.Levels) {
		return
	}
	m.catalog.topologies[t.Name] = t
	m.redefined()
}

// DeleteTopology removes a topology.
func (m *Map) DeleteTopology(name string) {
	delete(m.catalog.topologies, name)
	m.redefined()
}

// SetFlavor adds or updates a flavor.
func (m *Map) SetFlavor(f Flavor) {
	m.catalog.flavors[f.Name] = f
	m.redefined()
}

// DeleteFlavor removes a flavor.
func (m *Map) DeleteFlavor(name string) {
	delete(m.catalog.flavors, name)
	m.redefined()
}

// IsPlaced reports whether pods of the flavor are placed on nodes: it names a topology that exists.
func (m *Map) IsPlaced(flavor string) bool { return m.catalog.isPlaced(flavor) }

// Flavor returns a flavor, zero if there is none of the name.
func (m *Map) Flavor(name string) Flavor { return m.catalog.flavors[name] }

// Levels returns the levels of the topology of a flavor.
func (m *Map) Levels(flavor string) []string { return m.catalog.levels(flavor) }

// Definitions returns a number that changes with the topologies, the flavors and the resources of nodes.
func (m *Map) Definitions() uint64 { return m.catalog.version }

// ChangedSince returns the slots whose nodes changed since MarkRead returned the number; ok is false if that was too
// long ago.
func (m *Map) ChangedSince(number uint64) (slots []int32, ok bool) {
	return m.changes.log.since(number)
}

// MarkRead returns the number of the next change.
func (m *Map) MarkRead() uint64 { return m.changes.log.markRead() }

// TakeToCheck returns the workloads whose places may have become invalid since the last call.
func (m *Map) TakeToCheck() sets.Set[order.Key] { return m.changes.takeToCheck() }

// redefined discards everything derived from flavors and topologies.
func (m *Map) redefined() {
	m.filters.clear()
	m.Layouts.clear()
	m.catalog.renew()
	m.changes.redefined()
	for key := range m.holdings.holders {
		m.changes.check(key)
	}
}

// TakeFreed returns, sorted, the flavors whose nodes may have more free capacity than at the last call.
func (m *Map) TakeFreed() []string { return m.changes.takeFreed(m.Nodes.slots) }

// Changes returns a counter. While it stays the same, so do the answers to equal asks.
func (m *Map) Changes() uint64 { return m.changes.count }

// ResidentChanges returns a counter. While it and the nodes stay the same, so do the answers of EverFits.
func (m *Map) ResidentChanges() uint64 { return m.changes.resident }

// TakeReduced returns, sorted, the flavors for which EverFits may have turned false since the last call.
func (m *Map) TakeReduced() []string { return m.changes.takeReduced() }

// Holding returns the places that a workload holds, nil if it holds none.
func (m *Map) Holding(workload order.Key) *Holding {
	if h := m.holdings.holders[workload]; h != nil {
		return &h.Holding
	}
	return nil
}

// Hold sets the places that a workload holds; nil removes them.
func (m *Map) Hold(workload order.Key, h *Holding) { m.holdings.hold(workload, h) }

// Filled reports whether a pod set has places on the host and all of them have their pods.
func (m *Map) Filled(of PodSetKey, host string) bool {
	h := m.holdings.holders[of.Workload]
	if h == nil {
		return false
	}
	hp := h.at(of.PodSet, host)
	return hp != nil && hp.node != nil && hp.count > 0 && hp.absent == 0
}

// Try runs f and then undoes every Hold in it. TakeFreed and TakeInvalid do not report what happens in f. Calls may be
// nested.
func (m *Map) Try(f func()) { m.holdings.try(f) }

// HasInvalid reports whether any place of the workload must be replaced.
func (m *Map) HasInvalid(workload order.Key) bool {
	h := m.holdings.holders[workload]
	if h == nil || h.Leaving {
		return false
	}
	for i := range h.podSets {
		if m.holdings.invalidOf(h, i).any() {
			return true
		}
	}
	return false
}

// InvalidNodes returns the nodes on which places of the workload are invalid, sorted by name.
func (m *Map) InvalidNodes(workload order.Key) []string {
	var out []string
	for _, set := range m.InvalidPlaces(workload) {
		for _, at := range set.Nodes {
			out = append(out, at.Node)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// InvalidPlaces returns the invalid places of each pod set of the workload, sorted by node name.
func (m *Map) InvalidPlaces(workload order.Key) []Assignment {
	h := m.holdings.holders[workload]
	if h == nil {
		return nil
	}
	out := make([]Assignment, len(h.podSets))
	for i := range h.podSets {
		out[i].PodSet = h.PodSets[i].Ask.PodSet
		for places, count := range m.holdings.invalidOf(h, i) {
			if count > 0 {
				out[i].Nodes = append(out[i].Nodes, NodeCount{places.host.name, count})
			}
		}
		slices.SortFunc(out[i].Nodes, func(a, b NodeCount) int { return cmp.Compare(a.Node, b.Node) })
	}
	return out
}

// Vacate empties the ranks of a pod set of the workload whose places are invalid and returns their number: see
// holdings.vacate.
func (m *Map) Vacate(workload order.Key, podSet int, ranks []string) int32 {
	return m.holdings.vacate(m.holdings.holders[workload], podSet, ranks)
}
