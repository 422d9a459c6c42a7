package placement

import (
	"context"
	"os/exec"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestNodesThatComeLate: with an autoscaler in the cluster, what no node that is there could ever hold is admitted by quota
// alone, and explain says for what it waits.
func TestNodesThatComeLate(t *testing.T) {
	w := newWorld(t)
	w.shared(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "cluster-autoscaler-status"}})
	late := corev1.ResourceName("example.com/late-" + w.namespace)
	w.create(w.asking("late", late, 3))
	wl := w.untilWorkload("late", "is admitted", admitted)
	if places := placesOf(wl); len(places) != 0 {
		t.Errorf("it has places on %v", places)
	}
	until(w, &corev1.PodList{}, "its pod makes an autoscaler act", func(list *corev1.PodList) bool {
		for _, pod := range list.Items {
			for _, c := range pod.Status.Conditions {
				if c.Type == corev1.PodScheduled && c.Reason == corev1.PodReasonUnschedulable {
					return true
				}
			}
		}
		return false
	})
	if said := w.explain("late"); !strings.Contains(said, "new nodes") {
		t.Errorf("explain says:\n%s", said)
	}
	w.node("late", "r0", with(late, 4))
	w.untilRunning("late", 1)
}

// explain is what the command line says of the JobSet.
func (w *world) explain(name string) string {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), patience)
	defer cancel()
	command := exec.CommandContext(ctx, "../../../bin/muster", "explain", "jobset/"+name, "-n", w.namespace, "--kubeconfig", w.cluster.Kubeconfig)
	said, err := command.CombinedOutput()
	if err != nil {
		w.Fatalf("explain: %v\n%s", err, said)
	}
	return string(said)
}
