package operators

import (
	"context"
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/test/scenario/harness"
)

const (
	// placing is the chart's file with the webhook that gives pods their places.
	placing = "../../../charts/muster/webhook/pod-places.yaml"
	gpu     = corev1.ResourceName("nvidia.com/gpu")
	pool    = "example.com/pool"
)

// TestPodsGetTheirNodesAtCreation: those that have ranks, without a write; others wait for one. While the operator is
// down pods are made all the same, without a place, and nobody touches those that have theirs; once it is back they get
// what was theirs.
func TestPodsGetTheirNodesAtCreation(t *testing.T) {
	w := newWorld(t)
	w.machines(4, 2)
	door := w.newDoor()
	flags := append(door.flags, w.configured("placement: {webhook: true}"))
	running := w.operate(flags...)
	w.ask(placing, door, w.untilPodsArePlacedAtOnce)

	gang := w.gpuJob("gang", 3, batchv1.IndexedCompletion)
	w.UntilHeld(gang, true)
	w.Create(gang)
	pods := w.untilAtTheirPlaces("gang", 3)
	w.Create(w.gpuJob("loose", 3, batchv1.NonIndexedCompletion))
	for written, of := range map[int64][]corev1.Pod{0: pods, 1: w.untilAtTheirPlaces("loose", 3)} {
		for _, pod := range of {
			if pod.Generation != 1+written { // which kube-scheduler's binding leaves
				t.Errorf("%s is at generation %d, and should have been written %d times", pod.Name, pod.Generation, written)
			}
		}
	}

	running.End(syscall.SIGTERM)
	gone := pods[1]
	w.Delete(&gone)
	late := w.untilAnother("gang", pods)
	if !waitsForPlace(&late) || late.Spec.NodeName != "" {
		t.Errorf("nobody was there to give it a place, and it has gates %v on %q, selects %v", late.Spec.SchedulingGates,
			late.Spec.NodeName, late.Spec.NodeSelector)
	}
	w.operate(flags...)
	after := w.untilAtTheirPlaces("gang", 3)
	for _, pod := range after {
		switch i := slices.IndexFunc(pods, func(was corev1.Pod) bool { return was.UID == pod.UID }); {
		case pod.UID == late.UID && pod.Spec.NodeName != gone.Spec.NodeName:
			t.Errorf("its place was on %s, and it is on %s", gone.Spec.NodeName, pod.Spec.NodeName)
		case pod.UID != late.UID && (i < 0 || pod.Generation != pods[i].Generation):
			t.Errorf("%s, which has its place, was touched", pod.Name)
		}
	}
}

// machines makes nodes, so many with so many GPUs each, and the LocalQueue q whose pods are placed on them. No kubelet
// is there, so that who is on one waits for ever to be started.
func (w *world) machines(nodes int, gpus int64) {
	w.Helper()
	has := corev1.ResourceList{gpu: *resource.NewQuantity(gpus, resource.DecimalSI),
		corev1.ResourcePods: resource.MustParse("110")}
	for i := range nodes {
		name := fmt.Sprintf("%s-%d", w.Namespace, i)
		w.Shared(&corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name,
				Labels: map[string]string{corev1.LabelHostname: name, corev1.LabelOSStable: "linux", pool: w.Namespace}},
			Status: corev1.NodeStatus{Capacity: has, Allocatable: has,
				Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady",
					LastTransitionTime: metav1.Now(), LastHeartbeatTime: metav1.Now()}}},
		})
	}
	w.Shared(&kueue.Topology{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace},
		Spec: kueue.TopologySpec{Levels: []kueue.TopologyLevel{{NodeLabel: corev1.LabelHostname}}}})
	w.Queue("q", kueue.ResourceFlavorSpec{NodeLabels: map[string]string{pool: w.Namespace},
		TopologyName: ptr.To(kueue.TopologyReference(w.Namespace))},
		corev1.ResourceList{gpu: *resource.NewQuantity(int64(nodes)*gpus, resource.DecimalSI)})
}

var oneGPU = corev1.ResourceRequirements{Limits: corev1.ResourceList{gpu: resource.MustParse("1")},
	Requests: corev1.ResourceList{gpu: resource.MustParse("1")}}

// gpuJob is a Job of pods with one GPU each. They go at once when they are told to.
func (w *world) gpuJob(name string, pods int32, mode batchv1.CompletionMode) *batchv1.Job {
	job := w.Job(name, "q", pods)
	job.Spec.CompletionMode = &mode
	spec := &job.Spec.Template.Spec
	spec.TerminationGracePeriodSeconds = ptr.To[int64](0)
	spec.Containers[0].Resources = oneGPU
	return job
}

// untilPodsArePlacedAtOnce waits until the API server asks the operator about pods, on its own time: until it would
// make one with the place of its rank. None is made.
func (w *world) untilPodsArePlacedAtOnce() {
	w.Helper()
	probe := w.Workload("probe", "q")
	probe.Spec.PodSets[0].Template.Spec.Containers[0].Resources = oneGPU
	w.Create(probe)
	places := harness.PlacesOf(w.UntilWorkload("probe", "runs", runs))
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "probe",
			Annotations: map[string]string{kueue.WorkloadAnnotation: "probe"},
			Labels:      map[string]string{kueue.PodSetLabel: "main", batchv1.JobCompletionIndexAnnotation: "0"}},
		Spec: *probe.Spec.PodSets[0].Template.Spec.DeepCopy(),
	}
	pod.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: kueue.TopologyGate}}
	var made *corev1.Pod
	var refused error
	err := wait.PollUntilContextTimeout(w.Context(), 100*time.Millisecond, harness.Patience,
		true, func(ctx context.Context) (bool, error) {
			made = pod.DeepCopy()
			refused = w.Client.Create(ctx, made, client.DryRunAll) // so it does while the namespace has no service account
			return refused == nil && !waitsForPlace(made), nil
		})
	if err != nil {
		w.Fatalf("waiting until a pod is made with its place: %v, %v", err, refused)
	}
	if host := made.Spec.NodeSelector[corev1.LabelHostname]; len(places) != 1 || places[host] != 1 {
		w.Errorf("its place is on %v, and it is made to go to %q", places, host)
	}
	w.Delete(probe)
}

// untilAtTheirPlaces waits until the pods of the Job, so many, are on nodes, each sent to its own, and as many on each
// as have places there.
func (w *world) untilAtTheirPlaces(job string, count int) (pods []corev1.Pod) {
	w.Helper()
	made := w.UntilJob(job, "runs", harness.Running(int32(count)))
	if len(made.Spec.Template.Spec.SchedulingGates) != 1 {
		w.Fatalf("the pods of %s have their places from its template, which selects %v: they are given none one by one", job,
			made.Spec.Template.Spec.NodeSelector)
	}
	harness.Until(w.World, &corev1.PodList{}, fmt.Sprintf("%d pods of %s are on nodes", count, job),
		func(list *corev1.PodList) bool {
			pods = slices.DeleteFunc(list.Items, func(pod corev1.Pod) bool {
				return pod.Labels[batchv1.JobNameLabel] != job || pod.DeletionTimestamp != nil || pod.Spec.NodeName == ""
			})
			return len(pods) == count
		})
	on := map[string]int32{}
	for _, pod := range pods {
		on[pod.Spec.NodeName]++
		if host := pod.Spec.NodeSelector[corev1.LabelHostname]; host != pod.Spec.NodeName || waitsForPlace(&pod) {
			w.Errorf("%s is on %s, and was sent to %q with gates %v", pod.Name, pod.Spec.NodeName, host,
				pod.Spec.SchedulingGates)
		}
	}
	if diff := cmp.Diff(harness.PlacesOf(w.UntilWorkloadOf(job, "runs", runs)), on); diff != "" {
		w.Errorf("pods of %s on each node (-places +pods):\n%s", job, diff)
	}
	return pods
}

// untilAnother waits until the Job has a pod that is not among those, and gives it as it is then.
func (w *world) untilAnother(job string, than []corev1.Pod) (another corev1.Pod) {
	w.Helper()
	harness.Until(w.World, &corev1.PodList{}, job+" has another pod", func(list *corev1.PodList) bool {
		i := slices.IndexFunc(list.Items, func(pod corev1.Pod) bool {
			return pod.Labels[batchv1.JobNameLabel] == job &&
				!slices.ContainsFunc(than, func(known corev1.Pod) bool { return known.UID == pod.UID })
		})
		if i >= 0 {
			another = list.Items[i]
		}
		return i >= 0
	})
	return another
}

// waitsForPlace reports whether the pod is held until it is given a place.
func waitsForPlace(pod *corev1.Pod) bool {
	return slices.Contains(pod.Spec.SchedulingGates, corev1.PodSchedulingGate{Name: kueue.TopologyGate})
}
