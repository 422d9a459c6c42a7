package jobset

import (
	"fmt"
	"math"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
)

// TestPodsRestartInPlace: the test plays the agents of the pods, which annotate them with their attempt. When one pod
// restarts, the status asks the others to restart too, and once all have restarted they may run. No Job is recreated,
// and a restart beyond maxRestarts fails the JobSet.
func TestPodsRestartInPlace(t *testing.T) {
	w := newWorld(t)
	js := w.named("js", w.replicated("workers", 2, 2))
	js.Spec.FailurePolicy = &jobset.FailurePolicy{MaxRestarts: 1, RestartStrategy: jobset.InPlaceRestart}
	spec := &js.Spec.ReplicatedJobs[0].Template.Spec
	spec.BackoffLimit, spec.PodReplacementPolicy = ptr.To[int32](math.MaxInt32), ptr.To(batchv1.Failed)
	w.Create(js)
	created := w.untilOnlyJobs("js-workers-0", "js-workers-1")
	var pods []corev1.Pod
	for _, name := range []string{"js-workers-0", "js-workers-1"} {
		pods = append(pods, w.podsOf(name)...)
	}
	startAttempt := func(attempt int, pods ...corev1.Pod) {
		for i := range pods {
			w.Patch(&pods[i], fmt.Sprintf(`{"metadata": {"annotations": {%q: "%d"}}}`, jobset.InPlaceRestartAttemptKey, attempt))
		}
	}
	attempts := func(previous, current *int32) func(*jobset.JobSet) bool {
		return func(js *jobset.JobSet) bool {
			return ptr.Equal(js.Status.PreviousInPlaceRestartAttempt, previous) &&
				ptr.Equal(js.Status.CurrentInPlaceRestartAttempt, current)
		}
	}
	// Agents may start only after all other events of the JobSet.
	w.untilJobSet("js", "has two active Jobs", func(js *jobset.JobSet) bool {
		return len(js.Status.ReplicatedJobsStatus) == 1 && js.Status.ReplicatedJobsStatus[0].Active == 2
	})
	startAttempt(0, pods...)
	w.untilJobSet("js", "has the current attempt 0", attempts(nil, ptr.To[int32](0)))
	startAttempt(1, pods[2])
	w.untilJobSet("js", "has the previous attempt 0, so that the other pods restart",
		attempts(ptr.To[int32](0), ptr.To[int32](0)))
	startAttempt(1, pods[0], pods[1], pods[3])
	w.untilJobSet("js", "has the current attempt 1", attempts(ptr.To[int32](0), ptr.To[int32](1)))
	for name, job := range w.untilOnlyJobs("js-workers-0", "js-workers-1") {
		if job.UID != created[name].UID {
			t.Errorf("%s was recreated, want its pods to restart in place", name)
		}
	}
	startAttempt(2, pods[0])
	w.untilJobSet("js", "is failed after its last restart",
		is(jobset.JobSetFailed, metav1.ConditionTrue, jobset.ReachedMaxRestartsReason))
}
