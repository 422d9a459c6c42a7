package find

import (
	"slices"

	"github.com/musterhq/muster/internal/engine/place"
)

// holds is the number of parts that a domain can hold, in parts of the layer that is counted there: full
// is the number of full parts, part the number of full parts beside the smaller one, -1 if the smaller one
// does not fit. The two differ by at most one, so a sum over several domains only has to know whether the
// smaller part costs nothing in one of them.
type holds struct{ full, part int64 }

// has reports whether so many full parts fit, and beside them the smaller one if more is set.
func (h holds) has(full int64, more bool) bool {
	if more {
		return h.part >= full
	}
	return h.full >= full
}

// holdsOf returns what measure found for a domain.
func (w *want) holdsOf(d int32) holds {
	if slot, ok := place.SlotOf(d); ok {
		return w.onNode(slot)
	}
	if w.podsOnly() {
		return holds{w.tally.sums[d], w.tally.sums[d]}
	}
	return holds{w.full[d], w.part[d]}
}

// pods returns the number of pods that fit in a domain, by which domains are compared.
func (w *want) pods(d int32) int64 {
	if slot, ok := place.SlotOf(d); ok {
		return int64(w.tally.fits[slot])
	}
	return w.tally.sums[d]
}

// measure computes what a domain and all domains in it can hold.
func (w *want) measure(d int32) {
	if w.podsOnly() {
		return
	}
	if w.bounding != nil {
		w.setLimits()
	}
	if d < place.Outside {
		return
	}
	if len(w.full) < w.layout.Size() {
		w.full = slices.Grow(w.full[:0], w.layout.Size())[:w.layout.Size()]
		w.part = slices.Grow(w.part[:0], w.layout.Size())[:w.layout.Size()]
	}
	w.measureTree(d)
}

// measureTree computes what a domain can hold from its children.
func (w *want) measureTree(d int32) holds {
	depth := w.layout.Depth(d)
	next := w.layerAt(depth + 1)
	all, loss := int64(0), int64(1)
	hosted := false
	count := func(h holds) {
		all += h.full
		if h.part >= 0 {
			hosted = true
			loss = min(loss, h.full-h.part)
		}
	}
	switch {
	case w.tally.sums[d] == 0:
		// nothing fits below; w.full is not read for it
	case depth < w.layout.Lowest():
		for _, child := range w.layout.Members(d) {
			count(w.measureTree(child))
		}
	case next == len(w.layers)-1 && w.exclusiveDepth != w.layout.Bottom() && !w.limitsNodes(): // single pods
		all, loss, hosted = w.tally.sums[d], 0, true
	default:
		for _, child := range w.layout.Members(d) {
			count(w.holdsOf(child))
		}
	}
	h := holds{all, all - loss}
	if !hosted {
		h.part = -1
	}
	if here := w.layerAt(depth); here != next {
		h = w.combine(here, h)
	}
	h = w.limitExclusive(depth, w.limitParts(d, w.layerAt(depth), h))
	w.full[d], w.part[d] = h.full, h.part
	return h
}

// onNode returns what the node in a slot can hold.
func (w *want) onNode(slot int32) holds {
	fits := int64(w.tally.fits[slot])
	layer := w.layerAt(w.layout.Bottom())
	size := int64(w.layers[layer].size)
	h := holds{fits / size, fits / size}
	if left := int64(w.remainder(layer)); left > 0 {
		h.part = -1
		if fits >= left {
			h.part = (fits - left) / size
		}
	}
	return w.limitExclusive(w.layout.Bottom(), w.limitParts(place.NodeAt(slot), layer, h))
}

// combine converts parts of the next layer, all in one domain, into parts of the layer.
func (w *want) combine(layer int, h holds) holds {
	each, inSmaller, smaller := w.inner(layer)
	out := holds{full: h.full / each}
	out.part = out.full
	if w.remainder(layer) == 0 {
		return out
	}
	have := h.full
	if smaller {
		have = h.part
	}
	if have -= inSmaller; have < 0 {
		out.part = -1
	} else {
		out.part = have / each
	}
	return out
}

// limitExclusive allows at most one part in a domain at the depth of exclusive domains.
func (w *want) limitExclusive(depth int32, h holds) holds {
	if depth != w.exclusiveDepth {
		return h
	}
	if _, more := w.parts(0); more {
		return holds{min(h.full, 1), min(h.part, 0)}
	}
	return holds{min(h.full, 1), min(h.full, 1)}
}

// need returns what a domain of the depth must hold to hold the whole pod set; ok is false if none can,
// since several parts would share a domain that each must have to itself.
func (w *want) need(depth int32) (full int64, more, ok bool) {
	full, more = w.parts(w.layerAt(depth))
	if w.exclusiveDepth < 0 || w.exclusiveDepth >= depth {
		return full, more, true
	}
	parts, smaller := w.parts(0)
	return full, more, parts == 0 || parts == 1 && !smaller
}
