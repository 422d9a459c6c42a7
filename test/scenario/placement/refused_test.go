package placement

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/test/scenario/harness"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
)

// untilUnschedulable waits until kube-scheduler reports a pod as unschedulable, with these words in the message.
func (w *world) untilUnschedulable(words string) {
	w.Helper()
	w.UntilPods(fmt.Sprintf("kube-scheduler reports %q of a pod", words), func(pods map[string]corev1.Pod) bool {
		return slices.ContainsFunc(slices.Collect(maps.Values(pods)), func(pod corev1.Pod) bool {
			return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
				return c.Type == corev1.PodScheduled && c.Reason == corev1.PodReasonUnschedulable &&
					strings.Contains(c.Message, words)
			})
		})
	})
}

// TestAPodWaitingForAClaimKeepsItsNode checks that a pod whose PersistentVolumeClaim does not exist yet keeps its node,
// because no other would be better, and that it runs there when the claim is created.
func TestAPodWaitingForAClaimKeepsItsNode(t *testing.T) {
	w := newWorld(t)
	w.rackOf("r0", 3)
	w.queue()
	a := w.gang("a", "q", 1, 8, time.Hour)
	a.Spec.ReplicatedJobs[0].Template.Spec.Template.Spec.Volumes = []corev1.Volume{{Name: "data",
		VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}
	w.Create(a)
	w.untilUnschedulable(`persistentvolumeclaim "data" not found`)
	before := w.UntilWorkloadOf("a", "is admitted", admitted)
	w.Create(w.gang("meanwhile", "q", 1, 8, 2*time.Second)) // runs longer than it takes until a refusal is believed
	w.untilCompleted("meanwhile")
	if output, code := w.Explain("jobset/a"); code != 0 || !strings.Contains(output, "claim data does not exist") {
		t.Errorf("explain exited with code %d, want 0 and the missing claim in the output:\n%s", code, output)
	}
	size := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	w.Shared(&corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace}, Spec: corev1.PersistentVolumeSpec{
		Capacity: size, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}, StorageClassName: w.Namespace,
		PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/nowhere"}}}})
	w.Create(&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data", Namespace: w.Namespace},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: ptr.To(w.Namespace), VolumeName: w.Namespace,
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany},
			Resources:   corev1.VolumeResourceRequirements{Requests: size}}})
	if on := nodesOf(w.untilRunning("a", 1)); !maps.Equal(on, harness.PlacesOf(before)) {
		t.Errorf("pods per node = %v, want the first places %v", on, harness.PlacesOf(before))
	}
	if now := w.UntilWorkloadOf("a", "is admitted", admitted); meta.FindStatusCondition(now.Status.Conditions,
		kueue.WorkloadEvicted) != nil {
		t.Errorf("the gang was evicted, want it to keep its place:\n%s", w.State())
	}
}

// TestAReplacementWaitsForASlowlyTerminatingPod checks that a pod whose node is full only because its predecessor still
// terminates keeps its place there, although other nodes are free, and that the gang is not evicted.
func TestAReplacementWaitsForASlowlyTerminatingPod(t *testing.T) {
	w := newWorld(t)
	only := w.rackOf("r0", 1)[0]
	w.queue()
	w.Create(w.gang("a", "q", 2, 4, time.Hour))
	var slow corev1.Pod
	for _, pod := range w.untilRunning("a", 2) {
		slow = pod
	}
	// Its pods are no longer simulated, so that the deleted pod keeps terminating.
	w.Patch(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: only}},
		fmt.Sprintf(`{"metadata": {"labels": {%q: null}}}`, simulated.Key))
	w.Delete(&slow)
	w.untilUnschedulable("Insufficient " + string(gpu))
	for _, name := range []string{"r1", "r2"} {
		w.rackOf(name, 1)
		w.Create(w.gang("meanwhile-"+name, "q", 1, 8, 2*time.Second)) // runs longer than it takes until a refusal is believed
		w.untilCompleted("meanwhile-" + name)
	}
	if err := w.Client.Delete(t.Context(), &slow, client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
	w.UntilPods("two pods are on the node again, without the deleted one", func(pods map[string]corev1.Pod) bool {
		on := 0
		for _, pod := range pods {
			if pod.UID != slow.UID && pod.Spec.NodeName == only {
				on++
			}
		}
		return on == 2
	})
	if now := w.UntilWorkloadOf("a", "is admitted", admitted); meta.FindStatusCondition(now.Status.Conditions,
		kueue.WorkloadEvicted) != nil {
		t.Errorf("the gang was evicted, want it to keep its place:\n%s", w.State())
	}
}

// TestUnschedulablePodsAreRetried checks that a job that was evicted because kube-scheduler refused its only node is
// admitted again. The pod whose anti-affinity was the reason is deleted, but no event tells Muster that the node is now
// feasible.
func TestUnschedulablePodsAreRetried(t *testing.T) {
	w := newWorld(t)
	only := w.rackOf("r0", 1)[0]
	w.queue()
	hermit := w.podOn("hermit", only, 2)
	hermit.Namespace = w.Namespace
	hermit.Spec.Affinity = antiAffinityToJobSets()
	w.Create(hermit)
	w.untilRunning("hermit", 1)
	w.Create(w.gang("a", "q", 1, 4, time.Hour))
	w.UntilWorkloadOf("a", "is evicted with kube-scheduler's message", func(wl *kueue.Workload) bool {
		c := meta.FindStatusCondition(wl.Status.Conditions, kueue.WorkloadEvicted)
		return c != nil && strings.Contains(c.Message, "kube-scheduler does not bind its pods to node "+only+" (") &&
			strings.Contains(c.Message, "anti-affinity")
	})
	w.Delete(hermit)
	if on := nodesOf(w.untilRunning("a", 1)); on[only] != 1 {
		t.Errorf("pods of a per node = %v, want 1 on %s", on, only)
	}
}
