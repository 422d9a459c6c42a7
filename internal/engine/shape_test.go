package engine

import (
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/musterhq/muster/internal/engine/flavor"
	"github.com/musterhq/muster/internal/engine/place"
	"github.com/musterhq/muster/internal/engine/state"
)

// TestPodSetsThatDifferAreNoEqualWorkloads: of a class only the head is tried, so every field of a pod set, also one
// that is added later, must tell classes apart.
func TestPodSetsThatDifferAreNoEqualWorkloads(t *testing.T) {
	full := reflect.ValueOf(PodSet{
		Name: "main", Count: 1, MinCount: 1, Elastic: 1, Wanted: 1, Reclaimable: 1, Together: 1,
		PerPod: map[string]int64{"cpu": 1}, OfNode: map[string]int64{"cpu": 1},
		Tolerations: []corev1.Toleration{{Key: "k"}}, NodeSelector: map[string]string{"k": "v"},
		Affinity: &corev1.NodeAffinity{}, NodeName: "n",
		Unpinned: true, HostPorts: []place.HostPort{{}}, Topology: &flavor.TopologyRequest{Level: rack}, ExclusiveKey: rack,
		Bounds: []place.Bound{{Kind: place.Apart}},
	})
	plain := state.ShapeKey([]PodSet{{}})
	for i := range full.NumField() {
		field := full.Type().Field(i).Name
		if full.Field(i).IsZero() {
			t.Fatalf("field %s has no value here", field)
		}
		var one PodSet
		reflect.ValueOf(&one).Elem().Field(i).Set(full.Field(i))
		if state.ShapeKey([]PodSet{one}) == plain {
			t.Errorf("a pod set with another %s counts as equal", field)
		}
	}
}
