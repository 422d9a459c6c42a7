package place

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/musterhq/muster/internal/engine/order"
)

// Find looks for places for all asks together, all or nothing, and changes nothing.
// The assignments are in the order of the asks.
func (m *Map) Find(asks []Ask, on Ledger) ([]Assignment, *Shortfall) {
	free := m.rooms(on)
	var out []Assignment
	for i := range asks {
		a := &asks[i]
		placed, short := m.place(a, free)
		if short != nil {
			return nil, short
		}
		out = append(out, placed)
	}
	return out, nil
}

// Fits reports whether Find finds places.
func (m *Map) Fits(asks []Ask, on Ledger) bool {
	_, short := m.Find(asks, on)
	return short == nil
}

// EverFits reports whether the asks could be placed if nothing ran but what belongs to
// the nodes.
func (m *Map) EverFits(asks []Ask) bool {
	empty := New()
	maps.Copy(empty.nodes, m.nodes)
	maps.Copy(empty.topologies, m.topologies)
	maps.Copy(empty.flavors, m.flavors)
	return empty.Fits(asks, Now)
}

// Diagnose says why the asks have no places.
func (m *Map) Diagnose(asks []Ask) Diagnosis {
	_, short := m.Find(asks, Now)
	if short == nil {
		return Diagnosis{Fits: true}
	}
	return Diagnosis{PodSets: []AskDiagnosis{{Shortfall: *short}}}
}

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
	h := m.holdings[workload]
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

// rooms is what is free on each node.
func (m *Map) rooms(on Ledger) map[string]map[string]int64 {
	held, planned := map[string]map[string]int64{}, map[string]map[string]int64{}
	for name, n := range m.nodes {
		held[name], planned[name] = maps.Clone(n.Allocatable), maps.Clone(n.Allocatable)
	}
	take := func(from map[string]map[string]int64, node string, perPod map[string]int64, count int32) {
		room := from[node]
		if room == nil {
			return
		}
		room[Pods] -= int64(count)
		for r, amount := range perPod {
			room[r] -= amount * int64(count)
		}
	}
	type slot struct {
		workload     order.Key
		podSet, node string
	}
	present := map[slot]int32{}
	for _, p := range m.pods {
		take(held, p.Node, p.Requests, 1)
		if h := m.holdings[p.Workload]; h == nil || !h.Leaving {
			take(planned, p.Node, p.Requests, 1)
		}
		present[slot{p.Workload, p.PodSet, p.Node}]++
	}
	hosts := m.hosts()
	for key, h := range m.holdings {
		for _, ps := range h.PodSets {
			for _, n := range ps.Nodes {
				absent := max(0, n.Count-present[slot{key, ps.Ask.PodSet, hosts[n.Node]}])
				if !h.Promised {
					take(held, hosts[n.Node], ps.Ask.PerPod, absent)
				}
				if !h.Leaving {
					take(planned, hosts[n.Node], ps.Ask.PerPod, absent)
				}
			}
		}
	}
	if on == Now {
		for name, room := range planned {
			for r, amount := range held[name] {
				room[r] = min(room[r], amount)
			}
		}
	}
	return planned
}

// place finds places for one ask and takes them from what is free.
func (m *Map) place(a *Ask, free map[string]map[string]int64) (Assignment, *Shortfall) {
	f := m.flavors[a.Flavor]
	out := Assignment{PodSet: a.PodSet}
	if _, known := m.domain(a.Flavor, Node{}, a.Level); !known {
		return out, &Shortfall{PodSet: a.PodSet, Flavor: a.Flavor, Topology: f.Topology, Count: a.Count,
			Mistake: fmt.Sprintf("topology %q has no level %q", f.Topology, a.Level)}
	}
	fits, domains, sums := map[string]int64{}, map[string][]string{}, map[string]int64{}
	var total int64
	for _, name := range slices.Sorted(maps.Keys(m.nodes)) {
		n := m.nodes[name]
		if !m.eligible(a, n) {
			continue
		}
		fits[name] = fit(a.PerPod, free[name])
		domain, _ := m.domain(a.Flavor, n, a.Level)
		domains[domain] = append(domains[domain], name)
		sums[domain] += fits[name]
		total += fits[name]
	}
	var from []string
	best := int64(0)
	for _, domain := range slices.Sorted(maps.Keys(domains)) {
		if sums[domain] >= int64(a.Count) && (from == nil || sums[domain] < best) {
			from, best = domains[domain], sums[domain]
		}
	}
	if from == nil && !a.Mandatory {
		from, best = slices.Sorted(maps.Keys(fits)), total
	}
	if from == nil || best < int64(a.Count) {
		return out, &Shortfall{PodSet: a.PodSet, Flavor: a.Flavor, Topology: f.Topology, Count: a.Count, Nodes: int32(len(m.nodes)), Fits: int32(min(best, math.MaxInt32))}
	}
	slices.SortStableFunc(from, func(x, y string) int { return cmp.Compare(fits[y], fits[x]) })
	left := a.Count
	for _, name := range from {
		count := int32(min(int64(left), fits[name]))
		if count == 0 {
			continue
		}
		left -= count
		out.Nodes = append(out.Nodes, NodeCount{Node: host(m.nodes[name]), Count: count})
		free[name][Pods] -= int64(count)
		for r, amount := range a.PerPod {
			free[name][r] -= amount * int64(count)
		}
	}
	return out, nil
}

func fit(perPod, free map[string]int64) int64 {
	out := min(max(0, free[Pods]), math.MaxInt32)
	for r, amount := range perPod {
		if amount > 0 && r != Pods {
			out = min(out, max(0, free[r])/amount)
		}
	}
	return out
}
