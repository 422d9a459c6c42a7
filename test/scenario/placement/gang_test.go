package placement

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/musterhq/muster/test/scenario/harness"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
)

// TestGangsThatFitAloneButNotTogether checks that the second of two gangs has no pods until the first is deleted:
// neither runs in part.
func TestGangsThatFitAloneButNotTogether(t *testing.T) {
	w := newWorld(t)
	w.rackOf("r0", 3)
	w.queue()
	w.Create(w.gang("a", "q", 4, 4, time.Hour))
	w.untilRunning("a", 4) // Of two jobs created within a second, either may be admitted first.
	w.Create(w.gang("b", "q", 4, 4, time.Second))
	// The quota is enough for both gangs, but the nodes are enough for only six of the eight pods.
	waiting := w.UntilWorkloadOf("b", "waits for nodes", func(wl *kueue.Workload) bool {
		reserved := meta.FindStatusCondition(wl.Status.Conditions, kueue.WorkloadQuotaReserved)
		return reserved != nil && reserved.Reason == kueue.WorkloadTopologyPlacementFailed
	})
	t.Log(meta.FindStatusCondition(waiting.Status.Conditions, kueue.WorkloadQuotaReserved).Message)
	if pods := w.pods(); len(pods) != 4 {
		t.Errorf("the namespace has %d pods, want only the 4 of a", len(pods))
	}
	w.Delete(w.gang("a", "q", 4, 4, 0))
	w.untilCompleted("b")
}

// TestPodsWithoutRanksShareTheirNodes checks that each pod of a Job that is not indexed and does not fill its nodes
// gets a place, while the Job controller still creates others, and that no pod has to be replaced.
func TestPodsWithoutRanksShareTheirNodes(t *testing.T) {
	w := newWorld(t)
	w.rackOf("r0", 8)
	w.queue()
	job := w.Job("a", "q", 60)
	job.Spec.BackoffLimit = ptr.To[int32](0) // the Job fails if a pod does
	job.Spec.Template.Annotations = map[string]string{"muster.dev/sim-duration": time.Hour.String()}
	one := corev1.ResourceList{gpu: resource.MustParse("1")}
	job.Spec.Template.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: one, Limits: one}
	w.Create(job)
	// One watch collects both the created and the running pods: a second one could lag behind.
	created, running := map[string]bool{}, map[string]corev1.Pod{}
	w.UntilPods("60 pods are running", func(pods map[string]corev1.Pod) bool {
		clear(running)
		for name, pod := range pods {
			created[name] = true
			if pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil {
				running[name] = pod
			}
		}
		return len(running) == 60
	})
	wl := w.UntilWorkloadOf("a", "is admitted", admitted)
	if want, got := harness.PlacesOf(wl), nodesOf(running); !maps.Equal(want, got) {
		t.Errorf("pods per node = %v, want them at the job's places %v", got, want)
	}
	maps.DeleteFunc(created, func(name string, _ bool) bool { return running[name].Name != "" })
	if len(created) > 0 {
		t.Errorf("pods %v were created but do not run, want no pod replaced", slices.Sorted(maps.Keys(created)))
	}
}

// TestACordonBetweenAdmissionAndBinding checks that a gang gets other places if one of its nodes is cordoned after its
// admission and before its pods are created.
func TestACordonBetweenAdmissionAndBinding(t *testing.T) {
	w := newWorld(t)
	w.rackOf("r0", 4)
	w.queue()
	block := w.blockPods()
	w.Create(w.gang("a", "q", 5, 3, time.Hour))
	wl := w.UntilWorkloadOf("a", "is admitted", admitted)
	cordoned := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: firstNode(harness.PlacesOf(wl))}}
	w.Change(cordoned, func() { cordoned.Spec.Unschedulable = true })
	block.release()
	moved := w.UntilWorkloadOf("a", "has no place on the cordoned node",
		func(wl *kueue.Workload) bool { return admitted(wl) && harness.PlacesOf(wl)[cordoned.Name] == 0 })
	w.untilRunningOn("a", harness.PlacesOf(moved))
}

// TestACordonUnderARunningGangMovesNoPod checks that a gang completes with its original pods although all of its nodes
// are cordoned.
func TestACordonUnderARunningGangMovesNoPod(t *testing.T) {
	w := newWorld(t)
	w.rackOf("r0", 4)
	w.queue()
	w.Create(w.gang("a", "q", 5, 3, time.Hour))
	before := w.untilRunning("a", 5)
	for node := range nodesOf(before) {
		w.cordon(node)
	}
	for _, pod := range before {
		w.EndPod(pod, 0)
	}
	w.untilCompleted("a")
	if pods := w.pods(); len(pods) != 5 {
		t.Errorf("the namespace has %d pods, want 5, none replaced: %s", len(pods), w.State())
	}
}

// untilRunningOn waits until the JobSet has exactly as many running pods on each node as places has.
func (w *world) untilRunningOn(job string, places map[string]int32) {
	w.Helper()
	harness.Until(w.World, &corev1.PodList{}, "the pods of "+job+" are running at their places",
		func(list *corev1.PodList) bool {
			on := map[string]int32{}
			for _, pod := range list.Items {
				if pod.Labels["jobset.sigs.k8s.io/jobset-name"] == job && pod.DeletionTimestamp == nil &&
					pod.Status.Phase == corev1.PodRunning {
					on[pod.Spec.NodeName]++
				}
			}
			return maps.Equal(on, places)
		})
}

// podBlock is a ResourceQuota that prevents the creation of pods in the test's namespace.
type podBlock struct {
	*world
	quota *corev1.ResourceQuota
}

// blockPods prevents the creation of pods until release is called.
func (w *world) blockPods() *podBlock {
	w.Helper()
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "none", Namespace: w.Namespace},
		Spec: corev1.ResourceQuotaSpec{
			Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}}}
	w.Create(quota)
	return &podBlock{w, quota}
}

// release allows pods again.
func (p *podBlock) release() {
	p.Helper()
	p.Delete(p.quota)
}
