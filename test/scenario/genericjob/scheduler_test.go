package genericjob

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	tensorstack "github.com/musterhq/muster/api/tensorstack/v1beta1"
	"github.com/musterhq/muster/test/scenario/harness"
)

var t9kPodGroup = schema.GroupVersionKind{Group: "scheduler.tensorstack.dev", Version: "v1beta1", Kind: "PodGroup"}

// podGroups returns the CRD of t9k-scheduler's PodGroups. The operator takes its presence as a sign that this scheduler
// is installed.
func podGroups() *unstructured.Unstructured {
	return harness.ForeignKind(t9kPodGroup.Group, t9kPodGroup.Version, t9kPodGroup.Kind, "podgroups")
}

// listOf returns an empty list of the kind.
func listOf(kind schema.GroupVersionKind) *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{}
	kind.Kind += "List"
	list.SetGroupVersionKind(kind)
	return list
}

// untilScheduler waits until the pod template in the Workload of the job has this scheduler name.
func (w *world) untilScheduler(job, scheduler string) {
	w.Helper()
	w.UntilWorkloadOf(job, fmt.Sprintf("has the scheduler name %q", scheduler), func(wl *kueue.Workload) bool {
		return wl.Spec.PodSets[0].Template.Spec.SchedulerName == scheduler
	})
}

// TestAGangUsesT9kSchedulerWhereInstalled: while t9k-scheduler is installed, the pods of a gang name it as their
// scheduler and belong to a PodGroup, which is recreated if it is deleted. When t9k-scheduler is uninstalled, a gang
// that waits falls back to the default scheduler.
func TestAGangUsesT9kSchedulerWhereInstalled(t *testing.T) {
	w := newWorld(t)
	w.queue(3)
	w.annotateQueue(w.Namespace, "muster.dev/closed", "true") // no pods before the operator has observed the scheduler
	definition := podGroups()
	w.Shared(definition)
	w.Create(w.job("gang", with("master", 1, 0), with("worker", 2, 1), inQueue(70)))
	w.untilScheduler("gang", tensorstack.T9kSchedulerName)
	w.annotateQueue(w.Namespace, "muster.dev/closed", "false")
	group := harness.UntilOne(w.World, listOf(t9kPodGroup), "gang", "exists as a PodGroup",
		func(*unstructured.Unstructured) bool { return true })
	spec := group.Object["spec"].(map[string]any)
	if spec["minMember"] != int64(3) || spec["queue"] != "q" || spec["priority"] != int64(70) {
		t.Errorf("spec of the PodGroup = %v, want minMember 3, queue q and priority 70", spec)
	}
	w.bindSimulated("gang-master-0")
	w.bindSimulated("gang-worker-0")
	w.bindSimulated("gang-worker-1")
	w.untilPhase("gang", tensorstack.JobPhaseRunning)

	// A restarted replica uses it too, although the PodGroup was deleted in the meantime.
	w.Delete(group)
	w.EndReplica("gang-worker-1", 0, 1)
	harness.UntilOne(w.World, listOf(t9kPodGroup), "gang", "exists as a new PodGroup",
		func(g *unstructured.Unstructured) bool { return g.GetUID() != group.GetUID() })
	w.bindSimulated("gang-worker-1")
	w.EndReplica("gang-worker-1", 1, 0)
	w.EndReplica("gang-worker-0", 0, 0)
	w.EndReplica("gang-master-0", 0, 0)
	w.untilPhase("gang", tensorstack.JobPhaseSucceeded)

	w.annotateQueue(w.Namespace, "muster.dev/closed", "true")
	w.Create(w.job("later", with("worker", 1, 0), inQueue(0)))
	w.untilScheduler("later", tensorstack.T9kSchedulerName)
	w.Delete(definition)
	w.untilScheduler("later", "")
	w.annotateQueue(w.Namespace, "muster.dev/closed", "false")
	w.untilPhase("later", tensorstack.JobPhaseRunning)
}

// bindSimulated acts as t9k-scheduler: it binds the pod to a simulated node.
func (w *world) bindSimulated(name string) {
	w.Helper()
	var nodes corev1.NodeList
	if err := w.Client.List(w.Context(), &nodes, client.MatchingLabels{"muster.dev/simulated": "true"}); err != nil {
		w.Fatal(err)
	}
	pod := w.bind(name, tensorstack.T9kSchedulerName, nodes.Items[0].Name)
	if group := pod.Labels[tensorstack.GroupNameLabel]; group != "gang" {
		w.Errorf("PodGroup of pod %s = %q, want gang", name, group)
	}
}

// bind waits until the pod needs a node from this scheduler, binds it to the node, and returns it.
func (w *world) bind(name, scheduler, node string) *corev1.Pod {
	w.Helper()
	var pod corev1.Pod
	w.UntilPods(name+" waits for the scheduler "+scheduler, func(pods map[string]corev1.Pod) bool {
		pod = pods[name]
		return pod.Name == name && pod.DeletionTimestamp == nil && pod.Spec.NodeName == "" &&
			pod.Spec.SchedulerName == scheduler
	})
	binding := &corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: node}}
	if err := w.Client.SubResource("binding").Create(w.Context(), &pod, binding); err != nil {
		w.Fatalf("binding %s to %s: %v", name, node, err)
	}
	return &pod
}
