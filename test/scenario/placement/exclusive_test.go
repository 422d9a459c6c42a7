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

// TestJobsGoToTheNodesThatUsersReserveForThem checks a JobSet with two replicated jobs, one of which uses JobSet's node
// selector strategy: users label and taint the nodes of a rack for each of its Jobs. The JobSet waits for these nodes.
// Then each of these Jobs runs on the nodes with its label, and the other replicated job on the nodes without a label.
func TestJobsGoToTheNodesThatUsersReserveForThem(t *testing.T) {
	w := newWorld(t)
	racks := [][]string{w.rackOf("r0", 2), w.rackOf("r1", 2), w.rackOf("r2", 2)}
	w.queue()
	js := w.gang("js", "q", 2, 8, time.Hour)
	free := js.Spec.ReplicatedJobs[0]
	exclusive := *free.DeepCopy()
	exclusive.Name, exclusive.Replicas = "exclusive", 2
	exclusive.Template.Annotations = map[string]string{jobset.ExclusiveKey: rack, jobset.NodeSelectorStrategyKey: "true"}
	js.Spec.ReplicatedJobs = []jobset.ReplicatedJob{exclusive, free}
	w.Create(js)
	w.UntilWorkloadOf("js", "waits for nodes with the labels of its Jobs", func(wl *kueue.Workload) bool {
		c := meta.FindStatusCondition(wl.Status.Conditions, kueue.WorkloadQuotaReserved)
		return c != nil && strings.Contains(c.Message, fmt.Sprintf("excluded: label %q: 6", jobset.NamespacedJobKey))
	})
	for i := range 2 {
		for _, name := range racks[i] {
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
			w.Change(node, func() {
				node.Spec.Taints = append(node.Spec.Taints,
					corev1.Taint{Key: jobset.NoScheduleTaintKey, Value: "true", Effect: corev1.TaintEffectNoSchedule})
				node.Labels[jobset.NamespacedJobKey] = fmt.Sprintf("%s_js-exclusive-%d", w.Namespace, i)
			})
		}
	}
	for i, job := range []string{"js-exclusive-0", "js-exclusive-1", "js-workers-0"} {
		pods := w.untilRunning(job, 2)
		on := nodesOf(pods)
		if on[racks[i][0]] != 1 || on[racks[i][1]] != 1 {
			t.Errorf("pods of %s per node = %v, want one on each of %v", job, on, racks[i])
		}
		for name, pod := range pods {
			if len(pod.Spec.SchedulingGates) > 0 || pod.Spec.NodeSelector[corev1.LabelHostname] != "" && i < 2 {
				t.Errorf("pod %s has the scheduling gates %v and the node selector %v, want no gate, and no host name unless it is of workers",
					name, pod.Spec.SchedulingGates, pod.Spec.NodeSelector)
			}
		}
	}
	if places := harness.PlacesOf(w.UntilWorkloadOf("js", "is admitted", admitted)); len(places) == 0 {
		t.Error("the Workload has no places, want places that account for its pods")
	}
}
