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

// TestPodsWithoutRequestsGetAFlavorLikeOthers: pods that request nothing, or nothing that the queue covers, count as
// zero of a covered resource. So they get the first flavor that accepts them, and nodes near each other.
func TestPodsWithoutRequestsGetAFlavorLikeOthers(t *testing.T) {
	one := &flavor.TopologyRequest{Level: rack, Mandatory: true}
	gpusOnly := []corev1.Toleration{{Key: "gpu", Operator: corev1.TolerationOpExists}}
	for name, tc := range map[string]struct {
		podSet PodSet
		groups []flavor.Group
		want   map[string]string
	}{
		"none at all": {podSet: PodSet{}, want: map[string]string{"cpu": "plain"}},
		"cpu, which does not count": {podSet: PodSet{OfNode: map[string]int64{"cpu": 25}},
			want: map[string]string{"cpu": "plain"}},
		"none, and the pods select the second flavor": {
			podSet: PodSet{NodeSelector: map[string]string{"kind": "gpus"}, Tolerations: gpusOnly},
			want:   map[string]string{"cpu": "gpus"}},
		"memory, which the queue does not cover and ignores": {
			podSet: PodSet{PerPod: map[string]int64{"memory": 1}, OfNode: map[string]int64{}},
			want:   map[string]string{"cpu": "plain"}},
		"none, and only the second group of resources has a flavor for the pods": {
			podSet: PodSet{NodeSelector: map[string]string{"kind": "gpus"}, Tolerations: gpusOnly},
			groups: []flavor.Group{{Resources: []string{"cpu"}, Flavors: []string{"plain"}},
				{Resources: []string{"gpu"}, Flavors: []string{"gpus"}}},
			want: map[string]string{"gpu": "gpus"}},
	} {
		t.Run(name, func(t *testing.T) {
			queues := plainAndGPUs()
			for _, ev := range queues {
				if q, ok := ev.(ClusterQueueSet); ok && tc.groups != nil {
					q.Groups = slices.Clone(tc.groups)
					queues = append(queues, q)
				}
			}
			gang := job("gang", "q", 4, 0, 0, 0)
			tc.podSet.Name, tc.podSet.Count, tc.podSet.Topology = "main", 4, one
			gang.PodSets = []PodSet{tc.podSet}
			s := newScene(t, Options{IgnoreUndeclared: true}, queues...)
			s.want("the job arrives", s.happens(gang), "admit gang in q")
			held := s.engine.Holds(gang.Key).PodSets[0]
			if diff := cmp.Diff(tc.want, held.Flavors); diff != "" {
				t.Errorf("flavors (-want +got):\n%s", diff)
			}
			for _, name := range tc.want {
				s.wantPlaces("gang", "of-"+name+":4")
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
		q.Quotas[quota.FlavorResource{Flavor: name, Resource: "cpu"}] = quota.Limits{Nominal: 100, Borrowing: quota.Unlimited,
			Lending: quota.Unlimited}
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
