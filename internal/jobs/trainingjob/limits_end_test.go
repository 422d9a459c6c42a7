package trainingjob

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	breezeml "github.com/musterhq/muster/api/breezeml/v1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/jobstest"
)

// TestJobAtItsLimitStopsWhatRuns, though its pods are to be kept: those that run get a deadline, which keeps them, and
// those that never started are deleted. Ended ones stay as they are. What the node does not end is deleted later.
func TestJobAtItsLimitStopsWhatRuns(t *testing.T) {
	started := func(i int) jobstest.Pod {
		p := pod(i).Running()
		p.Status.StartTime = ptr.To(metav1.NewTime(now.Add(-time.Hour)))
		return p
	}
	crashing := func() jobstest.Pod {
		p := started(1)
		p.Status.ContainerStatuses[0].RestartCount = 2
		return p
	}
	for name, tc := range map[string]struct {
		limit func(jobBuilder)
		at    time.Time
	}{
		"deadline": {func(b jobBuilder) { b.Spec.RunPolicy.ActiveDeadlineSeconds = ptr.To[int64](60) },
			now.Add(time.Minute)},
		"backoffLimit": {func(b jobBuilder) { b.Spec.RunPolicy.BackoffLimit = ptr.To[int32](1) }, now},
	} {
		job := newJob(1, 4).restarts(breezeml.RestartOnFailure).cleans(breezeml.CleanPodNone)
		tc.limit(job)
		pods := of(started(0), crashing(), pod(2).Ended(0), pod(3))
		job = withStatus(checkedPlan(t, now.Add(-time.Second), job.TrainingJob, admitted(4),
			of(started(0), started(1), pod(2).Ended(0), pod(3))), job)
		p := checkedPlan(t, tc.at, job.TrainingJob, admitted(4), pods)
		job = withStatus(p, job)
		same(t, name+": stage", "Completed 0", stageAndSize(job))
		same(t, name+": writes", []string{"change Pod job-worker-0", "change Pod job-worker-1",
			"delete Pod job-worker-3"}, writes(p))
		for _, w := range p.Writes {
			if pod, is := w.Object().(*corev1.Pod); is && w.Verb() == "change" && *pod.Spec.ActiveDeadlineSeconds != 1 {
				t.Errorf("%s: %s gets the deadline of %d s, want 1", name, pod.Name, *pod.Spec.ActiveDeadlineSeconds)
			}
		}
		if got := p.Progress.RunOn[worker]; !p.Progress.OutcomePending || got != 2 {
			t.Errorf("%s: progress %+v, want the end and two pods left", name, p.Progress)
		}
		limited := func(p jobstest.Pod) jobstest.Pod { p.Spec.ActiveDeadlineSeconds = ptr.To[int64](1); return p }
		left := of(limited(started(0)), limited(crashing()), pod(2).Ended(0))
		p = checkedPlan(t, tc.at.Add(time.Second), job.TrainingJob, admitted(4), left)
		same(t, name+": writes while they end", nil, writes(p))
		p = checkedPlan(t, tc.at.Add(time.Minute), job.TrainingJob, admitted(4), left)
		same(t, name+": writes if they do not", []string{"delete Pod job-worker-0", "delete Pod job-worker-1"}, writes(p))
	}
}

// TestLastCountsAreFinal: pods that end after their job are counted, whatever is deleted afterwards.
func TestLastCountsAreFinal(t *testing.T) {
	job := newJob(1, 3).restarts(breezeml.RestartExitCode).cleans(breezeml.CleanPodNone)
	job = withStatus(checkedPlan(t, now, job.TrainingJob, admitted(3),
		of(pod(0).Running(), pod(1).Running(), pod(2).Running())), job)
	counts := func(pods ...jobstest.Pod) [3]int32 {
		job = withStatus(checkedPlan(t, now, job.TrainingJob, admitted(3), of(pods...)), job)
		c := job.Status.ExecStatus.ReplicaStatuses[breezeml.WorkerStatuses]
		return [3]int32{c.Active, c.Succeeded, c.Failed}
	}
	same(t, "counts at the end", [3]int32{2, 0, 1}, counts(pod(0).Ended(1), pod(1).Running(), pod(2).Running()))
	same(t, "counts when the next has failed", [3]int32{1, 0, 2},
		counts(pod(0).Ended(1), pod(1).Ended(1), pod(2).Running()))
	same(t, "counts when all have ended", [3]int32{0, 1, 2}, counts(pod(0).Ended(1), pod(1).Ended(1), pod(2).Ended(0)))
	same(t, "counts when all are deleted", [3]int32{0, 1, 2}, counts())
	if p := checkedPlan(t, now, job.TrainingJob, jobs.Admission{Grant: jobs.Waiting}, nil); p.Status != nil {
		t.Errorf("after that the status changes again: %+v", p.Status)
	}
}
