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

// TestPodsRestartInPlace: the test is the agents. One pod starts again, the others are told to, and once all have they
// may run. No Job is made anew.
func TestPodsRestartInPlace(t *testing.T) {
	w := newWorld(t)
	js := w.named("js", w.replicated("workers", 2, 2))
	js.Spec.FailurePolicy = &jobset.FailurePolicy{MaxRestarts: 1, RestartStrategy: jobset.InPlaceRestart}
	spec := &js.Spec.ReplicatedJobs[0].Template.Spec
	spec.BackoffLimit, spec.PodReplacementPolicy = ptr.To[int32](math.MaxInt32), ptr.To(batchv1.Failed)
	w.Create(js)
	made := w.thereAre("js-workers-0", "js-workers-1")
	var pods []corev1.Pod
	for _, name := range []string{"js-workers-0", "js-workers-1"} {
		pods = append(pods, w.podsOf(name)...)
	}
	starts := func(attempt int, pods ...corev1.Pod) {
		for i := range pods {
			w.Patch(&pods[i], fmt.Sprintf(`{"metadata": {"annotations": {%q: "%d"}}}`, jobset.InPlaceRestartAttemptKey, attempt))
		}
	}
	attempts := func(previous, current *int32) func(*jobset.JobSet) bool {
		return func(js *jobset.JobSet) bool {
			return ptr.Equal(js.Status.PreviousInPlaceRestartAttempt, previous) && ptr.Equal(js.Status.CurrentInPlaceRestartAttempt, current)
		}
	}
	// Agents may take long to start, when nothing else is told of the JobSet any more.
	w.jobSet("js", "is told of", func(js *jobset.JobSet) bool {
		return len(js.Status.ReplicatedJobsStatus) == 1 && js.Status.ReplicatedJobsStatus[0].Active == 2
	})
	starts(0, pods...)
	w.jobSet("js", "may run", attempts(nil, ptr.To[int32](0)))
	starts(1, pods[2])
	w.jobSet("js", "tells the others to restart", attempts(ptr.To[int32](0), ptr.To[int32](0)))
	starts(1, pods[0], pods[1], pods[3])
	w.jobSet("js", "may run again", attempts(ptr.To[int32](0), ptr.To[int32](1)))
	for name, job := range w.thereAre("js-workers-0", "js-workers-1") {
		if job.UID != made[name].UID {
			t.Errorf("%s was made anew", name)
		}
	}
	starts(2, pods[0])
	w.jobSet("js", "fails once the budget is spent", is(jobset.JobSetFailed, metav1.ConditionTrue, jobset.ReachedMaxRestartsReason))
}
