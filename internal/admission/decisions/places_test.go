package decisions

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/admission/admissiontest"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/engine/place"
)

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
			admissiontest.Domains([]string{corev1.LabelHostname}, admissiontest.Domain(2, "b"),
				admissiontest.Domain(1, "host-a"))},
		"a topology of several levels": {
			[]string{"rack"}, given,
			admissiontest.Domains([]string{"rack", corev1.LabelHostname}, admissiontest.Domain(2, "r2", "b"),
				admissiontest.Domain(1, "r1", "host-a"))},
		"a missing node": {
			[]string{"rack"}, admissiontest.Gang(place.NodeCount{Node: "c", Count: 1}), nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := admissiontest.NewWorld(t,
				append(nodes, admissiontest.PlacedFlavor("f", "t"), admissiontest.Topology("t", tc.levels...))...)
			got, known, err := placeReader{Reader: w}.assignments(t.Context(), tc.given, nil)
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
		if _, known, err := (placeReader{Reader: w}).assignments(t.Context(), given, nil); known || err != nil {
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
			admissiontest.Domains([]string{"rack", corev1.LabelHostname}, admissiontest.Domain(1, "r1", "gone"),
				admissiontest.Domain(1, "r3", "c")),
			admissiontest.Domains([]string{"rack", corev1.LabelHostname}, admissiontest.Domain(1, "r1", "gone"),
				admissiontest.Domain(1, "r2", "b"))},
		"of a topology of racks that is gone too": {
			nil,
			admissiontest.Domains([]string{"rack", corev1.LabelHostname}, admissiontest.Domain(1, "r1", "gone"),
				admissiontest.Domain(1, "r3", "c")),
			admissiontest.Domains([]string{"rack", corev1.LabelHostname}, admissiontest.Domain(1, "r1", "gone"),
				admissiontest.Domain(1, "r2", "b"))},
		"of a topology of hostnames that is gone too": {
			nil,
			admissiontest.Domains([]string{corev1.LabelHostname}, admissiontest.Domain(1, "gone"), admissiontest.Domain(1, "c")),
			admissiontest.Domains([]string{corev1.LabelHostname}, admissiontest.Domain(1, "gone"),
				admissiontest.Domain(1, "b"))},
		"and by another controller were in racks": {
			[]client.Object{admissiontest.Topology("t", "rack")},
			admissiontest.Domains([]string{"rack"}, admissiontest.Domain(2, "r1")), nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := admissiontest.NewWorld(t, append(tc.objects, admissiontest.PlacedFlavor("f", "t"),
				admissiontest.Node("b", "cpu", "4").Labeled("rack", "r2").Node)...)
			before := &kueue.Admission{PodSetAssignments: []kueue.PodSetAssignment{{Name: "other"},
				{Name: "main", TopologyAssignment: tc.before}}}
			got, known, err := placeReader{Reader: w}.assignments(t.Context(), given, before)
			if err != nil || known != (tc.want != nil) {
				t.Fatalf("known = %v, error %v", known, err)
			}
			if diff := cmp.Diff(tc.want, got["main"]); diff != "" {
				t.Errorf("assignment (-want +got):\n%s", diff)
			}
		})
	}
}
