package replicas

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/podspec"
)

// TestAReplicaNeverTakesAPlaceOfAnotherSlice: four replicas in slices of two, of which the first has a1 and a2 of one
// rack, and the second b1 and b2 of another.
func TestAReplicaNeverTakesAPlaceOfAnotherSlice(t *testing.T) {
	on := func(node string) podspec.Place {
		return podspec.Place{Domain: map[string]string{corev1.LabelHostname: node}, Count: 1}
	}
	at := func(name, node string) *corev1.Pod {
		pod := podOf(name, 0).running()
		pod.Spec.NodeName, pod.Spec.NodeSelector = node, on(node).Domain
		return pod.Pod
	}
	waits := at("job-w-3", "")
	waits.Spec.NodeSelector, waits.Spec.SchedulingGates = nil, []corev1.PodSchedulingGate{{Name: kueue.TopologyGate}}
	places := podspec.Places{on("a1"), on("a2"), on("b1"), on("b2")}
	for name, tc := range map[string]struct {
		slice int32
		pods  []*corev1.Pod
		ended map[int32]bool
		want  map[int32]string
	}{
		"another of its slice has its place": {2,
			[]*corev1.Pod{at("job-w-1", "a2"), at("job-w-3", "b1")}, nil, map[int32]string{0: "a1", 2: "b2"}},
		"one of another slice has succeeded": {2,
			[]*corev1.Pod{at("job-w-1", "a2"), at("job-w-3", "b1")}, map[int32]bool{0: true}, map[int32]string{2: "b2"}},
		"only the place of one of another slice is left: it waits": {2,
			[]*corev1.Pod{at("job-w-1", "b2"), at("job-w-3", "b1")}, map[int32]bool{0: true}, nil},
		"without slices it takes the place of one that has succeeded": {0,
			[]*corev1.Pod{at("job-w-1", "b2"), at("job-w-3", "b1")}, map[int32]bool{0: true}, map[int32]string{2: "a1"}},
		"one that waits at its gate is placed first": {0, []*corev1.Pod{at("job-w-1", "a2"), waits}, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			roster := Observe("job", []Group{{Name: "w", Count: 4}}, func(_ string, index int32) Record {
				if tc.ended[index] {
					return Record{Phase: Succeeded}
				}
				return Record{}
			}, tc.pods)
			var got map[int32]string
			for index, place := range roster.AssignPlaces("w", places, tc.slice) {
				if got == nil {
					got = map[int32]string{}
				}
				got[index] = place[0].Node()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("places by index (-want +got):\n%s", diff)
			}
		})
	}
}
