package engine

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/musterhq/muster/internal/engine/flavor"
	"github.com/musterhq/muster/internal/engine/quota"
)

// TestPodsWithoutRequestsGetAFlavorLikeOthers: pods that request nothing, or nothing that the queue covers, count as zero
// of a covered resource. So they get the first flavor that accepts them, and nodes near each other.
func TestPodsWithoutRequestsGetAFlavorLikeOthers(t *testing.T) {
	one := &flavor.TopologyRequest{Level: rack, Mandatory: true}
	gpusOnly := []corev1.Toleration{{Key: "gpu", Operator: corev1.TolerationOpExists}}
	for name, tc := range map[string]struct {
		podSet PodSet
		groups []flavor.Group
		want   map[string]string
	}{
		"none at all":               {podSet: PodSet{}, want: map[string]string{"cpu": "plain"}},
		"cpu, which does not count": {podSet: PodSet{OfNode: map[string]int64{"cpu": 25}}, want: map[string]string{"cpu": "plain"}},
		"none, and the pods select the second flavor": {
			podSet: PodSet{NodeSelector: map[string]string{"kind": "gpus"}, Tolerations: gpusOnly}, want: map[string]string{"cpu": "gpus"}},
		"memory, which the queue does not cover and ignores": {
			podSet: PodSet{PerPod: map[string]int64{"memory": 1}, OfNode: map[string]int64{}}, want: map[string]string{"cpu": "plain"}},
		"none, and only the second group of resources has a flavor for the pods": {
			podSet: PodSet{NodeSelector: map[string]string{"kind": "gpus"}, Tolerations: gpusOnly},
			groups: []flavor.Group{{Resources: []string{"cpu"}, Flavors: []string{"plain"}}, {Resources: []string{"gpu"}, Flavors: []string{"gpus"}}},
			want:   map[string]string{"gpu": "gpus"}},
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

// TestLeaderWithoutRequestsGetsTheFlavorOfItsGroup: in whatever order the pod sets are, the leader is near its workers,
// although the first flavor would have zero for it, and although it requests nothing from their group of resources.
func TestLeaderWithoutRequestsGetsTheFlavorOfItsGroup(t *testing.T) {
	one := &flavor.TopologyRequest{Level: rack, Mandatory: true, Group: "g"}
	tolerates := []corev1.Toleration{{Key: "gpu", Operator: corev1.TolerationOpExists}}
	leader := PodSet{Name: "leader", Count: 1, Topology: one, Tolerations: tolerates}
	workers := PodSet{Name: "workers", Count: 3, PerPod: map[string]int64{"cpu": 3}, Topology: one, Tolerations: tolerates}
	for name, podSets := range map[string][]PodSet{"leader first": {leader, workers}, "workers first": {workers, leader}} {
		t.Run(name, func(t *testing.T) {
			queues := plainAndGPUs()
			for i, ev := range queues {
				if q, ok := ev.(ClusterQueueSet); ok { // the first flavor has room for the leader only
					q.Quotas = maps.Clone(q.Quotas)
					q.Quotas[quota.FlavorResource{Flavor: "plain", Resource: "cpu"}] = quota.Limits{Nominal: 8, Borrowing: quota.Unlimited, Lending: quota.Unlimited}
					queues[i] = q
				}
			}
			gang := job("gang", "q", 1, 0, 0, 0)
			gang.PodSets = podSets
			s := newScene(t, Options{}, queues...)
			s.want("the gang arrives", s.happens(gang), "admit gang in q")
			s.wantPlaces("gang", "of-gpus:1", "of-gpus:3")
		})
	}
	t.Run("another group of resources", func(t *testing.T) {
		queues := plainAndGPUs()
		for i, ev := range queues {
			if q, ok := ev.(ClusterQueueSet); ok {
				q.Groups = []flavor.Group{{Resources: []string{"cpu"}, Flavors: []string{"plain"}}, {Resources: []string{"gpu"}, Flavors: []string{"gpus"}}}
				q.Quotas = maps.Clone(q.Quotas)
				q.Quotas[quota.FlavorResource{Flavor: "gpus", Resource: "gpu"}] = quota.Limits{Nominal: 8, Borrowing: quota.Unlimited, Lending: quota.Unlimited}
				queues[i] = q
			}
		}
		devices := workers
		devices.PerPod = map[string]int64{"gpu": 1}
		withGPUs := node("of-gpus", "a", 100)
		withGPUs.Labels["kind"], withGPUs.Allocatable["gpu"] = "gpus", 8
		gang := job("gang", "q", 1, 0, 0, 0)
		gang.PodSets = []PodSet{leader, devices}
		s := newScene(t, Options{}, append(queues, withGPUs)...)
		s.want("the gang arrives", s.happens(gang), "admit gang in q")
		s.wantPlaces("gang", "of-gpus:1", "of-gpus:3")
	})
}
