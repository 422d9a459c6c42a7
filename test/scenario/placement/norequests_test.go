package placement

import (
	"maps"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/test/scenario/harness"
)

// TestPodsWithoutRequestsArePlacedLikeOthers: they get the flavor, with its node labels and tolerations, and places in
// one rack for both pod sets of a group. A rack with 3 places for pods is the better fit for either pod set, but too
// small for both together.
func TestPodsWithoutRequestsArePlacedLikeOthers(t *testing.T) {
	w := newWorld(t)
	few := func(pods string) corev1.ResourceList {
		out := allocatable(0)
		out[corev1.ResourcePods] = resource.MustParse(pods)
		return out
	}
	w.node("small-0", "small", few("3"), simulated)
	wanted := map[string]bool{}
	for _, name := range []string{"large-0", "large-1"} {
		wanted[w.node(name, "large", few("2"), simulated)] = true
	}
	w.queue()
	pair := w.gang("pair", "q", 2, 0, time.Hour)
	first := &pair.Spec.ReplicatedJobs[0]
	template := &first.Template.Spec.Template
	template.Spec.Containers[0].Resources = corev1.ResourceRequirements{}
	template.Annotations[kueue.PodSetRequiredTopologyAnnotation] = rack
	template.Annotations[kueue.PodSetGroupNameAnnotation] = "together"
	second := first.DeepCopy()
	first.Name, second.Name = "ps", "worker"
	pair.Spec.ReplicatedJobs = append(pair.Spec.ReplicatedJobs, *second)
	w.Create(pair)

	running := w.untilRunning("pair", 4)
	wl := w.UntilWorkloadOf("pair", "is admitted", admitted)
	for _, assigned := range wl.Status.Admission.PodSetAssignments {
		flavors := slices.Collect(maps.Values(assigned.Flavors))
		if assigned.TopologyAssignment == nil ||
			!slices.Equal(flavors, []kueue.ResourceFlavorReference{kueue.ResourceFlavorReference(w.Namespace)}) {
			t.Errorf("pod set %s is assigned %+v, want the flavor and places", assigned.Name, assigned)
		}
	}
	places := harness.PlacesOf(wl)
	for name, pod := range running {
		if !wanted[pod.Spec.NodeName] || places[pod.Spec.NodeName] != 2 {
			t.Errorf("pod %s runs on %s, and the places are %v; want two on each node of the larger rack", name,
				pod.Spec.NodeName, places)
		}
		if pod.Spec.NodeSelector[pool] != w.Namespace {
			t.Errorf("pod %s has the node selector %v, want the label of the flavor", name, pod.Spec.NodeSelector)
		}
		tolerates := false
		for _, toleration := range pod.Spec.Tolerations {
			tolerates = tolerates || toleration.Key == simulated.Key && toleration.Operator == corev1.TolerationOpExists
		}
		if !tolerates {
			t.Errorf("pod %s has the tolerations %v, want that of the flavor", name, pod.Spec.Tolerations)
		}
	}
}
