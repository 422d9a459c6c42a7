package find

import (
	"fmt"
	"maps"
	"slices"

	"github.com/musterhq/muster/internal/engine/place"
)

// Finder finds places on the nodes of a Map. It keeps counts of the nodes from search to search. Use New to create
// one.
type Finder struct {
	places  *place.Map
	tallies *tallies
}

// New returns a Finder for the nodes of a Map.
func New(on *place.Map) *Finder { return &Finder{places: on, tallies: newTallies(on)} }

// Counted returns how many nodes have been counted for pods of shapes that were not counted lately. It only grows: most
// of what searches cost where many workloads differ is this.
func (f *Finder) Counted() int { return f.tallies.counted }

// boundLayouts drops all layouts if there are too many, and labels of exclusive placement that nothing uses. Domains of
// dropped layouts become meaningless.
func (f *Finder) boundLayouts() {
	f.forgetExclusive(mostUnusedLabels)
	f.places.Layouts.Bound()
}

// mostUnusedLabels is how many labels stay tracked though no pod or place is exclusive by them.
const mostUnusedLabels = 32

// forgetExclusive forgets the labels by which no pod or place is exclusive if there are more of them than keep. Tallies
// by these labels go too: the log does not have what changes in domains that are not tracked.
func (f *Finder) forgetExclusive(keep int) {
	if f.places.Exclusive.Forget(keep) {
		maps.DeleteFunc(f.tallies.byKey, func(_ tallyKey, t *tally) bool {
			return t.shape.Exclusive != "" && !f.places.Exclusive.Tracks(t.shape.Exclusive)
		})
	}
}

// open resolves asks and opens a search, which the caller must close.
func (f *Finder) open(asks []place.Ask, on place.Ledger) (*search, *Shortfall) {
	f.boundLayouts()
	return f.openWith(asks, f.extras(asks), on)
}

// openWith resolves asks whose layouts need the extra labels, and opens a search. It drops no layouts, so that domains
// that the caller has stay valid.
func (f *Finder) openWith(asks []place.Ask, extra []string, on place.Ledger) (*search, *Shortfall) {
	s := &search{tallies: f.tallies, places: f.places, on: on}
	for i := range asks {
		s.podSets = append(s.podSets, asks[i].PodSet)
		w, wrong := f.resolve(&asks[i], i, extra[i])
		if wrong != "" {
			return nil, &Shortfall{PodSet: asks[i].PodSet, Flavor: asks[i].Flavor,
				Topology: f.places.Flavor(asks[i].Flavor).Topology, Count: asks[i].Count, Mistake: string(wrong)}
		}
		if w.Count > 0 {
			s.wants = append(s.wants, w)
		}
	}
	s.groups = groupsOf(s.wants)
	for _, g := range s.groups {
		if w, wrong := g.disagrees(); w != nil {
			return nil, &Shortfall{PodSet: w.PodSet, Flavor: w.Flavor,
				Topology: f.places.Flavor(w.Flavor).Topology, Count: w.Count,
				Mistake: "pod sets of group " + w.Group + " " + wrong}
		}
	}
	s.bind()
	s.groups = s.joined(s.groups)
	f.places.Usage.BeginTrial()
	s.avoid()
	return s, nil
}

// extras returns the label that each ask's layout needs beside the levels of its topology, if any. Asks that
// get one domain share one layout.
func (f *Finder) extras(asks []place.Ask) []string {
	out := make([]string, len(asks))
	if len(asks) == 1 {
		out[0] = f.extraOf(&asks[0])
		return out
	}
	together := map[string]bool{}
	for i := range asks {
		together[asks[i].Group] = together[asks[i].Group] || asks[i].Group != "" && asks[i].Level != ""
	}
	for i := range asks {
		out[i] = f.extraOf(&asks[i])
		for j := range asks {
			if out[i] == "" && together[asks[i].Group] && asks[j].Group == asks[i].Group {
				out[i] = f.extraOf(&asks[j])
			}
		}
	}
	return out
}

// extraOf returns the label that the layout of an ask needs beside the levels of its topology: the label of exclusive
// placement, or else the first label of its bounds that is no level.
func (f *Finder) extraOf(a *place.Ask) string {
	if a.ExclusiveKey != "" || len(a.Bounds) == 0 {
		return a.ExclusiveKey
	}
	levels := f.places.Levels(a.Flavor)
	for i := range a.Bounds {
		if key := a.Bounds[i].Key; key != place.Hostname && !slices.Contains(levels, key) {
			return key
		}
	}
	return ""
}

// resolve resolves an ask against its layout. The extra label is inserted into the levels of its layout.
func (f *Finder) resolve(a *place.Ask, index int, extra string) (*want, askError) {
	if !f.places.IsPlaced(a.Flavor) {
		return nil, askError(fmt.Sprintf("flavor %q has no topology", a.Flavor))
	}
	topology := f.places.Flavor(a.Flavor).Topology
	f.places.Exclusive.Know(a.ExclusiveKey)
	w := &want{Ask: a, index: index, load: f.places.Shapes.LoadOf(a), layout: f.places.Layouts.Of(a.Flavor, extra),
		exclusiveDepth: -1}
	level := func(label string) (int32, askError) {
		depth, ok := w.layout.DepthOf(label)
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

// avoid excludes the nodes that any of the asks avoids.
func (s *search) avoid() {
	for _, w := range s.wants {
		for _, name := range w.Avoid {
			for slot := range s.places.Nodes.SlotsOf(name) {
				s.keepOff(slot)
			}
		}
	}
}
