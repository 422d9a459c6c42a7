package find

import (
	"fmt"
	"math"
	"strings"

	"github.com/musterhq/muster/internal/engine/place"
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
	// Nodes is the number of nodes in the topology. Excluded counts the nodes on which no pod fits, each under
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
func MentionsAvoided(message string) bool { return strings.Contains(message, place.AvoidedFilter+": ") }

// MentionsNotReady reports whether a Message counts nodes that are not ready, and may be again.
func MentionsNotReady(message string) bool {
	return strings.Contains(message, place.NotReadyFilter+": ")
}

// holdable returns how many of the pods fit in a domain, in complete parts.
func (w *want) holdable(d int32) int64 {
	depth := w.layout.Depth(d)
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
