package place

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Excluded counts the nodes that a filter takes away.
type Excluded struct {
	// Filter is the reason, such as `taint "key=value:NoSchedule"`, "nodeSelector" or `resource
	// "nvidia.com/gpu"`.
	Filter string `json:"filter"`
	Nodes  int32  `json:"nodes"`
}

// Shortfall is why there are no places, for the first pod set that has none.
type Shortfall struct {
	PodSet   string `json:"podSet"`
	Flavor   string `json:"flavor"`
	Topology string `json:"topology,omitempty"`
	// Mistake says what is wrong with the ask itself, empty if nothing is.
	Mistake string `json:"mistake,omitempty"`
	// Fits is how many of Count pods fit in the best domain that may hold all of them.
	Fits  int32 `json:"fits"`
	Count int32 `json:"count"`
	// Together is set if each pod set would fit alone, but not all of them.
	Together bool `json:"together,omitempty"`
	// Nodes is the number of nodes in the topology. Excluded counts those on which no pod fits, each under
	// the first filter that refuses it.
	Nodes    int32      `json:"nodes"`
	Excluded []Excluded `json:"excluded,omitempty"`
	// FlavorLabels are the node labels that the flavor selects, as key=value and sorted, if no node has them.
	FlavorLabels []string `json:"flavorLabels,omitempty"`
	// Resources lists, sorted, the resources that nodes are short of. More of any other resource on the
	// present nodes would not help.
	Resources []string `json:"resources,omitempty"`
	// Bounds are the constraints between pods without which more pods would fit, as in Bound.String.
	Bounds []string `json:"bounds,omitempty"`
}

// Message returns the shortfall as text for users.
func (s *Shortfall) Message() string {
	if s.Mistake != "" {
		return s.Mistake
	}
	var b strings.Builder
	switch {
	case s.Together:
		fmt.Fprintf(&b, "topology %q allows to fit each pod set alone, but not all together", s.Topology)
	case s.Fits > 0:
		fmt.Fprintf(&b, "topology %q allows to fit only %d out of %d pod(s)", s.Topology, s.Fits, s.Count)
	default:
		fmt.Fprintf(&b, "topology %q doesn't allow to fit any of %d pod(s)", s.Topology, s.Count)
	}
	fmt.Fprintf(&b, ". Total nodes: %d", s.Nodes)
	if len(s.FlavorLabels) > 0 {
		fmt.Fprintf(&b, "; no node has the labels of flavor %s: %s", s.Flavor, strings.Join(s.FlavorLabels, ", "))
	}
	for i, e := range s.Excluded {
		if i == 0 {
			b.WriteString("; excluded: ")
		} else {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%s: %d", e.Filter, e.Nodes)
	}
	if len(s.Bounds) > 0 {
		fmt.Fprintf(&b, "; bounded by %s", strings.Join(s.Bounds, ", "))
	}
	return b.String()
}

// MentionsAvoided reports whether a Message counts nodes that are avoided.
func MentionsAvoided(message string) bool { return strings.Contains(message, avoidedFilter+": ") }

// MentionsNotReady reports whether a Message counts nodes that are not ready, and may be again.
func MentionsNotReady(message string) bool { return strings.Contains(message, notReadyFilter+": ") }

// shortfall explains why a search that is still open has found nothing: the first ask that has no places
// even alone or, if there is none, that the asks do not fit together.
func (m *Map) shortfall(f *search) *Shortfall {
	var first *want
	for _, w := range f.wants {
		m.takeBack(f, 0)
		m.count(w, f.on)
		if !m.fitsAlone(f, w) && (first == nil || w.index < first.index) {
			first = w
		}
	}
	if first != nil {
		return m.shortfallOf(f, first)
	}
	first = slices.MinFunc(f.wants, func(a, b *want) int { return cmp.Compare(a.index, b.index) })
	s := m.shortfallOf(f, first)
	s.Together = len(f.wants) > 1
	return s
}

// shortfallOf returns the shortfall of one ask.
func (m *Map) shortfallOf(f *search, w *want) *Shortfall {
	t := w.tally
	s := &Shortfall{PodSet: w.PodSet, Flavor: w.Flavor, Topology: m.flavors[w.Flavor].Topology, Count: w.Count, Nodes: t.nodes}
	for why := none + 1; int(why) < len(t.lost); why++ {
		if t.lost[why] > 0 {
			s.Excluded = append(s.Excluded, Excluded{m.refusalText(why, w.PerPod), t.lost[why]})
		}
	}
	if s.Nodes == 0 {
		for key, value := range m.flavors[w.Flavor].NodeLabels {
			s.FlavorLabels = append(s.FlavorLabels, key+"="+value)
		}
		slices.Sort(s.FlavorLabels)
	}
	slices.SortFunc(s.Excluded, func(a, b Excluded) int { return cmp.Compare(a.Filter, b.Filter) })
	if best, ok := m.best(f, w); ok {
		s.Fits = int32(min(w.holdable(best), int64(w.Count), math.MaxInt32))
	}
	if f.bounding != nil && len(f.wants) == 1 { // there is room, but no way to keep the bounds
		s.Fits = min(s.Fits, s.Count-1)
	}
	s.Bounds = m.boundsOn(f, w)
	for resource := range m.limitingResources(w) {
		s.Resources = append(s.Resources, m.resourceName(resource, w.PerPod))
	}
	slices.Sort(s.Resources)
	return s
}

// best returns the domain that could hold most pods of an ask, of the domains that may hold all of it.
func (m *Map) best(f *search, w *want) (int32, bool) {
	p := f.groupOf(w)
	m.measure(w, p.within)
	depth := p.layout().depth(p.within)
	if p.hasLevel && p.mandatory {
		depth = p.depth
	}
	best, most := outside, int64(0)
	m.walk(w.layout, p.within, depth, func(d int32) {
		if pods := w.holdable(d); pods > most {
			best, most = d, pods
		}
	})
	return best, most > 0
}

// holdable returns how many of the pods fit in a domain, in complete parts.
func (w *want) holdable(d int32) int64 {
	depth := w.layout.depth(d)
	layer := w.layerAt(depth)
	if w.pods(d) == 0 {
		return 0
	}
	h := w.holdsOf(d)
	size := int64(w.layers[layer].size)
	if full, more, ok := w.need(depth); ok && h.has(full, more) {
		return int64(w.Count)
	}
	if h.full > math.MaxInt32 {
		return math.MaxInt32
	}
	return min(h.full*size, int64(w.Count))
}

// limitingResources returns the resources of which more alone would let more pods fit on some node.
func (m *Map) limitingResources(w *want) map[int32]bool {
	out := map[int32]bool{}
	last := int32(-1)
	for slot, why := range w.tally.why {
		if why != none && !m.refusals.ofResource(why) {
			continue
		}
		if _, bound := m.free.fit(w.takes, w.tally.ledger, int32(slot)); bound >= 0 && bound != last {
			out[bound] = true
			last = bound
		}
	}
	return out
}
