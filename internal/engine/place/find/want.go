package find

import (
	"fmt"

	"github.com/musterhq/muster/internal/engine/place"
)

// want is an Ask resolved against the layout in which places are searched.
type want struct {
	*place.Ask
	index  int
	load   place.Load
	layout *place.Layout
	tally  *tally
	// sparing excludes nodes with devices that the pods do not ask for.
	sparing bool
	// depth is the depth of Level, if the ask has one.
	depth int32
	// layers are the parts of the pod set: the coarsest first and single pods last, each deeper than the
	// one before.
	layers []layer
	// exclusiveDepth is the depth of the domains that parts have to themselves, -1 for none.
	exclusiveDepth int32
	// full and part are the results of measure by domain; they are nil if only pods are counted.
	full, part []int64
	// bounding is set if bounds or limits concern the search; limits are the limits of this want.
	bounding *bounding
	limits   []limit
}

// layer is a division of the pod set into parts of size pods, each within one domain of the depth.
type layer struct {
	depth int32
	size  int32
}

// askError says what is wrong with an ask; empty if nothing is.
type askError string

// settleLayers checks that layers nest, and drops layers that add no constraint.
func (w *want) settleLayers() askError {
	given := append(w.layers, layer{w.layout.Bottom(), 1})
	w.layers = nil
	for i, l := range given {
		if i > 0 {
			last := given[i-1]
			if l.depth < last.depth {
				return askError(fmt.Sprintf("slices of level %q cannot contain slices of level %q, which is wider",
					w.layout.LevelAt(last.depth), w.layout.LevelAt(l.depth)))
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

// slotCount is a number of pods on the node in a slot.
type slotCount struct{ slot, pods int32 }
