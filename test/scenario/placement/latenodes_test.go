package placement

import (
	"strings"
	"testing"

	"github.com/musterhq/muster/test/scenario/harness"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestNodesThatAreAddedLater checks that with an autoscaler in the cluster, a job that no present node could ever hold
// is admitted by quota alone, that explain says that it waits for new nodes, and that it runs when one is added.
func TestNodesThatAreAddedLater(t *testing.T) {
	w := newSerialWorld(t)
	w.Shared(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "cluster-autoscaler-status"}})
	late := corev1.ResourceName("example.com/late-" + w.Namespace)
	w.Create(w.jobSetRequesting("late", late, 3))
	wl := w.UntilWorkloadOf("late", "is admitted", admitted)
	if places := harness.PlacesOf(wl); len(places) != 0 {
		t.Errorf("places = %v, want none", places)
	}
	harness.Until(w.World, &corev1.PodList{}, "its pod is unschedulable, which triggers an autoscaler",
		func(list *corev1.PodList) bool {
			for _, pod := range list.Items {
				for _, c := range pod.Status.Conditions {
					if c.Type == corev1.PodScheduled && c.Reason == corev1.PodReasonUnschedulable {
						return true
					}
				}
			}
			return false
		})
	if output, code := w.Explain("jobset/late"); code != 0 || !strings.Contains(output, "new nodes") {
		t.Errorf("explain exited with code %d, want 0 and \"new nodes\" in the output:\n%s", code, output)
	}
	w.node("late", "r0", allocatableWith(late, 4))
	w.untilRunning("late", 1)
}
