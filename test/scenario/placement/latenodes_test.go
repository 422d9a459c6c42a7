package placement

import (
	"strings"
	"testing"

	"github.com/musterhq/muster/test/scenario/harness"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestNodesThatAreAddedLater: with an autoscaler in the cluster, what no node that is there could ever hold is admitted
// by quota alone, and explain says for what it waits.
func TestNodesThatAreAddedLater(t *testing.T) {
	w := newSerialWorld(t)
	w.Shared(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "cluster-autoscaler-status"}})
	late := corev1.ResourceName("example.com/late-" + w.Namespace)
	w.Create(w.jobSetRequesting("late", late, 3))
	wl := w.UntilWorkloadOf("late", "is admitted", admitted)
	if places := harness.PlacesOf(wl); len(places) != 0 {
		t.Errorf("it has places on %v", places)
	}
	harness.Until(w.World, &corev1.PodList{}, "its pod makes an autoscaler act", func(list *corev1.PodList) bool {
		for _, pod := range list.Items {
			for _, c := range pod.Status.Conditions {
				if c.Type == corev1.PodScheduled && c.Reason == corev1.PodReasonUnschedulable {
					return true
				}
			}
		}
		return false
	})
	if said, code := w.Explain("jobset/late"); code != 0 || !strings.Contains(said, "new nodes") {
		t.Errorf("explain ends with %d and says:\n%s", code, said)
	}
	w.node("late", "r0", allocatableWith(late, 4))
	w.untilRunning("late", 1)
}
