package find

import (
	"math"
	"slices"

	"github.com/musterhq/muster/internal/engine/place"
)

// limit is how many pods of a want the domains of a label may hold yet, and how many they must.
type limit struct {
	key string
	// depth is that of the label in the layout of the want, Outside if the label is no level of it.
	depth int32
	// most is how many pods a domain may hold if left does not know the domain. missing is how many pods a node without
	// the label may hold.
	most, missing int64
	// left returns how many more pods a domain may hold, and whether it knows the domain.
	left func(value string) (pods int64, known bool)
	// least is the number that domains must get.
	least map[string]int64
}

// of returns the number for a domain.
func (l *limit) of(value string, has bool) int64 {
	if !has {
		return l.missing
	}
	if left, known := l.left(value); known {
		return left
	}
	return l.most
}

// setLimits sets the limits of a want beside what the other asks of its search have got so far. They hold until places
// are counted or taken back.
func (w *want) setLimits() {
	w.limits = w.limits[:0]
	b := w.bounding
	for i := range b.rules {
		r := &b.rules[i]
		if r.owner.PodSet == w.PodSet || r.counted[w.index] {
			if l, limits := limitBy(w, r, int64(b.shares[i])); limits {
				l.key = r.Key
				w.limits = append(w.limits, l)
			}
		}
	}
	if len(b.limits) > 0 {
		w.limits = append(w.limits, b.limitByNode())
	}
	for i := range w.limits {
		l := &w.limits[i]
		l.depth = place.Outside
		if depth, ok := w.layout.DepthOf(l.key); ok {
			l.depth = depth
		}
	}
}

// limitBy returns the limit that a rule sets to a want.
func limitBy(w *want, r *rule, share int64) (limit, bool) {
	own := r.owner.PodSet == w.PodSet
	// beside are the pods that the want's pods are kept from or drawn to.
	beside := func(value string) int64 { return r.own[value] + r.ownKept[value] }
	if own {
		beside = func(value string) int64 { return r.all[value] }
	}
	out := limit{most: math.MaxInt32, missing: math.MaxInt32}
	switch r.Kind {
	case place.Apart:
		if own && r.CountsPodsOf(w.PodSet) {
			out.most = 1
		}
		out.left = func(value string) (int64, bool) { return 0, beside(value) > 0 }
	case place.Together:
		if own && len(r.all) == 0 || !own && len(r.own)+len(r.ownKept) == 0 {
			return out, false // the pods choose the domain: see joined
		}
		out.most, out.missing = 0, 0
		out.left = func(value string) (int64, bool) { return math.MaxInt32, beside(value) > 0 }
	default:
		return limitEvenly(w, r, share, own), true
	}
	return out, true
}

// limitEvenly returns the limit of a rule Even. A pod set that counts for the rule of another one is limited in the
// domains where the other pod set has pods.
func limitEvenly(w *want, r *rule, share int64, own bool) limit {
	most := share + int64(r.MaxSkew)
	left := func(value string) int64 { return max(0, most-r.all[value]) }
	if !own {
		return limit{most: math.MaxInt32, missing: math.MaxInt32, left: func(value string) (int64, bool) {
			return left(value), r.own[value]+r.ownKept[value] > 0
		}}
	}
	out := limit{most: most, missing: 0, left: func(value string) (int64, bool) { return left(value), true }}
	if share > 0 && r.awaits(w) {
		out.least = map[string]int64{}
		for value := range r.eligible {
			if least := share - r.all[value]; least > 0 {
				out.least[value] = least
			}
		}
	}
	return out
}

// awaits reports whether all other asks that count for the rule have their places.
func (r *rule) awaits(w *want) bool {
	if r.counted[w.index] {
		return r.awaited == 1
	}
	return r.awaited == 0
}

// limitByNode returns the limit of nodes for which kube-scheduler refused more pods of the workload.
func (b *bounding) limitByNode() limit {
	most := map[string]int64{}
	for _, at := range b.limits {
		most[at.Node] = int64(at.Count)
	}
	return limit{key: place.Hostname, most: math.MaxInt32, missing: math.MaxInt32, left: func(node string) (int64, bool) {
		most, known := most[node]
		on := b.placedOn[node]
		return max(0, most-on.kept-on.found), known
	}}
}

// limitOf returns how many pods of the want a domain may hold by its limits.
func (w *want) limitOf(d int32) int64 {
	most := int64(math.MaxInt32)
	depth := w.layout.Depth(d)
	w.bounding.looked += len(w.limits)
	for i := range w.limits {
		if l := &w.limits[i]; l.depth == depth {
			value, has := w.labelOf(d)
			most = min(most, l.of(value, has))
		}
	}
	return most
}

// allowedAbove reports whether the domains around d may hold the whole ask by their limits.
func (w *want) allowedAbove(d int32) bool {
	if len(w.limits) == 0 {
		return true
	}
	for d = w.layout.Parent(d); d > 0; d = w.layout.Parent(d) {
		if w.limitOf(d) < int64(w.Count) {
			return false
		}
	}
	return true
}

// labelOf returns the label value of a domain, which nodes without the label of exclusive placement do not have.
func (w *want) labelOf(d int32) (value string, has bool) {
	if slot, ok := place.SlotOf(d); ok {
		return w.layout.HostAt(slot), true
	}
	value = w.layout.Value(d)
	return value, value != "" || w.layout.LevelAt(w.layout.Depth(d)) != w.layout.Extra()
}

// limitParts reduces what a domain can hold, in parts of a layer, to its limits.
func (w *want) limitParts(d int32, layer int, h holds) holds {
	if len(w.limits) == 0 {
		return h
	}
	most, size := w.limitOf(d), int64(w.layers[layer].size)
	if most >= math.MaxInt32 {
		return h
	}
	h.full = min(h.full, most/size)
	left := int64(w.remainder(layer))
	if most < left {
		h.part = -1
	} else {
		h.part = min(h.part, (most-left)/size)
	}
	return h
}

// limitsNodes reports whether any limit is for single nodes.
func (w *want) limitsNodes() bool {
	return slices.ContainsFunc(w.limits, func(l limit) bool { return l.depth == w.layout.Bottom() })
}

// needsShares reports whether domains must get some of the pods.
func (w *want) needsShares() bool {
	return slices.ContainsFunc(w.limits, func(l limit) bool { return len(l.least) > 0 })
}
