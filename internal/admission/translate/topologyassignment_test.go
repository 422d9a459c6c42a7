package translate

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/admission/admissiontest"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/engine/flavor"
	"github.com/musterhq/muster/internal/engine/place"
)

func TestTopologyAssignmentsOfOtherWritersAreRead(t *testing.T) {
	for name, tc := range map[string]struct {
		given  *kueue.TopologyAssignment
		places []place.NodeCount
		within []flavor.DomainCount
	}{
		"no assignment": {nil, nil, nil},
		"racks": {
			admissiontest.Domains([]string{"block", "rack"}, admissiontest.Domain(3, "b1", "r1"),
				admissiontest.Domain(1, "b1", "r2")), nil,
			[]flavor.DomainCount{{Labels: map[string]string{"block": "b1", "rack": "r1"}, Count: 3},
				{Labels: map[string]string{"block": "b1", "rack": "r2"}, Count: 1}}},
		"nodes": {
			admissiontest.Domains([]string{"rack", corev1.LabelHostname}, admissiontest.Domain(3, "r1", "a")),
			[]place.NodeCount{{Node: "a", Count: 3}}, nil},
		"a domain with a missing value": {
			admissiontest.Domains([]string{"rack", corev1.LabelHostname}, admissiontest.Domain(3, "r1"),
				admissiontest.Domain(2, "r1", "b")), []place.NodeCount{{Node: "b", Count: 2}}, nil},
	} {
		places, within := PlacesFrom(tc.given)
		if diff := cmp.Diff(tc.places, places); diff != "" {
			t.Errorf("%s: places (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff(tc.within, within); diff != "" {
			t.Errorf("%s: within (-want +got):\n%s", name, diff)
		}
	}
}

func TestTranslateTopologyRequest(t *testing.T) {
	for name, tc := range map[string]struct {
		asked *kueue.PodSetTopologyRequest
		want  *flavor.TopologyRequest
	}{
		"no request": {nil, nil},
		"required": {&kueue.PodSetTopologyRequest{Required: ptr.To("rack")},
			&flavor.TopologyRequest{Level: "rack", Mandatory: true}},
		"preferred":     {&kueue.PodSetTopologyRequest{Preferred: ptr.To("rack")}, &flavor.TopologyRequest{Level: "rack"}},
		"unconstrained": {&kueue.PodSetTopologyRequest{Unconstrained: ptr.To(true)}, &flavor.TopologyRequest{}},
		"slices and a group": {
			&kueue.PodSetTopologyRequest{Required: ptr.To("block"), PodSetGroupName: ptr.To("g"),
				PodSetSliceRequiredTopology: ptr.To("rack"), PodSetSliceSize: ptr.To[int32](4)},
			&flavor.TopologyRequest{Level: "block", Mandatory: true, Group: "g",
				Slices: []place.Slice{{Level: "rack", Size: 4}}}},
		"a slice without a size": {
			&kueue.PodSetTopologyRequest{PodSetSliceRequiredTopology: ptr.To("rack")},
			&flavor.TopologyRequest{Slices: []place.Slice{{Level: "rack", Size: 8}}}},
		"layers of slices": {
			&kueue.PodSetTopologyRequest{PodsetSliceRequiredTopologyConstraints: []kueue.PodsetSliceRequiredTopologyConstraint{
				{Topology: "block", Size: 8}, {Topology: "rack", Size: 4}}},
			&flavor.TopologyRequest{Slices: []place.Slice{{Level: "block", Size: 8}, {Level: "rack", Size: 4}}}},
	} {
		w := admissiontest.NewWorkload("w", 8, admissiontest.Quantities("cpu", "1"))
		w.Spec.PodSets[0].TopologyRequest = tc.asked
		w.Spec.PodSets[0].Template.Annotations = map[string]string{"alpha.jobset.sigs.k8s.io/exclusive-topology": "zone"}
		got := newTestTranslator().Workload(w).PodSets[0]
		if diff := cmp.Diff(tc.want, got.Topology); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if got.ExclusiveKey != "zone" {
			t.Errorf("ExclusiveKey = %q, want zone", got.ExclusiveKey)
		}
	}
}

func TestStrategyAndGrowthOfTheDefaultQueue(t *testing.T) {
	followed := func(change func(*kueue.ClusterQueue)) *kueue.ClusterQueue {
		q := admissiontest.NewClusterQueue("default", "8")
		q.Labels = map[string]string{"muster.dev/follows-nodes": "true"}
		change(q)
		return q
	}
	for name, tc := range map[string]struct {
		queue               *kueue.ClusterQueue
		strategy            engine.Strategy
		onDemand, coversAll bool
		backfills           bool
	}{
		"a queue of a user": {admissiontest.NewClusterQueue("cq", "8"),
			engine.BestEffort, false, false, false},
		"a queue that follows the nodes": {followed(func(*kueue.ClusterQueue) {}),
			engine.BestEffort, false, false, true},
		"a queue that follows the nodes, made strict by a user": {followed(func(q *kueue.ClusterQueue) {
			q.Spec.QueueingStrategy = kueue.StrictFIFO
		}), engine.Strict, false, false, false},
		"a queue that follows nodes on demand": {followed(func(q *kueue.ClusterQueue) {
			metav1.SetMetaDataAnnotation(&q.ObjectMeta, "muster.dev/nodes-on-demand", "true")
		}), engine.BestEffort, true, false, true},
		"a queue that follows nodes on demand, with unlimited quota": {followed(func(q *kueue.ClusterQueue) {
			metav1.SetMetaDataAnnotation(&q.ObjectMeta, "muster.dev/unlimited", "true")
		}), engine.BestEffort, false, true, true},
	} {
		got := newTestTranslator().Changed(tc.queue, admissiontest.Now)[0].(engine.ClusterQueueSet)
		if got.Strategy != tc.strategy || got.OnDemand != tc.onDemand || got.CoversAll != tc.coversAll ||
			got.Backfill != tc.backfills {
			t.Errorf("%s: got strategy %v, on demand %v, covers all %v, backfill %v", name, got.Strategy, got.OnDemand,
				got.CoversAll, got.Backfill)
		}
	}
	before, after := admissiontest.NewClusterQueue("cq", "8"), admissiontest.NewClusterQueue("cq", "8")
	metav1.SetMetaDataAnnotation(&after.ObjectMeta, "muster.dev/nodes-on-demand", "true")
	if !ChangeMatters(before, after) {
		t.Error("changeMatters = false for the annotation, want true")
	}
}
