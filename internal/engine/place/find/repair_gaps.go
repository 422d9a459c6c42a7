package find

import (
	"slices"

	"github.com/musterhq/muster/internal/engine/place"
)

// gap is a set of ranks to be filled, as an ask within a domain.
type gap struct {
	podSet int
	ask    place.Ask
	ranks  []int
	// domains are those in which the ranks may be, the narrowest first; empty if the ask itself says
	// where.
	domains []int32
}

// fillGaps finds places for the empty ranks near the places that stay.
func (r *repair) fillGaps(on place.Ledger) bool {
	gaps, ok := r.gaps()
	if !ok {
		return false
	}
	asks, extra := make([]place.Ask, len(gaps)), make([]string, len(gaps))
	wider, kept := 1, r.keptPlaces()
	for i := range gaps {
		asks[i] = gaps[i].ask
		asks[i].Kept = kept
		extra[i] = r.extra()[gaps[i].podSet]
		wider = max(wider, len(gaps[i].domains))
	}
	for width := range wider {
		s, wrong := r.finder.openWith(asks, extra, on)
		if wrong != nil {
			return false
		}
		for _, g := range s.groups {
			if near := gaps[g.wants[0].index].domains; len(near) > 0 {
				g.within = near[min(width, len(near)-1)]
			}
		}
		found := s.run()
		if found {
			for i, a := range s.assignments() {
				wanted := gaps[i].ranks
				r.fill(gaps[i].podSet, a.Nodes, func(rank int) bool {
					_, is := slices.BinarySearch(wanted, rank)
					return is
				})
			}
		}
		s.close()
		if found {
			return true
		}
	}
	return false
}

// extra returns the extra labels of the pod sets' layouts.
func (r *repair) extra() []string {
	asks := make([]place.Ask, len(r.h.PodSets))
	for i := range asks {
		asks[i] = r.h.PodSets[i].Ask
	}
	return r.finder.extras(asks)
}

// keptPlaces returns the places that stay, nil if no bound looks at them.
func (r *repair) keptPlaces() []place.Assignment {
	if !slices.ContainsFunc(r.h.PodSets,
		func(set place.HeldPodSet) bool { return len(set.Ask.Bounds)+len(set.Ask.Limits) > 0 }) {
		return nil
	}
	var out []place.Assignment
	for i := range r.h.PodSets {
		out = append(out, place.Assignment{PodSet: r.h.PodSets[i].Ask.PodSet, Nodes: place.Runs(r.ranks[i])})
	}
	return out
}

// gaps returns the empty ranks as asks: within the domain of their slice if other pods of the slice stay, whole
// slices together. It is false if an ask cannot be resolved.
func (r *repair) gaps() ([]gap, bool) {
	var out []gap
	extra := r.extra()
	for i := range r.h.PodSets {
		if !slices.Contains(r.ranks[i], "") {
			continue
		}
		ask := r.h.PodSets[i].Ask
		ask.Count = int32(len(r.ranks[i]))
		w, wrong := r.finder.resolve(&ask, i, extra[i])
		if wrong != "" {
			return nil, false
		}
		near, rest := r.domainsFor(i, w), ask
		if near != nil { // the kept pods decide the domain
			rest.Level, rest.Mandatory, rest.Group = "", false, ""
		}
		out = append(out, r.gapsIn(i, w, 0, 0, len(r.ranks[i]), rest, near)...)
	}
	return out, true
}

// domainsFor returns the domains in which the gaps of a pod set may be: the domain of a required level or,
// if none is required, the narrowest domain of the preferred level or above that contains everything that
// stays, followed by wider ones. It returns nil if nothing stays.
func (r *repair) domainsFor(podSet int, w *want) []int32 {
	var stay []int32
	for i := range r.h.PodSets {
		if group := r.h.PodSets[i].Ask.Group; i == podSet || group != "" && group == w.Group {
			stay = append(stay, r.nodes(w.layout, i, 0, len(r.ranks[i]))...)
		}
	}
	if len(stay) == 0 {
		return nil
	}
	depth := w.layout.Lowest()
	if w.Level != "" {
		depth = w.depth
	}
	if w.Level != "" && w.Mandatory {
		return []int32{majorityDomain(w.layout, stay, depth)}
	}
	var out []int32
	for ; depth > 0; depth-- {
		d := w.layout.Above(stay[0], depth)
		if !slices.ContainsFunc(stay, func(n int32) bool { return w.layout.Above(n, depth) != d }) {
			out = append(out, d)
		}
	}
	return append(out, 0)
}

// nodes returns the nodes, as domains, of the ranks in a range that stay.
func (r *repair) nodes(l *place.Layout, podSet, from, to int) []int32 {
	var out []int32
	for _, name := range r.ranks[podSet][from:to] {
		if slot, named := r.finder.places.Nodes.SlotOf(name); named > 0 && l.DomainOf(slot) != place.Outside {
			out = append(out, place.NodeAt(slot))
		}
	}
	return out
}

// majorityDomain returns the domain of the depth with most of the nodes. They are in several only if node
// labels have changed.
func majorityDomain(l *place.Layout, nodes []int32, depth int32) int32 {
	counts := map[int32]int{}
	best := place.Outside
	for _, n := range nodes {
		d := l.Above(n, depth)
		counts[d]++
		if best == place.Outside || counts[d] > counts[best] {
			best = d
		}
	}
	return best
}

// gapsIn returns the gaps among a range of ranks that consists of parts of a layer.
func (r *repair) gapsIn(podSet int, w *want, layer, from, to int, ask place.Ask, near []int32) []gap {
	whole := gap{podSet: podSet, ask: ask, domains: near}
	if layer > 0 { // the exclusive domain is already held; only finer parts remain
		whole.ask.ExclusiveKey, whole.ask.Slices = "", nil
		for _, l := range w.layers[layer:max(layer, len(w.layers)-1)] {
			whole.ask.Slices = append(whole.ask.Slices, place.Slice{Level: w.layout.LevelAt(l.depth), Size: l.size})
		}
	}
	var out []gap
	size := int(w.layers[layer].size)
	for a := from; a < to; a += size {
		b := min(a+size, to)
		var empty []int
		for rank := a; rank < b; rank++ {
			if r.ranks[podSet][rank] == "" {
				empty = append(empty, rank)
			}
		}
		switch stay := r.nodes(w.layout, podSet, a, b); {
		case len(empty) == 0:
		case len(empty) == b-a || layer == len(w.layers)-1:
			whole.ranks = append(whole.ranks, empty...)
		case len(stay) == 0: // the others are on nodes that have left the topology
			rest := whole
			rest.ranks, rest.ask.Count = empty, int32(len(empty))
			out = append(out, rest)
		default:
			d := majorityDomain(w.layout, stay, w.layers[layer].depth)
			inner := ask
			inner.Level, inner.Mandatory, inner.Group = "", false, ""
			out = append(out, r.gapsIn(podSet, w, layer+1, a, b, inner, narrowed(w, near, d))...)
		}
	}
	if len(whole.ranks) > 0 {
		whole.ask.Count = int32(len(whole.ranks))
		out = append(out, whole)
	}
	return out
}

// narrowed returns the domains that are narrower than d, followed by d itself. If a level is required, the narrower
// domains are enough.
func narrowed(w *want, near []int32, d int32) []int32 {
	var out []int32
	for _, n := range near {
		if w.layout.Depth(n) > w.layout.Depth(d) {
			out = append(out, n)
		}
	}
	if len(out) > 0 && w.Level != "" && w.Mandatory {
		return out
	}
	return append(out, d)
}
