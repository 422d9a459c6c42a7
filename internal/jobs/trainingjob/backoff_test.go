package trainingjob

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	breezeml "github.com/musterhq/muster/api/breezeml/v1"
)

// signalled returns a job of two workers, the first of which was restarted three times because of signals.
func signalled(t *testing.T) jobBuilder {
	job := newJob(2, 2).restarts(breezeml.RestartExitCode)
	job = withStatus(checkedPlan(t, now, job.TrainingJob, admitted(2), of(pod(0).Running(), pod(1).Running())), job)
	job.Status.Restarts = map[string]int32{"0": 3}
	return job
}

// TestARestartInARowWaits: until it is due, the worker keeps its pod, and the job is Restarting and keeps its quota.
func TestARestartInARowWaits(t *testing.T) {
	job := signalled(t)
	children := of(pod(0).Attempt(3).EndedAt(137, now.Add(-time.Second)), pod(1).Running())
	p := checkedPlan(t, now, job.TrainingJob, admitted(2), children)
	due := now.Add(3 * time.Second)
	same(t, "writes", []string{"create Service job-worker-0", "create Service job-worker-1"}, writes(p))
	if !p.Due.Equal(due) || p.Progress.Outcome != nil || len(p.Progress.Reclaimable) > 0 || p.Progress.Refused != "" {
		t.Errorf("due %s, progress %+v; want due %s, the job running and its quota kept", p.Due, p.Progress, due)
	}
	job = withStatus(p, job)
	same(t, "restarts", map[string]int32{"0": 3}, job.Status.Restarts)
	want := []string{"Created=True TrainingJobCreated: TrainingJob job is created.",
		"Restarting=True TrainingJobRestarting: TrainingJob job is restarting because 1 worker replica(s) failed: exit code 137 in job-worker-0"}
	same(t, "conditions", want, conditions(job))
	if job.Status.RequeueTime != nil {
		t.Errorf("requeueTime = %s: a worker that waits is not stuck", job.Status.RequeueTime)
	}
	p = checkedPlan(t, due, job.TrainingJob, admitted(2), children)
	same(t, "writes when it is due",
		[]string{"create Service job-worker-0", "create Service job-worker-1", "delete Pod job-worker-0"}, writes(p))
	job = withStatus(p, job)
	same(t, "restarts when it is due", map[string]int32{"0": 4}, job.Status.Restarts)
	same(t, "conditions when it is due", want, conditions(job))
}

func TestDelaysStartAgainAfterAPodThatRan(t *testing.T) {
	job := signalled(t)
	ran := pod(0).Attempt(3).EndedAt(137, now)
	ran.Status.ContainerStatuses[0].State.Terminated.StartedAt = metav1.NewTime(now.Add(-10 * time.Minute))
	job = withStatus(checkedPlan(t, now, job.TrainingJob, admitted(2), of(ran, pod(1).Running())), job)
	same(t, "restarts", map[string]int32{"0": 4}, job.Status.Restarts)
	same(t, "restarts before a pod ran long", map[string]int32{"0": 3}, job.Status.SettledRestarts)
	p := checkedPlan(t, now, job.TrainingJob, admitted(2), of(pod(0).Attempt(4).EndedAt(137, now), pod(1).Running()))
	if due := now.Add(time.Second); !p.Due.Equal(due) {
		t.Errorf("the next restart is due at %s, want %s", p.Due, due)
	}
}

// TestNoDelayBeforeTheEnd: a job without restarts left has failed at once.
func TestNoDelayBeforeTheEnd(t *testing.T) {
	job := signalled(t)
	job.Spec.RunPolicy.BackoffLimit = ptr.To[int32](3)
	p := checkedPlan(t, now, job.TrainingJob, admitted(2), of(pod(0).Attempt(3).EndedAt(137, now), pod(1).Running()))
	if p.Progress.Outcome == nil && !isTrue(withStatus(p, job).TrainingJob, breezeml.JobFailed) {
		t.Errorf("conditions = %v, want the job Failed", conditions(withStatus(p, job)))
	}
}
