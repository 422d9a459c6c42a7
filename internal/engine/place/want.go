package place

import (
	"fmt"
	"slices"
)

// want is an Ask resolved against the layout in which places are searched.
type want struct {
	*Ask
	index  int
	takes  vector
	layout *layout
	tally  *tally
	// sparing excludes nodes with devices that the pods do not ask for.
	sparing bool
	// depth is that of Level, if the ask has one.
	depth int32
	// layers are the parts of the pod set: the coarsest first and single pods last, each deeper than the
	// one before.
	layers []layer
	// exclusiveDepth is the depth of the domains that parts have to themselves, -1 for none.
	exclusiveDepth int32
	// full and part are the results of measure by domain; they are nil if only pods are counted.
	full, part []int64
	// bounding is set, with the search on, if bounds or limits concern the search; limits are those of this want.
	bounding *bounding
	on       *search
	limits   []limit
}

// layer is a division of the pod set into parts of size pods, each within one domain of the depth.
type layer struct {
	depth int32
	size  int32
}

// askError says what is wrong with an ask; empty if nothing is.
type askError string

// want resolves an ask. The extra label is inserted into the levels of its layout.
func (m *Map) want(a *Ask, index int, extra string) (*want, askError) {
	if !m.Places(a.Flavor) {
		return nil, askError(fmt.Sprintf("flavor %q has no topology", a.Flavor))
	}
	topology := m.flavors[a.Flavor].Topology
	m.knowExclusive(a.ExclusiveKey)
	w := &want{Ask: a, index: index, takes: m.vector(a.PerPod), layout: m.layoutOf(topology, extra), exclusiveDepth: -1}
	level := func(label string) (int32, askError) {
		depth, ok := w.layout.depthOf(label)
		if !ok {
			return 0, askError(fmt.Sprintf("topology %q has no level %q", topology, label))
		}
		return depth, ""
	}
	var wrong askError
	if a.Level != "" {
		if w.depth, wrong = level(a.Level); wrong != "" {
			return nil, wrong
		}
	}
	for _, s := range a.Slices {
		depth, wrong := level(s.Level)
		if wrong != "" {
			return nil, wrong
		}
		if s.Size <= 0 {
			return nil, askError(fmt.Sprintf("a slice cannot have %d pods", s.Size))
		}
		w.layers = append(w.layers, layer{depth, s.Size})
	}
	if a.ExclusiveKey != "" {
		if w.exclusiveDepth, wrong = level(a.ExclusiveKey); wrong != "" {
			return nil, wrong
		}
		size := max(1, a.Count)
		if len(w.layers) > 0 {
			size = w.layers[0].size
		}
		// Layers that are not deeper hold anyway, since each part is within one exclusive domain.
		w.layers = slices.DeleteFunc(w.layers, func(l layer) bool { return l.depth <= w.exclusiveDepth })
		w.layers = slices.Insert(w.layers, 0, layer{w.exclusiveDepth, size})
	}
	return w, w.settleLayers()
}

// settleLayers checks that layers nest, and drops those that add no constraint.
func (w *want) settleLayers() askError {
	given := append(w.layers, layer{w.layout.bottom(), 1})
	w.layers = nil
	for i, l := range given {
		if i > 0 {
			last := given[i-1]
			if l.depth < last.depth {
				return askError(fmt.Sprintf("slices of level %q cannot contain slices of level %q, which is wider", w.layout.levelAt(last.depth), w.layout.levelAt(l.depth)))
			}
			if last.size%l.size != 0 {
				return askError(fmt.Sprintf("slices of %d pods cannot be made of slices of %d", last.size, l.size))
			}
			if l.depth == last.depth && i < len(given)-1 { // the coarser one is stricter
				given[i] = last
				continue
			}
			if l.depth == last.depth && last.size == 1 {
				continue
			}
		}
		w.layers = append(w.layers, l)
	}
	return ""
}

// layerAt returns the index of the layer whose parts are counted in domains of a depth: the coarsest layer
// at that depth or below.
func (w *want) layerAt(depth int32) int {
	for i, l := range w.layers {
		if l.depth >= depth {
			return i
		}
	}
	return len(w.layers) - 1
}

// remainder returns the number of pods in the last, smaller part of a layer; 0 if all parts are full.
func (w *want) remainder(layer int) int32 { return w.Count % w.layers[layer].size }

// parts returns the number of full parts of a layer, and whether there is a smaller one.
func (w *want) parts(layer int) (full int64, more bool) {
	return int64(w.Count / w.layers[layer].size), w.remainder(layer) > 0
}

// inner returns how many parts of the next layer make up a full part of the layer and its smaller part,
// and whether the smaller part contains a smaller part of the next layer as well.
func (w *want) inner(layer int) (each, inSmaller int64, smaller bool) {
	next := w.layers[layer+1].size
	return int64(w.layers[layer].size / next), int64(w.remainder(layer) / next), w.remainder(layer+1) > 0
}

// podsOnly reports whether only single pods are counted: there are neither slices nor exclusive parts
// nor bounds.
func (w *want) podsOnly() bool {
	return len(w.layers) == 1 && w.exclusiveDepth < 0 && w.bounding == nil
}

// extraOf returns the label that the layout of an ask needs beside those of its topology: that of exclusive placement, or
// else the first one of its bounds that is no level.
func (m *Map) extraOf(a *Ask) string {
	if a.ExclusiveKey != "" || len(a.Bounds) == 0 {
		return a.ExclusiveKey
	}
	levels := m.topologies[m.flavors[a.Flavor].Topology].Levels
	for i := range a.Bounds {
		if key := a.Bounds[i].Key; key != Hostname && !slices.Contains(levels, key) {
			return key
		}
	}
	return ""
}
