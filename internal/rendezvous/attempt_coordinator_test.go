package rendezvous

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/rendezvous/protocol"
)

// TestRanksAreOfThePodsThatAreAdmitted: a JobSet that was made larger without quota restarts with the pods that it has.
func TestRanksAreOfThePodsThatAreAdmitted(t *testing.T) {
	zero, four := int32(0), int32(4)
	js := &jobset.JobSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "js", UID: "js-uid"}}
	js.Spec.FailurePolicy = &jobset.FailurePolicy{RestartStrategy: jobset.InPlaceRestart}
	js.Spec.ReplicatedJobs = []jobset.ReplicatedJob{{Name: "a", Replicas: 2}, {Name: "b", Replicas: 1}}
	js.Spec.ReplicatedJobs[0].Template.Spec.Parallelism, js.Spec.ReplicatedJobs[0].Template.Spec.Completions = &four, &four
	js.Status.CurrentInPlaceRestartAttempt = &zero
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pod", UID: "pod",
		Labels: map[string]string{jobset.JobIndexKey: "1", jobset.ReplicatedJobNameKey: "a",
			"batch.kubernetes.io/job-completion-index": "1"},
		Annotations: map[string]string{jobset.InPlaceRestartAttemptKey: "0", muster.RendezvousJoinAnnotation: "a"}}}
	for name, tc := range map[string]struct {
		parallelism int32
		owner       string
		rank, size  int
	}{
		"a Job smaller than the spec says":            {3, "js-uid", 4, 7},
		"a Job of the size that the spec says":        {4, "js-uid", 5, 9},
		"a Job larger than the spec says, for now":    {6, "js-uid", 5, 9},
		"a smaller Job of another owner, of its name": {3, "another", 5, 9},
	} {
		job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "js-a-0",
			OwnerReferences: controlledBy("jobset.x-k8s.io/v1alpha2", "JobSet", "js", tc.owner)}}
		job.Spec.Parallelism, job.Spec.Completions = &tc.parallelism, &tc.parallelism
		h := &attemptCoordinator{client: clientOf(t, js, pod, job), key: client.ObjectKeyFromObject(js), uid: js.UID}
		h.recordMaster(protocol.Request{Join: "m", Address: "10.0.0.1", Port: 1}, 1)
		got, _, err := h.answer(t.Context(), caller{Namespace: "ns", Name: "pod", UID: "pod"},
			protocol.Request{State: protocol.Waiting, Join: "a"}, 2)
		if err != nil || got.Round == nil || got.Round.Rank != tc.rank || got.Round.Size != tc.size ||
			got.Round.Min != tc.size {
			t.Errorf("%s: %+v, error %v; want rank %d of %d", name, got.Round, err, tc.rank, tc.size)
		}
	}
}
