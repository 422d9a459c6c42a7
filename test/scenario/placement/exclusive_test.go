package placement

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/test/scenario/harness"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
)

// TestJobsGoToTheNodesThatUsersReserveForThem: of one replicated job, which asks for that. They wait for these nodes,
// and the pods of the other stay away from them.
func TestJobsGoToTheNodesThatUsersReserveForThem(t *testing.T) {
	w := newWorld(t)
	racks := [][]string{w.rackOf("r0", 2), w.rackOf("r1", 2), w.rackOf("r2", 2)}
	w.queue()
	js := w.gang("js", "q", 2, 8, time.Hour)
	free := js.Spec.ReplicatedJobs[0]
	kept := *free.DeepCopy()
	kept.Name, kept.Replicas = "kept", 2
	kept.Template.Annotations = map[string]string{jobset.ExclusiveKey: rack, jobset.NodeSelectorStrategyKey: "true"}
	js.Spec.ReplicatedJobs = []jobset.ReplicatedJob{kept, free}
	w.Create(js)
	w.UntilWorkloadOf("js", "waits for nodes that are kept for its Jobs", func(wl *kueue.Workload) bool {
		c := meta.FindStatusCondition(wl.Status.Conditions, kueue.WorkloadQuotaReserved)
		return c != nil && strings.Contains(c.Message, fmt.Sprintf("excluded: label %q: 6", jobset.NamespacedJobKey))
	})
	for i := range 2 {
		for _, name := range racks[i] {
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
			w.Change(node, func() {
				node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: jobset.NoScheduleTaintKey, Value: "true", Effect: corev1.TaintEffectNoSchedule})
				node.Labels[jobset.NamespacedJobKey] = fmt.Sprintf("%s_js-kept-%d", w.Namespace, i)
			})
		}
	}
	for i, job := range []string{"js-kept-0", "js-kept-1", "js-workers-0"} {
		pods := w.untilRunning(job, 2)
		on := nodesOf(pods)
		if on[racks[i][0]] != 1 || on[racks[i][1]] != 1 {
			t.Errorf("%s runs on %v, want one pod on each of %v", job, on, racks[i])
		}
		for name, pod := range pods {
			if len(pod.Spec.SchedulingGates) > 0 || pod.Spec.NodeSelector[corev1.LabelHostname] != "" && i < 2 {
				t.Errorf("%s has the gates %v and selects %v", name, pod.Spec.SchedulingGates, pod.Spec.NodeSelector)
			}
		}
	}
	if places := harness.PlacesOf(w.UntilWorkloadOf("js", "is admitted", admitted)); len(places) == 0 {
		t.Error("nothing is taken of the nodes")
	}
}
