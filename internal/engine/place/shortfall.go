package place

import (
	"fmt"
	"strings"
)

// Excluded is how many nodes a filter takes away.
type Excluded struct {
	// Filter is what refuses them, such as `taint "key=value:NoSchedule"`, "nodeSelector"
	// or `resource "nvidia.com/gpu"`.
	Filter string `json:"filter"`
	Nodes  int32  `json:"nodes"`
}

// Shortfall says why there are no places, of the first pod set that has none.
type Shortfall struct {
	PodSet   string `json:"podSet"`
	Flavor   string `json:"flavor"`
	Topology string `json:"topology,omitempty"`
	// Mistake says what is wrong with the ask itself; empty if nothing is.
	Mistake string `json:"mistake,omitempty"`
	// Fits is how many of Count pods there is room for where they may all be.
	Fits  int32 `json:"fits"`
	Count int32 `json:"count"`
	// Together tells that each pod set would fit alone, but not all of them.
	Together bool `json:"together,omitempty"`
	// Nodes is how many nodes there are in the topology; Excluded counts those where no
	// pod fits, each with the first filter that refuses it.
	Nodes    int32      `json:"nodes"`
	Excluded []Excluded `json:"excluded,omitempty"`
	// Resources are those that nodes are short of, in order: more of none of them
	// changes nothing on the nodes that there are.
	Resources []string `json:"resources,omitempty"`
}

// Message says it to people.
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
	for i, e := range s.Excluded {
		if i == 0 {
			b.WriteString("; excluded: ")
		} else {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%s: %d", e.Filter, e.Nodes)
	}
	return b.String()
}
