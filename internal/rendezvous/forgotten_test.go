package rendezvous

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	"github.com/musterhq/muster/internal/rendezvous/protocol"
)

// edits are what a user may change of a pod that is in rounds, so that it no longer is.
var edits = map[string]func(*corev1.Pod){
	"label removed":      func(pod *corev1.Pod) { delete(pod.Labels, "muster.dev/rendezvous") },
	"another label":      func(pod *corev1.Pod) { pod.Labels["muster.dev/rendezvous"] = "another" },
	"annotation removed": func(pod *corev1.Pod) { delete(pod.Annotations, "muster.dev/rendezvous-size") },
	"invalid annotation": func(pod *corev1.Pod) { pod.Annotations["muster.dev/rendezvous-size"] = "x" },
}

func edited(pod *corev1.Pod, edit func(*corev1.Pod)) *corev1.Pod {
	pod = pod.DeepCopy()
	edit(pod)
	return pod
}

// kept returns how many entries the registry keeps.
func (r *registry) kept() int {
	return len(r.targets.byOwner) + len(r.targets.byID) + len(r.byPod) + len(r.byID) + len(r.attempts) +
		len(r.ownership.ids) + len(r.ownership.pending) + len(r.ownership.pendingFor)
}

// TestEditedPodIsForgotten: whoever edits pods must not make the operator remember them for good.
func TestEditedPodIsForgotten(t *testing.T) {
	for what, edit := range edits {
		r := newRegistry(fake.NewClientBuilder().Build())
		for range 1000 {
			pod := newPod("job-worker-0", "1:2", "0", controlledBy("breezeml.ai/v1", "TrainingJob", "job", "job-uid"))
			r.updatePod(pod, false)
			r.updatePod(edited(pod, edit), false)
			if r.has(pod) {
				t.Fatalf("%s: the pod is still a member", what)
			}
			r.updatePod(edited(pod, edit), true)
		}
		if r.kept() > 0 {
			t.Errorf("%s: %d pods and %d coordinators of deleted pods are kept", what, len(r.byPod), len(r.byID))
		}
	}
}

// TestPodEditedInItsLastEventIsForgotten: an edit and the deletion may arrive as one event.
func TestPodEditedInItsLastEventIsForgotten(t *testing.T) {
	for what, edit := range edits {
		r := newRegistry(fake.NewClientBuilder().Build())
		pod := newPod("job-worker-0", "1:2", "0", controlledBy("breezeml.ai/v1", "TrainingJob", "job", "job-uid"))
		r.updatePod(pod, false)
		r.updatePod(edited(pod, edit), true)
		if r.kept() > 0 {
			t.Errorf("%s: %d pods and %d coordinators of deleted pods are kept", what, len(r.byPod), len(r.byID))
		}
	}
}

// TestEditedPodThatWaitsForItsJobIsForgotten: the pods that are kept until their Job is observed are whole objects.
func TestEditedPodThatWaitsForItsJobIsForgotten(t *testing.T) {
	edits := map[string]func(*corev1.Pod){
		"released by its Job": func(pod *corev1.Pod) { pod.OwnerReferences = nil },
		"taken by another Job": func(pod *corev1.Pod) {
			pod.OwnerReferences = controlledBy("batch/v1", "Job", "js-a-0", "another")
		},
		"label removed": edits["label removed"], "another label": edits["another label"],
		"invalid annotation": edits["invalid annotation"],
	}
	for what, edit := range edits {
		r := newRegistry(fake.NewClientBuilder().Build())
		pod := newPod("js-a-0-0-abcde", "1:1", "", controlledBy("batch/v1", "Job", "js-a-0", "x"))
		r.updatePod(pod, false)
		r.updatePod(edited(pod, edit), false)
		r.updatePod(edited(pod, edit), true)
		if r.kept() > 0 {
			t.Errorf("%s: the deleted pod is kept until its Job is observed", what)
		}
	}
}

// TestEditedPodLeavesItsRound: the others go on without it, it stops, and it may come back.
func TestEditedPodLeavesItsRound(t *testing.T) {
	for what, edit := range edits {
		own := controlledBy("breezeml.ai/v1", "TrainingJob", "job", "job-uid")
		r := newRegistry(fake.NewClientBuilder().Build())
		send := func(pod *corev1.Pod, request protocol.Request) protocol.Response {
			agent := caller{Namespace: "ns", Name: pod.Name, UID: string(pod.UID)}
			found := r.byPod[agent.UID]
			found.observe(agent, request, 1)
			answer, _, _ := found.answer(t.Context(), agent, request, 1)
			return answer
		}
		stays, leaves := newPod("job-worker-0", "1:2", "0", own), newPod("job-worker-1", "1:2", "1", own)
		r.updatePod(stays, false)
		r.updatePod(leaves, false)
		waits := protocol.Request{State: protocol.Waiting, Join: "a", Address: "10.0.0.1", Port: 1}
		send(stays, waits)
		send(leaves, waits)
		part := send(stays, waits).Round
		if part == nil || part.Size != 2 {
			t.Fatalf("answer to the first pod = %+v, want a round of both", part)
		}
		r.updatePod(edited(leaves, edit), false)
		runs := protocol.Request{State: protocol.Running, Round: part.Number, Size: 2, Join: "a",
			Master: part.Master(), ID: part.ID}
		if got := send(stays, runs); got.Over == "" {
			t.Errorf("%s: the remaining pod continues in a round with the edited one", what)
		}
		r.updatePod(leaves, false)
		if !r.has(leaves) {
			t.Errorf("%s: the pod is not a member again after the edit was undone", what)
		}
	}
}

// TestDeletedJobSetIsForgottenWhileItsPodsAsk: its pods are deleted later, and ask until then.
func TestDeletedJobSetIsForgottenWhileItsPodsAsk(t *testing.T) {
	js := &jobset.JobSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "js", UID: "js-uid"}}
	recreated := js.DeepCopy()
	recreated.UID = "another"
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "js-a-0", UID: "a",
		OwnerReferences: controlledBy("jobset.x-k8s.io/v1alpha2", "JobSet", "js", "js-uid")}}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "p",
		Labels:          map[string]string{jobset.JobSetNameKey: "js"},
		OwnerReferences: controlledBy("batch/v1", "Job", "js-a-0", "a")}}
	asks := caller{Namespace: "ns", Name: "p", UID: "p"}
	for what, after := range map[string][]client.Object{"deleted": {job, pod}, "recreated": {job, pod, recreated}} {
		r := newRegistry(clientOf(t, js, job, pod))
		if found, err := r.locate(t.Context(), asks); found.coordinator == nil || err != nil {
			t.Fatalf("a pod of the JobSet: location %+v, error %v", found, err)
		}
		r.client = clientOf(t, after...)
		r.handler().OnDelete(js)
		if found, err := r.locate(t.Context(), asks); found.coordinator != nil || err != nil {
			t.Errorf("the JobSet was %s: a pod of the former one has location %+v, error %v", what, found, err)
		}
		if r.kept() > 0 {
			t.Errorf("the JobSet was %s: the former one is kept", what)
		}
	}
}

// TestObjectReplacedInOneEventIsForgotten: after a watch was interrupted, an object that was deleted and created anew
// meanwhile arrives as one update.
func TestObjectReplacedInOneEventIsForgotten(t *testing.T) {
	r := newRegistry(fake.NewClientBuilder().Build())
	before := newPod("job-worker-0", "1:2", "0", controlledBy("breezeml.ai/v1", "TrainingJob", "job", "job-uid"))
	after := before.DeepCopy()
	after.UID = types.UID("recreated")
	r.handler().OnAdd(before, false)
	r.handler().OnUpdate(before, after)
	if r.has(before) || !r.has(after) {
		t.Errorf("members: the former pod %t, the new one %t, want only the new one", r.has(before), r.has(after))
	}
	r.handler().OnDelete(after)
	if r.kept() > 0 {
		t.Errorf("%d pods and %d coordinators of deleted pods are kept", len(r.byPod), len(r.byID))
	}
}

// clientOf returns a client of a cluster with the objects.
func clientOf(t *testing.T, objects ...client.Object) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, batchv1.AddToScheme, jobset.AddToScheme,
		kueue.AddToScheme, volcano.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
}
