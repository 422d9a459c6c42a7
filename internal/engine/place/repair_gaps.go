package place

import (
	"slices"
)

// gap is ranks that are to be filled, as an ask within a domain.
type gap struct {
	podSet int
	ask    Ask
	ranks  []int
	// near are the domains in which it may be, the narrowest first; none if the ask says
	// itself where.
	domains []int32
}

// near looks for places for the empty ranks beside those that are kept.
func (r *repair) fillGaps(on Ledger) bool {
	gaps, ok := r.gaps()
	if !ok {
		return false
	}
	asks, extra := make([]Ask, len(gaps)), make([]string, len(gaps))
	wider := 1
	for i := range gaps {
		asks[i] = gaps[i].ask
		extra[i] = r.extra()[gaps[i].podSet]
		wider = max(wider, len(gaps[i].domains))
	}
	for width := range wider {
		f, wrong := r.m.readWith(asks, extra, on)
		if wrong != nil {
			return false
		}
		for _, p := range f.groups {
			if near := gaps[p.wants[0].index].domains; len(near) > 0 {
				p.within = near[min(width, len(near)-1)]
			}
		}
		found := r.m.search(f)
		if found {
			for i, a := range r.m.assignments(f) {
				wanted := gaps[i].ranks
				r.fill(gaps[i].podSet, 0, int32(len(r.ranks[gaps[i].podSet])), a.Nodes, func(rank int) bool {
					_, is := slices.BinarySearch(wanted, rank)
					return is
				})
			}
		}
		r.m.close(f)
		if found {
			return true
		}
	}
	return false
}

// extra are the labels of the pod sets' layouts.
func (r *repair) extra() []string {
	asks := make([]Ask, len(r.h.PodSets))
	for i := range asks {
		asks[i] = r.h.PodSets[i].Ask
	}
	return extras(asks)
}

// gaps are the empty ranks: those of a slice of which some pods stay within its domain,
// whole slices among each other. It is false if an ask cannot be read.
func (r *repair) gaps() ([]gap, bool) {
	var out []gap
	extra := r.extra()
	for i := range r.h.PodSets {
		if !slices.Contains(r.ranks[i], "") {
			continue
		}
		ask := r.h.PodSets[i].Ask
		ask.Count = int32(len(r.ranks[i]))
		w, wrong := r.m.want(&ask, i, extra[i])
		if wrong != "" {
			return nil, false
		}
		near, rest := r.domainsFor(i, w), ask
		if near != nil { // where it must be is said by where the others are
			rest.Level, rest.Mandatory, rest.Group = "", false, ""
		}
		out = append(out, r.gapsIn(i, w, 0, 0, len(r.ranks[i]), rest, near)...)
	}
	return out, true
}

// nearOf are the domains in which the gaps of a pod set may be: that of the level that
// all must be in, or else the narrowest of the level that all should be in that has
// everything that stays, then wider ones. Nil if nothing stays.
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
	depth := w.layout.lowest()
	if w.Level != "" {
		depth = w.depth
	}
	if w.Level != "" && w.Mandatory {
		return []int32{majorityDomain(w.layout, stay, depth)}
	}
	var out []int32
	for ; depth > 0; depth-- {
		d := w.layout.above(stay[0], depth)
		if !slices.ContainsFunc(stay, func(n int32) bool { return w.layout.above(n, depth) != d }) {
			out = append(out, d)
		}
	}
	return append(out, 0)
}

// nodes are those of the ranks of a range that stay, as domains.
func (r *repair) nodes(l *layout, podSet, from, to int) []int32 {
	var out []int32
	for _, name := range r.ranks[podSet][from:to] {
		s := r.h.podSets[podSet].at(name)
		if name != "" && s != nil && s.node != nil && l.leaf[s.node.slot] != outside {
			out = append(out, nodeAt(s.node.slot))
		}
	}
	return out
}

// mostOf is the domain of a depth that most of the nodes are in: they may be in several
// only since labels changed.
func majorityDomain(l *layout, nodes []int32, depth int32) int32 {
	counts := map[int32]int{}
	best := outside
	for _, n := range nodes {
		d := l.above(n, depth)
		counts[d]++
		if best == outside || counts[d] > counts[best] {
			best = d
		}
	}
	return best
}

// gapsIn are the gaps among the ranks of a range, which is made of parts of a layer.
func (r *repair) gapsIn(podSet int, w *want, layer, from, to int, ask Ask, near []int32) []gap {
	whole := gap{podSet: podSet, ask: ask, domains: near}
	if layer > 0 { // what it has for itself it has; within it there are finer parts
		whole.ask.ExclusiveKey, whole.ask.Slices = "", nil
		for _, l := range w.layers[layer:max(layer, len(w.layers)-1)] {
			whole.ask.Slices = append(whole.ask.Slices, Slice{w.layout.levelAt(l.depth), l.size})
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
		case len(stay) == 0: // the rest is on nodes that have left the topology
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

// narrowed are those of the domains that are narrower than another, and that one: but
// where one is a must it is enough.
func narrowed(w *want, near []int32, d int32) []int32 {
	var out []int32
	for _, n := range near {
		if w.layout.depth(n) > w.layout.depth(d) {
			out = append(out, n)
		}
	}
	if len(out) > 0 && w.Level != "" && w.Mandatory {
		return out
	}
	return append(out, d)
}
