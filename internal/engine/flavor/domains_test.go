package flavor

import (
	"testing"

	"github.com/musterhq/muster/internal/engine/place"
)

func TestExclusiveDomainsNeedNoTopology(t *testing.T) {
	alone := PodSet{ExclusiveKey: "pool", Topology: &TopologyRequest{Slices: []place.Slice{{Level: "pool", Size: 2}}}}
	near := PodSet{Topology: &TopologyRequest{Slices: []place.Slice{{Level: "pool", Size: 2}}}}
	both := PodSet{ExclusiveKey: "pool",
		Topology: &TopologyRequest{Level: "rack", Slices: []place.Slice{{Level: "pool", Size: 2}}}}
	topologies := map[string][]string{"t": {"rack"}}
	for name, tc := range map[string]struct {
		flavor Flavor
		pods   PodSet
		why    string
	}{
		"exclusive by pod affinity":             {Flavor{Name: "f"}, alone, ""},
		"exclusive by a label that is no level": {Flavor{Name: "f", Topology: "t"}, alone, ""},
		"a required level": {Flavor{Name: "f"}, near,
			"flavor f does not support TopologyAwareScheduling"},
		"an exclusive domain and a required level": {Flavor{Name: "f"}, both,
			"flavor f does not support TopologyAwareScheduling"},
		"both, and a topology with the level": {Flavor{Name: "f", Topology: "t"}, both, ""},
		"a level that the topology does not have": {Flavor{Name: "f", Topology: "t"}, near,
			"topology t of flavor f has no level pool; it has rack"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := refusesTopology(tc.flavor, tc.pods, topologies); got != tc.why {
				t.Errorf("got %q, want %q", got, tc.why)
			}
		})
	}
}
