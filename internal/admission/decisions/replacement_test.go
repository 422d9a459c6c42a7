package decisions

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/admission/admissiontest"
	"github.com/musterhq/muster/internal/admission/translate"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/engine/place"
	"github.com/musterhq/muster/internal/engine/preempt"
)

// holder returns ns/a with two pods, admitted to the node a.
func holder() *kueue.Workload {
	w := admissiontest.NewWorkload("a", 2, asked)
	admit(w, admissiontest.Gang(place.NodeCount{Node: "a", Count: 2}), map[string]*kueue.TopologyAssignment{"main": {
		Levels:  []string{corev1.LabelHostname},
		Domains: []kueue.TopologyDomainAssignment{{Values: []string{"a"}, Count: 2}}}}, admissiontest.Now)
	return w
}

func TestReplacedPlacesAreWrittenIntoTheAdmission(t *testing.T) {
	moved := admissiontest.Gang(place.NodeCount{Node: "b", Count: 2})
	evicted := func(w *kueue.Workload) {
		evict(w, &engine.Eviction{}, preemptorJob{}, admissiontest.Now)
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
		"an evicted workload keeps its places": {evicted, nil, engine.Failed{}, "a"},
		"a workload without admission has no places": {func(w *kueue.Workload) { w.Status.Admission = nil }, nil,
			engine.Failed{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := holder()
			tc.then(w)
			world := admissiontest.NewWorld(t, w, admissiontest.PlacedFlavor("f", "t"),
				admissiontest.Topology("t", corev1.LabelHostname))
			d := newSingleWriterOf(world,
				engine.Decision{Key: engine.Key{Namespace: "ns", Name: "a"}, UID: "a-uid", Generation: 1, Replace: moved})
			d.work(t, 2)
			admissiontest.Expect(t, "writes", tc.want, world.Written())
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
			if got := after.Admission.PodSetAssignments[0]; got.TopologyAssignment.Domains[0].Values[0] != tc.host ||
				*got.Count != 2 || got.Flavors["cpu"] != "f" {
				t.Errorf("assignment = %+v, want only the place changed", got)
			}
		})
	}
}

func TestEvictionForNodeFailureRequeuesAtOnce(t *testing.T) {
	w := holder()
	w.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: "a", UID: "job",
		Controller: ptr.To(true)}}
	evict(w, &engine.Eviction{Cause: preempt.NodeFailures, Detail: "node a failed, and no other in rack r1 has room"},
		preemptorJob{}, admissiontest.Now)
	admissiontest.Expect(t, "conditions", []string{
		"QuotaReserved=True QuotaReserved: Quota reserved in ClusterQueue cq",
		"Admitted=True Admitted: The workload is admitted",
		"Evicted=True NodeFailures: node a failed, and no other in rack r1 has room",
	}, admissiontest.Conditions(w.Status.Conditions))
	if stats := w.Status.SchedulingStats.Evictions; len(stats) != 1 || stats[0].Reason != "NodeFailures" ||
		stats[0].Count != 1 {
		t.Errorf("eviction counters = %+v, want one for NodeFailures", stats)
	}
	if !newTranslator().Workload(w).LostNodes {
		t.Error("LostNodes = false, want the Workload to go first")
	}
}

// TestAnEvictionSaysForWhichWorkload, so that whoever reads the Workload later knows it.
func TestAnEvictionSaysForWhichWorkload(t *testing.T) {
	w := holder()
	evict(w, &engine.Eviction{Cause: preempt.ReclaimedWhileBorrowing, PreemptorUID: "b-uid"}, preemptorJob{},
		admissiontest.Now)
	if got := translate.PreemptorOf(w); got != "b-uid" {
		t.Errorf("preemptor = %q, want b-uid", got)
	}
}
