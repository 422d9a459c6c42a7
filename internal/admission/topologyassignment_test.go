package admission

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/admission/admissiontest"
	"github.com/musterhq/muster/internal/admission/decisions"
	"github.com/musterhq/muster/internal/admission/translate"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/engine/flavor"
	"github.com/musterhq/muster/internal/engine/place"
	"github.com/musterhq/muster/internal/engine/preempt"
)

func domains(levels []string, domains ...kueue.TopologyDomainAssignment) *kueue.TopologyAssignment {
	return &kueue.TopologyAssignment{Levels: levels, Domains: domains}
}

func domain(count int32, values ...string) kueue.TopologyDomainAssignment {
	return kueue.TopologyDomainAssignment{Values: values, Count: count}
}

func TestPlacesAreConvertedToTheAPI(t *testing.T) {
	given := admissiontest.Gang(place.NodeCount{Node: "b", Count: 2}, place.NodeCount{Node: "host-a", Count: 1})
	nodes := []client.Object{
		admissiontest.Node("b", "cpu", "4").Labeled("rack", "r2").Node,
		admissiontest.Node("a", "cpu", "4").Labeled("rack", "r1").Labeled(corev1.LabelHostname, "host-a").Node,
	}
	for name, tc := range map[string]struct {
		levels []string
		given  *engine.Admission
		want   *kueue.TopologyAssignment
	}{
		"a topology of hostnames": {
			[]string{"rack", corev1.LabelHostname}, given,
			domains([]string{corev1.LabelHostname}, domain(2, "b"), domain(1, "host-a"))},
		"a topology of several levels": {
			[]string{"rack"}, given,
			domains([]string{"rack", corev1.LabelHostname}, domain(2, "r2", "b"), domain(1, "r1", "host-a"))},
		"a missing node": {
			[]string{"rack"}, admissiontest.Gang(place.NodeCount{Node: "c", Count: 1}), nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := admissiontest.NewWorld(t, append(nodes, admissiontest.PlacedFlavor("f", "t"), admissiontest.Topology("t", tc.levels...))...)
			got, known, err := translate.PlaceReader{Reader: w}.Assignments(t.Context(), tc.given, nil)
			if err != nil || known != (tc.want != nil) {
				t.Fatalf("known = %v, error %v", known, err)
			}
			if diff := cmp.Diff(tc.want, got["main"]); diff != "" {
				t.Errorf("assignment (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("a missing topology", func(t *testing.T) {
		w := admissiontest.NewWorld(t, admissiontest.PlacedFlavor("f", "t"))
		if _, known, err := (translate.PlaceReader{Reader: w}).Assignments(t.Context(), given, nil); known || err != nil {
			t.Errorf("known = %v, error %v, want neither", known, err)
		}
	})
}

// TestPlacesAreWrittenThoughOneIsOnANodeThatIsGone: pods that have ended keep their places there. A repair or a resize
// that could not be written for it would be decided again and again.
func TestPlacesAreWrittenThoughOneIsOnANodeThatIsGone(t *testing.T) {
	given := admissiontest.Gang(place.NodeCount{Node: "gone", Count: 1}, place.NodeCount{Node: "b", Count: 1})
	for name, tc := range map[string]struct {
		objects      []client.Object
		before, want *kueue.TopologyAssignment
	}{
		"of a topology of racks": {
			[]client.Object{admissiontest.Topology("t", "rack")},
			domains([]string{"rack", corev1.LabelHostname}, domain(1, "r1", "gone"), domain(1, "r3", "c")),
			domains([]string{"rack", corev1.LabelHostname}, domain(1, "r1", "gone"), domain(1, "r2", "b"))},
		"of a topology of racks that is gone too": {
			nil,
			domains([]string{"rack", corev1.LabelHostname}, domain(1, "r1", "gone"), domain(1, "r3", "c")),
			domains([]string{"rack", corev1.LabelHostname}, domain(1, "r1", "gone"), domain(1, "r2", "b"))},
		"of a topology of hostnames that is gone too": {
			nil,
			domains([]string{corev1.LabelHostname}, domain(1, "gone"), domain(1, "c")),
			domains([]string{corev1.LabelHostname}, domain(1, "gone"), domain(1, "b"))},
		"and by another controller were in racks": {
			[]client.Object{admissiontest.Topology("t", "rack")}, domains([]string{"rack"}, domain(2, "r1")), nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := admissiontest.NewWorld(t, append(tc.objects, admissiontest.PlacedFlavor("f", "t"), admissiontest.Node("b", "cpu", "4").Labeled("rack", "r2").Node)...)
			before := &kueue.Admission{PodSetAssignments: []kueue.PodSetAssignment{{Name: "other"}, {Name: "main", TopologyAssignment: tc.before}}}
			got, known, err := translate.PlaceReader{Reader: w}.Assignments(t.Context(), given, before)
			if err != nil || known != (tc.want != nil) {
				t.Fatalf("known = %v, error %v", known, err)
			}
			if diff := cmp.Diff(tc.want, got["main"]); diff != "" {
				t.Errorf("assignment (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTopologyAssignmentsOfOtherWritersAreRead(t *testing.T) {
	for name, tc := range map[string]struct {
		given  *kueue.TopologyAssignment
		places []place.NodeCount
		within []flavor.DomainCount
	}{
		"no assignment": {nil, nil, nil},
		"racks": {
			domains([]string{"block", "rack"}, domain(3, "b1", "r1"), domain(1, "b1", "r2")), nil,
			[]flavor.DomainCount{{Labels: map[string]string{"block": "b1", "rack": "r1"}, Count: 3}, {Labels: map[string]string{"block": "b1", "rack": "r2"}, Count: 1}}},
		"nodes": {
			domains([]string{"rack", corev1.LabelHostname}, domain(3, "r1", "a")), []place.NodeCount{{Node: "a", Count: 3}}, nil},
		"a domain with a missing value": {
			domains([]string{"rack", corev1.LabelHostname}, domain(3, "r1"), domain(2, "r1", "b")), []place.NodeCount{{Node: "b", Count: 2}}, nil},
	} {
		places, within := translate.PlacesFrom(tc.given)
		if diff := cmp.Diff(tc.places, places); diff != "" {
			t.Errorf("%s: places (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff(tc.within, within); diff != "" {
			t.Errorf("%s: within (-want +got):\n%s", name, diff)
		}
	}
}

// holder returns ns/a with two pods, admitted to the node a.
func holder() *kueue.Workload {
	w := admissiontest.NewWorkload("a", 2, asked)
	decisions.Admit(w, admissiontest.Gang(place.NodeCount{Node: "a", Count: 2}), map[string]*kueue.TopologyAssignment{"main": domains([]string{corev1.LabelHostname}, domain(2, "a"))}, admissiontest.Now)
	return w
}

func TestReplacedPlacesAreWrittenIntoTheAdmission(t *testing.T) {
	moved := admissiontest.Gang(place.NodeCount{Node: "b", Count: 2})
	evicted := func(w *kueue.Workload) {
		decisions.Evict(w, &engine.Eviction{}, decisions.PreemptorJob{}, admissiontest.Now)
	}
	for name, tc := range map[string]struct {
		then     func(*kueue.Workload)
		want     []string
		reported engine.Event
		host     string
	}{
		"new places": {
			func(*kueue.Workload) {}, []string{"status Workload a"}, engine.Written{}, "b"},
		"the same places": {
			func(w *kueue.Workload) {
				w.Status.Admission.PodSetAssignments[0].TopologyAssignment.Domains[0].Values[0] = "b"
			}, nil, engine.Written{}, "b"},
		"an evicted workload keeps its places":       {evicted, nil, engine.Failed{}, "a"},
		"a workload without admission has no places": {func(w *kueue.Workload) { w.Status.Admission = nil }, nil, engine.Failed{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := holder()
			tc.then(w)
			world := admissiontest.NewWorld(t, w, admissiontest.PlacedFlavor("f", "t"), admissiontest.Topology("t", corev1.LabelHostname))
			d := newSingleWriterOf(world, engine.Decision{Key: engine.Key{Namespace: "ns", Name: "a"}, UID: "a-uid", Generation: 1, Replace: moved})
			d.work(t, 2)
			expect(t, "writes", tc.want, world.Written())
			if len(d.reported) != 1 {
				t.Fatalf("reported %+v, want one event", d.reported)
			}
			_, failed := d.reported[0].(engine.Failed)
			if _, wanted := tc.reported.(engine.Failed); failed != wanted {
				t.Errorf("reported %+v, want Failed: %v", d.reported, wanted)
			}
			after := world.Workload("a").Status
			if after.Admission == nil {
				return
			}
			if got := after.Admission.PodSetAssignments[0]; got.TopologyAssignment.Domains[0].Values[0] != tc.host || *got.Count != 2 || got.Flavors["cpu"] != "f" {
				t.Errorf("assignment = %+v, want only the place changed", got)
			}
		})
	}
}

func TestEvictionForNodeFailureRequeuesAtOnce(t *testing.T) {
	w := holder()
	w.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: "a", UID: "job", Controller: ptr.To(true)}}
	decisions.Evict(w, &engine.Eviction{Cause: preempt.NodeFailures, Detail: "node a failed, and no other in rack r1 has room"}, decisions.PreemptorJob{}, admissiontest.Now)
	expect(t, "conditions", []string{
		"QuotaReserved=True QuotaReserved: Quota reserved in ClusterQueue cq",
		"Admitted=True Admitted: The workload is admitted",
		"Evicted=True NodeFailures: node a failed, and no other in rack r1 has room",
	}, admissiontest.Conditions(w.Status.Conditions))
	if stats := w.Status.SchedulingStats.Evictions; len(stats) != 1 || stats[0].Reason != "NodeFailures" || stats[0].Count != 1 {
		t.Errorf("eviction counters = %+v, want one for NodeFailures", stats)
	}
	if !newSceneTranslator().Workload(w).LostNodes {
		t.Error("LostNodes = false, want the Workload to go first")
	}
}

func TestTranslateTopologyRequest(t *testing.T) {
	for name, tc := range map[string]struct {
		asked *kueue.PodSetTopologyRequest
		want  *flavor.TopologyRequest
	}{
		"no request":    {nil, nil},
		"required":      {&kueue.PodSetTopologyRequest{Required: ptr.To("rack")}, &flavor.TopologyRequest{Level: "rack", Mandatory: true}},
		"preferred":     {&kueue.PodSetTopologyRequest{Preferred: ptr.To("rack")}, &flavor.TopologyRequest{Level: "rack"}},
		"unconstrained": {&kueue.PodSetTopologyRequest{Unconstrained: ptr.To(true)}, &flavor.TopologyRequest{}},
		"slices and a group": {
			&kueue.PodSetTopologyRequest{Required: ptr.To("block"), PodSetGroupName: ptr.To("g"), PodSetSliceRequiredTopology: ptr.To("rack"), PodSetSliceSize: ptr.To[int32](4)},
			&flavor.TopologyRequest{Level: "block", Mandatory: true, Group: "g", Slices: []place.Slice{{Level: "rack", Size: 4}}}},
		"a slice without a size": {
			&kueue.PodSetTopologyRequest{PodSetSliceRequiredTopology: ptr.To("rack")},
			&flavor.TopologyRequest{Slices: []place.Slice{{Level: "rack", Size: 8}}}},
		"layers of slices": {
			&kueue.PodSetTopologyRequest{PodsetSliceRequiredTopologyConstraints: []kueue.PodsetSliceRequiredTopologyConstraint{{Topology: "block", Size: 8}, {Topology: "rack", Size: 4}}},
			&flavor.TopologyRequest{Slices: []place.Slice{{Level: "block", Size: 8}, {Level: "rack", Size: 4}}}},
	} {
		w := admissiontest.NewWorkload("w", 8, asked)
		w.Spec.PodSets[0].TopologyRequest = tc.asked
		w.Spec.PodSets[0].Template.Annotations = map[string]string{"alpha.jobset.sigs.k8s.io/exclusive-topology": "zone"}
		got := newSceneTranslator().Workload(w).PodSets[0]
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
	}{
		"a queue of a user":                                     {admissiontest.NewClusterQueue("cq", "8"), engine.BestEffort, false, false},
		"a queue that follows the nodes":                        {followed(func(*kueue.ClusterQueue) {}), engine.ByResource, false, false},
		"a queue that follows the nodes, made strict by a user": {followed(func(q *kueue.ClusterQueue) { q.Spec.QueueingStrategy = kueue.StrictFIFO }), engine.Strict, false, false},
		"a queue that follows nodes on demand": {followed(func(q *kueue.ClusterQueue) {
			metav1.SetMetaDataAnnotation(&q.ObjectMeta, "muster.dev/nodes-on-demand", "true")
		}), engine.ByResource, true, false},
		"a queue that follows nodes on demand, with unlimited quota": {followed(func(q *kueue.ClusterQueue) {
			metav1.SetMetaDataAnnotation(&q.ObjectMeta, "muster.dev/unlimited", "true")
		}), engine.ByResource, false, true},
	} {
		got := newSceneTranslator().Changed(tc.queue, admissiontest.Now)[0].(engine.ClusterQueueSet)
		if got.Strategy != tc.strategy || got.OnDemand != tc.onDemand || got.CoversAll != tc.coversAll {
			t.Errorf("%s: got strategy %v, on demand %v, covers all %v", name, got.Strategy, got.OnDemand, got.CoversAll)
		}
	}
	before, after := admissiontest.NewClusterQueue("cq", "8"), admissiontest.NewClusterQueue("cq", "8")
	metav1.SetMetaDataAnnotation(&after.ObjectMeta, "muster.dev/nodes-on-demand", "true")
	if !translate.ChangeMatters(before, after) {
		t.Error("changeMatters = false for the annotation, want true")
	}
}
