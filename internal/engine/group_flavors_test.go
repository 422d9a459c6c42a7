package engine

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/musterhq/muster/internal/engine/flavor"
	"github.com/musterhq/muster/internal/engine/place"
	"github.com/musterhq/muster/internal/engine/quota"
)

// TestGroupNeedsAFlavorThatAcceptsAllItsPods: if one flavor refuses the leader and the other the workers, the reason
// is neither quota nor nodes, and waiting does not help. A pod set of no pods does not matter.
func TestGroupNeedsAFlavorThatAcceptsAllItsPods(t *testing.T) {
	const refused = "gang waits: NoMatchingFlavor: couldn't assign flavors to pod set leader: " +
		"flavor plain doesn't match node affinity, for pod set workers, which must get the same flavor, untolerated taint {gpu yes NoSchedule <nil>} in flavor gpus"
	tolerates := []corev1.Toleration{{Key: "gpu", Operator: corev1.TolerationOpExists}}
	for name, tc := range map[string]struct {
		group   string
		workers int32
		leader  []corev1.Toleration
		want    string
	}{
		"a flavor accepts both":  {"g", 2, tolerates, "admit gang in q"},
		"none accepts both":      {"g", 2, nil, refused},
		"there are no workers":   {"g", 0, nil, "admit gang in q"},
		"they need not be close": {"", 2, nil, "admit gang in q"},
	} {
		t.Run(name, func(t *testing.T) {
			one := &flavor.TopologyRequest{Level: rack, Mandatory: true, Group: tc.group}
			gang := job("gang", "q", 1, 1, 0, 0)
			gang.PodSets = []PodSet{
				{Name: "leader", Count: 1, PerPod: map[string]int64{"cpu": 1}, Topology: one, Tolerations: tc.leader},
				{Name: "workers", Count: tc.workers, PerPod: map[string]int64{"cpu": 1}, Topology: one,
					NodeSelector: map[string]string{"kind": "gpus"}, Tolerations: tolerates},
			}
			got := decisionsAfter(New(Options{}), slices.Concat(plainAndGPUs(), []Event{gang})...)
			if diff := cmp.Diff([]string{tc.want}, got); diff != "" {
				t.Errorf("decisions (-want +got):\n%s", diff)
			}
		})
	}
}

// plainAndGPUs returns a queue with two flavors whose nodes are labelled with their kind. Those with GPUs are tainted.
func plainAndGPUs() []Event {
	q := queueOf("q", "", 0)
	q.Groups[0].Flavors, q.Quotas = []string{"plain", "gpus"}, quota.Quotas{}
	out := []Event{TopologySet{place.Topology{Name: "racks", Levels: []string{rack, place.Hostname}}}}
	for _, name := range q.Groups[0].Flavors {
		q.Quotas[quota.FlavorResource{Flavor: name, Resource: "cpu"}] = quota.Limits{Nominal: 100, Borrowing: quota.Unlimited, Lending: quota.Unlimited}
		known := Flavor{Name: name, Topology: "racks", NodeLabels: map[string]string{"kind": name}}
		if name == "gpus" {
			known.NodeTaints = []corev1.Taint{{Key: "gpu", Value: "yes", Effect: corev1.TaintEffectNoSchedule}}
		}
		on := node("of-"+name, "a", 100)
		on.Labels["kind"] = name
		out = append(out, FlavorSet{known}, on)
	}
	return append(out, q, localOf("q"))
}
