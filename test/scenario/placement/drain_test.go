package placement

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/test/scenario/harness"
)

// gangInOneRack returns a gang that requires one rack for all of its pods, which run for an hour.
func (w *world) gangInOneRack(name string, pods int32, gpus int64) *jobset.JobSet {
	js := w.gang(name, "q", pods, gpus, time.Hour)
	js.Spec.ReplicatedJobs[0].Template.Spec.Template.Annotations[kueue.PodSetRequiredTopologyAnnotation] = rack
	return js
}

// untilStarted waits until that many pods of the gang run, and returns them by name, and one of their nodes.
func (w *world) untilStarted(name string, pods int) (before map[string]corev1.Pod, node string) {
	w.Helper()
	before = w.untilRunning(name, pods)
	return before, firstNode(nodesOf(before))
}

// startGangInRacks creates racks of that many nodes each and starts the gang a in one of them. A node that holds two of
// its pods is not full: the pod template of a gang that fills its nodes names them, and such a gang restarts instead of
// having single pods replaced. before and node are the results of untilStarted.
func startGangInRacks(t *testing.T, racks, nodes int,
	pods int32) (w *world, before map[string]corev1.Pod, node string) {
	w = newWorld(t)
	for i := range racks {
		w.rackOf(fmt.Sprintf("r%d", i), nodes)
	}
	w.queue()
	w.Create(w.gangInOneRack("a", pods, 3))
	before, node = w.untilStarted("a", int(pods))
	return w, before, node
}

// drain does what kubectl drain does: it cordons the node and evicts those of the pods that are on it.
func (w *world) drain(node string, pods map[string]corev1.Pod) {
	w.Helper()
	w.cordon(node)
	for _, pod := range pods {
		if pod.Spec.NodeName != node {
			continue
		}
		if err := w.Client.SubResource("eviction").Create(w.Context(), &pod,
			&policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: pod.Name, Namespace: pod.Namespace}}); err != nil {
			w.Fatal(err)
		}
	}
}

// cordon cordons the node and waits until the operator has observed it, so that later decisions give no places there.
// To find out, it creates Workloads that select the node until one waits with a message that says that the node is
// cordoned.
func (w *world) cordon(name string) {
	w.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	w.Change(node, func() { node.Spec.Unschedulable = true })
	for i := 0; ; i++ {
		probe := w.Workload(fmt.Sprintf("probe-of-%s-%d", name, i), "q")
		pod := &probe.Spec.PodSets[0].Template.Spec
		pod.NodeSelector = map[string]string{corev1.LabelHostname: name}
		tooMany := corev1.ResourceList{gpu: resource.MustParse("99")} // so that it gets no place in any case
		pod.Containers[0].Resources = corev1.ResourceRequirements{Requests: tooMany, Limits: tooMany}
		w.Create(probe)
		rejected := w.UntilWorkload(probe.Name, "waits for nodes", harness.Waits("ExceedsNodes", ""))
		w.Delete(probe)
		if strings.Contains(meta.FindStatusCondition(rejected.Status.Conditions,
			kueue.WorkloadQuotaReserved).Message, "cordoned") {
			return
		}
	}
}

// expectKept checks that of the pods in before exactly those for which replaced is false are in after too.
func (w *world) expectKept(before, after map[string]corev1.Pod, replaced func(corev1.Pod) bool) {
	w.Helper()
	for name, pod := range before {
		if want, got := !replaced(pod), after[name].UID == pod.UID; got != want {
			w.Errorf("pod %s, which was on node %s, was kept: %t, want %t", name, pod.Spec.NodeName, got, want)
		}
	}
}

// onNode returns a condition for expectKept that holds for the pods on a node.
func onNode(node string) func(corev1.Pod) bool {
	return func(pod corev1.Pod) bool { return pod.Spec.NodeName == node }
}

// withName returns a condition for expectKept that holds for the pod of this name.
func withName(name string) func(corev1.Pod) bool {
	return func(pod corev1.Pod) bool { return pod.Name == name }
}

// TestADrainedNode checks that the pods evicted by a drain are replaced in the same rack, and that the others are kept.
func TestADrainedNode(t *testing.T) {
	w, before, node := startGangInRacks(t, 2, 4, 5)
	w.drain(node, before)
	moved := w.UntilWorkloadOf("a", "has no place on the drained node",
		func(wl *kueue.Workload) bool { return harness.PlacesOf(wl)[node] == 0 })
	if meta.IsStatusConditionTrue(moved.Status.Conditions, kueue.WorkloadEvicted) {
		t.Fatalf("the gang was evicted, want only its pods on the drained node replaced: %s", w.State())
	}
	w.untilRunningOn("a", harness.PlacesOf(moved))
	w.expectKept(before, w.untilRunning("a", 5), onNode(node))
	w.expectOneRack(harness.PlacesOf(moved))
}

// expectOneRack checks that all places are in one rack.
func (w *world) expectOneRack(places map[string]int32) {
	w.Helper()
	racks := map[string]bool{}
	for name := range places {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
		w.Get(node)
		racks[node.Labels[rack]] = true
	}
	if len(racks) != 1 {
		w.Errorf("the places are in the racks %v, want one rack", slices.Sorted(maps.Keys(racks)))
	}
}

// TestADrainThatLeavesTooLittleCapacity checks that a gang is evicted if the rest of its required rack has no capacity
// for the evicted pods, and that it is admitted again before a waiting gang that was created later.
func TestADrainThatLeavesTooLittleCapacity(t *testing.T) {
	w, before, node := startGangInRacks(t, 1, 3, 5)
	w.Create(w.gangInOneRack("b", 5, 3))
	w.UntilWorkloadOf("b", "waits", func(wl *kueue.Workload) bool {
		return meta.IsStatusConditionFalse(wl.Status.Conditions, kueue.WorkloadQuotaReserved)
	})
	w.drain(node, before)
	w.untilEvictedFor("a", node)
	w.node("late", "r0", allocatable(8), simulated)
	w.untilRunning("a", 5)
	w.expectWaiting("b")
}

// untilEvictedFor waits until the job is evicted and requeued because of the failed node, and checks that the condition
// Evicted names the node.
func (w *world) untilEvictedFor(job, node string) {
	w.Helper()
	evicted := w.UntilWorkloadOf(job, "is requeued after its eviction", func(wl *kueue.Workload) bool {
		requeued := meta.FindStatusCondition(wl.Status.Conditions, kueue.WorkloadRequeued)
		return requeued != nil && requeued.Status == metav1.ConditionTrue &&
			requeued.Reason == kueue.WorkloadEvictedDueToNodeFailures && wl.Status.Admission == nil
	})
	if why := meta.FindStatusCondition(evicted.Status.Conditions, kueue.WorkloadEvicted); why == nil ||
		why.Reason != kueue.WorkloadEvictedDueToNodeFailures || !strings.Contains(why.Message, node) {
		w.Errorf("condition Evicted = %+v, want reason %s and node %s in the message", why,
			kueue.WorkloadEvictedDueToNodeFailures, node)
	}
}

// expectWaiting checks that the job has no quota now.
func (w *world) expectWaiting(job string) {
	w.Helper()
	wl := w.UntilWorkloadOf(job, "exists", func(*kueue.Workload) bool { return true })
	if wl.Status.Admission != nil {
		w.Errorf("%s has quota, want it to wait behind the job that was created before it: %s", job, w.State())
	}
}

// loseDevices lowers the node's allocatable GPUs to the remaining ones, as a device plugin does when devices fail, and
// deletes and returns one of the pods on the node.
func (w *world) loseDevices(name string, remaining int64, pods map[string]corev1.Pod) (broken corev1.Pod) {
	w.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	w.Get(node)
	before := node.DeepCopy()
	node.Status.Allocatable[gpu] = *resource.NewQuantity(remaining, resource.DecimalSI)
	if err := w.Client.Status().Patch(w.Context(), node, client.MergeFrom(before)); err != nil {
		w.Fatal(err)
	}
	for _, pod := range slices.Sorted(maps.Keys(pods)) {
		if pods[pod].Spec.NodeName == name {
			broken = pods[pod]
		}
	}
	w.Delete(&broken) // its program fails without its device
	return broken
}

// TestANodeThatLosesDevices checks that the pod whose device failed is replaced on another node of the rack, and that
// the other pod on its node is kept.
func TestANodeThatLosesDevices(t *testing.T) {
	w, before, _ := startGangInRacks(t, 2, 4, 5)
	node := ""
	for name, pods := range nodesOf(before) {
		if pods == 2 {
			node = name
		}
	}
	broken := w.loseDevices(node, 3, before)
	moved := w.UntilWorkloadOf("a", "has one place on the node",
		func(wl *kueue.Workload) bool { return harness.PlacesOf(wl)[node] == 1 })
	w.untilRunningOn("a", harness.PlacesOf(moved))
	w.expectKept(before, w.untilRunning("a", 5), withName(broken.Name))
	w.expectOneRack(harness.PlacesOf(moved))
}

// TestLostDevicesWithoutAReplacement checks that a gang is evicted if its required rack has no other capacity for the
// pod whose device failed, and that it is admitted again before a waiting gang that was created later.
func TestLostDevicesWithoutAReplacement(t *testing.T) {
	w, before, node := startGangInRacks(t, 1, 3, 6)
	w.Create(w.gangInOneRack("b", 6, 3))
	w.loseDevices(node, 3, before)
	w.untilEvictedFor("a", node)
	w.node("late", "r0", allocatable(8), simulated)
	w.untilRunning("a", 6)
	w.expectWaiting("b")
}

// TestANodeThatStopsReporting checks what happens when a kubelet stops, and the node lifecycle controller taints its
// node: the pods there are deleted, but keep terminating because no kubelet ends them, and their replacements run
// elsewhere.
func TestANodeThatStopsReporting(t *testing.T) {
	w, before, silent := startGangInRacks(t, 1, 4, 5)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: silent}}
	w.Change(node, func() { delete(node.Labels, simulated.Key) }) // its pods are no longer simulated
	w.setReadyUnknown(silent)
	harness.UntilOne(w.World.Everywhere(), &corev1.NodeList{}, silent, "is tainted as unreachable",
		func(node *corev1.Node) bool {
			return slices.ContainsFunc(node.Spec.Taints, func(taint corev1.Taint) bool {
				return taint.Key == corev1.TaintNodeUnreachable && taint.Effect == corev1.TaintEffectNoExecute
			})
		})
	moved := w.UntilWorkloadOf("a", "has no place on the silent node",
		func(wl *kueue.Workload) bool { return harness.PlacesOf(wl)[silent] == 0 && admitted(wl) })
	w.untilRunningOn("a", harness.PlacesOf(moved))
	w.expectKept(before, w.untilRunning("a", 5), onNode(silent))
	terminating := 0
	for _, pod := range w.pods() {
		if pod.Spec.NodeName == silent && pod.DeletionTimestamp != nil {
			terminating++
		}
	}
	if want := int(nodesOf(before)[silent]); terminating != want {
		t.Errorf("%d pods are terminating on the silent node, want %d, none deleted by force: %s",
			terminating, want, w.State())
	}
}

// TestNoPodIsEvictedForAPodOfAnotherJob checks that when two Jobs of a JobSet share a cordoned node and a pod of the
// first is deleted there, the pods of the second are kept.
func TestNoPodIsEvictedForAPodOfAnotherJob(t *testing.T) {
	w := newWorld(t)
	w.rackOf("r0", 4)
	w.queue()
	js := w.gangInOneRack("a", 3, 4) // a node holds two pods, so the Jobs share one of three nodes
	js.Spec.ReplicatedJobs[0].Replicas = 2
	w.Create(js)
	before := w.untilRunning("a", 6)
	shared, first := "", ""
	for node := range nodesOf(before) {
		jobs := map[string]string{}
		for _, name := range slices.Sorted(maps.Keys(before)) {
			if pod := before[name]; pod.Spec.NodeName == node {
				jobs[pod.Labels[jobset.JobIndexKey]] = name
			}
		}
		if len(jobs) == 2 {
			shared, first = node, jobs["0"]
		}
	}
	if shared == "" {
		t.Fatalf("the Jobs share no node, want one: %s", w.State())
	}
	w.cordon(shared)
	missing := before[first]
	w.Delete(&missing)
	moved := w.UntilWorkloadOf("a", "has one place fewer on the cordoned node", func(wl *kueue.Workload) bool {
		return harness.PlacesOf(wl)[shared] == nodesOf(before)[shared]-1
	})
	w.untilRunningOn("a", harness.PlacesOf(moved))
	w.expectKept(before, w.untilRunning("a", 6), withName(first))
}
