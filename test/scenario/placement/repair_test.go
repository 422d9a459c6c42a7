package placement

import (
	"maps"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/test/scenario/harness"
)

// TestANodeKilledUnderARunningGang checks that only the pods on a deleted node are replaced, on the spare node.
func TestANodeKilledUnderARunningGang(t *testing.T) {
	w := newWorld(t)
	w.rackOf("r0", 4)
	w.queue()
	w.Create(w.gang("a", "q", 5, 3, time.Hour)) // a node holds two of its pods, so it needs three nodes
	before := w.untilRunning("a", 5)
	wl := w.UntilWorkloadOf("a", "is admitted", admitted)
	if !maps.Equal(harness.PlacesOf(wl), nodesOf(before)) || len(harness.PlacesOf(wl)) != 3 {
		t.Fatalf("pods per node = %v, want them at the job's places, on 3 nodes: %s", nodesOf(before), w.State())
	}
	dead := firstNode(harness.PlacesOf(wl))
	w.Delete(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: dead}})
	moved := w.UntilWorkloadOf("a", "has no place on the dead node",
		func(wl *kueue.Workload) bool { return harness.PlacesOf(wl)[dead] == 0 })
	if meta.IsStatusConditionTrue(moved.Status.Conditions, kueue.WorkloadEvicted) || len(harness.PlacesOf(moved)) != 3 {
		t.Fatalf("places = %v, want 3 nodes without an eviction: %s", harness.PlacesOf(moved), w.State())
	}
	w.untilRunningOn("a", harness.PlacesOf(moved))
	w.expectKept(before, w.untilRunning("a", 5), onNode(dead))
}

// TestANodeThatIsNotReadyIsLostAfterItsGrace checks that the pods on a node that stays not ready are replaced, like
// those on a deleted one.
func TestANodeThatIsNotReadyIsLostAfterItsGrace(t *testing.T) {
	w := newWorld(t)
	w.rackOf("r0", 4)
	w.queue()
	w.Create(w.gang("a", "q", 5, 3, time.Hour))
	w.untilRunning("a", 5)
	silent := firstNode(harness.PlacesOf(w.UntilWorkloadOf("a", "is admitted", admitted)))
	w.setReadyUnknown(silent)
	moved := w.UntilWorkloadOf("a", "has no place on the silent node",
		func(wl *kueue.Workload) bool { return harness.PlacesOf(wl)[silent] == 0 && admitted(wl) })
	w.untilRunningOn("a", harness.PlacesOf(moved))
}

// TestAGangThatCannotBeRepairedIsEvictedAndAdmittedFirst checks that a gang is evicted if no node has capacity for its
// pods on a deleted node, and that it is admitted again before a waiting gang that was created later.
func TestAGangThatCannotBeRepairedIsEvictedAndAdmittedFirst(t *testing.T) {
	w := newWorld(t)
	w.rackOf("r0", 3)
	w.queue()
	w.Create(w.gang("a", "q", 5, 3, time.Hour))
	w.untilRunning("a", 5)
	w.Create(w.gang("b", "q", 5, 3, time.Hour))
	w.UntilWorkloadOf("b", "waits", func(wl *kueue.Workload) bool {
		return meta.IsStatusConditionFalse(wl.Status.Conditions, kueue.WorkloadQuotaReserved)
	})
	wl := w.UntilWorkloadOf("a", "is admitted", admitted)
	dead := firstNode(harness.PlacesOf(wl))
	w.Delete(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: dead}})
	w.untilEvictedFor("a", dead)
	w.node("late", "r0", allocatable(8), simulated)
	w.untilRunning("a", 5)
	w.expectWaiting("b")
}

// TestAGangOfHigherPriorityReplacesALostNodeByPreemption checks that only the pods on a deleted node are replaced, on
// the node of a job of lower priority that is preempted for them.
func TestAGangOfHigherPriorityReplacesALostNodeByPreemption(t *testing.T) {
	w := newWorld(t)
	w.rackOf("r0", 4)
	w.queue()
	q := &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace}}
	w.Change(q, func() {
		q.Spec.Preemption = &kueue.ClusterQueuePreemption{WithinClusterQueue: kueue.PreemptionPolicyLowerPriority}
	})
	w.Shared(&kueue.WorkloadPriorityClass{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace}, Value: 100})
	urgent := w.gang("urgent", "q", 5, 3, time.Hour) // a node holds two of its pods, so it needs three nodes
	urgent.Labels[kueue.WorkloadPriorityClassLabel] = w.Namespace
	w.Create(urgent)
	before := w.untilRunning("urgent", 5)
	w.Create(w.gang("low", "q", 1, 8, time.Hour))
	low := w.untilRunning("low", 1)
	dead := firstNode(nodesOf(before))
	w.Delete(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: dead}})
	want := nodesOf(before)
	want[firstNode(nodesOf(low))] = want[dead]
	delete(want, dead)
	w.untilRunningOn("urgent", want)
	w.expectKept(before, w.untilRunning("urgent", 5), onNode(dead))
	evicted := meta.FindStatusCondition(w.UntilWorkloadOf("low", "waits",
		func(wl *kueue.Workload) bool { return !admitted(wl) }).Status.Conditions, kueue.WorkloadEvicted)
	if evicted == nil || evicted.Reason != kueue.WorkloadEvictedByPreemption {
		t.Errorf("condition Evicted of the Workload of low = %+v, want reason %s", evicted, kueue.WorkloadEvictedByPreemption)
	}
	wl := w.UntilWorkloadOf("urgent", "is admitted", admitted)
	if evicted := meta.FindStatusCondition(wl.Status.Conditions, kueue.WorkloadEvicted); evicted != nil {
		t.Errorf("condition Evicted of the Workload of urgent = %+v, want none", evicted)
	}
}

// TestForeignPodsTakeTheCapacityBetweenAdmissionAndBinding checks that a gang gets other places if a pod without a
// queue fills one of its nodes before its pods are created.
func TestForeignPodsTakeTheCapacityBetweenAdmissionAndBinding(t *testing.T) {
	w := newWorld(t)
	w.rackOf("r0", 4)
	w.queue()
	block := w.blockPods()
	w.Create(w.gang("a", "q", 5, 3, time.Hour))
	wl := w.UntilWorkloadOf("a", "is admitted", admitted)
	occupied := firstNode(harness.PlacesOf(wl))
	w.Shared(w.podOn(w.Namespace+"-other", occupied, 8))
	moved := w.UntilWorkloadOf("a", "has no place on the full node",
		func(wl *kueue.Workload) bool { return admitted(wl) && harness.PlacesOf(wl)[occupied] == 0 })
	block.release()
	w.untilRunningOn("a", harness.PlacesOf(moved))
}

// antiAffinityToJobSets returns an affinity that keeps the pods of JobSets in these namespaces, or else in the pod's
// own, off the node of the pod that has it.
func antiAffinityToJobSets(namespaces ...string) *corev1.Affinity {
	return &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			TopologyKey: corev1.LabelHostname, Namespaces: namespaces,
			LabelSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
				{Key: "jobset.sigs.k8s.io/jobset-name", Operator: metav1.LabelSelectorOpExists}}}}}}}
}

// TestConstraintsOnlyKubeSchedulerKnows checks that a job gets another node if kube-scheduler rejects its first one.
// The reason is the anti-affinity of a pod on that node, which Muster does not consider.
func TestConstraintsOnlyKubeSchedulerKnows(t *testing.T) {
	w := newWorld(t)
	nodes := w.rackOf("r0", 2)
	w.queue()
	hermit := w.podOn("hermit", nodes[0], 2) // a single pod gets the fullest node on which it fits
	hermit.Namespace = w.Namespace
	hermit.Spec.Affinity = antiAffinityToJobSets()
	w.Create(hermit)
	w.untilRunning("hermit", 1)
	w.Create(w.gang("a", "q", 1, 4, time.Hour))
	w.untilUnschedulable("anti-affinity")
	w.UntilWorkloadOf("a", "is placed on the other node",
		func(wl *kueue.Workload) bool { return harness.PlacesOf(wl)[nodes[1]] == 1 })
	if on := nodesOf(w.untilRunning("a", 1)); on[nodes[1]] != 1 {
		t.Errorf("pods of a per node = %v, want 1 on %s", on, nodes[1])
	}
}

// setReadyUnknown sets the Ready condition of the node to Unknown, as for a node whose kubelet no longer reports.
func (w *world) setReadyUnknown(name string) {
	w.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	w.Get(node)
	before := node.DeepCopy()
	for i := range node.Status.Conditions {
		if c := &node.Status.Conditions[i]; c.Type == corev1.NodeReady {
			c.Status, c.Reason, c.LastTransitionTime = corev1.ConditionUnknown, "NodeStatusUnknown", metav1.Now()
		}
	}
	if err := w.Client.Status().Patch(w.Context(), node, client.StrategicMergeFrom(before)); err != nil {
		w.Fatal(err)
	}
}

// TestPodsThatKubeSchedulerPreemptsAreReplacedElsewhere checks that only the pods that kube-scheduler preempts are
// replaced, on another node. The preemptor is a pod without a queue, with a higher priority.
func TestPodsThatKubeSchedulerPreemptsAreReplacedElsewhere(t *testing.T) {
	w := newWorld(t)
	w.rackOf("r0", 4)
	w.queue()
	w.Create(w.gang("a", "q", 5, 3, time.Hour)) // a node holds two of its pods, so one node is spare
	before := w.untilRunning("a", 5)
	wl := w.UntilWorkloadOf("a", "is admitted", admitted)
	occupied := firstNode(harness.PlacesOf(wl))
	w.Shared(&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace}, Value: 1000})
	urgent := w.podOn(w.Namespace+"-urgent", "", 8)
	urgent.Spec.PriorityClassName = w.Namespace
	urgent.Spec.NodeSelector = map[string]string{corev1.LabelHostname: occupied}
	w.Shared(urgent)
	moved := w.UntilWorkloadOf("a", "has no place on the preemptor's node", func(wl *kueue.Workload) bool {
		return harness.PlacesOf(wl)[occupied] == 0 && admitted(wl)
	})
	w.untilRunningOn("a", harness.PlacesOf(moved))
	w.expectKept(before, w.untilRunning("a", 5), onNode(occupied))
}
