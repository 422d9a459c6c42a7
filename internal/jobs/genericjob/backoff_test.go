package genericjob

import (
	"math"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tensorstack "github.com/musterhq/muster/api/tensorstack/v1beta1"
	"github.com/musterhq/muster/internal/jobs"
)

// restarting is a job of two workers, the first of which has been restarted three times.
func restarting(policy tensorstack.RestartPolicyType) jobBuilder {
	job := newJob().with("worker", 2, tensorstack.RestartPolicy{Policy: policy, Limit: math.MaxInt32}).
		succeedsBy(rule("worker", 0)).failsBy(rule("worker", 0))
	job.Status = then(plan(jobs.Seen[*tensorstack.GenericJob]{
		Job: job.GenericJob, Admission: admitted, Children: of(pod("job-worker-0").Running(), pod("job-worker-1").Running()),
		Now: now}), job).Status
	job.Status.Tasks[0].Replicas[0].RestartCount = 3
	return job
}

// TestARestartInARowWaits: until it is due, the replica keeps its pod, which counts neither for the rules nor as
// reclaimable, and nothing is written but what the pod's end changes.
func TestARestartInARowWaits(t *testing.T) {
	for policy, code := range map[tensorstack.RestartPolicyType]int32{tensorstack.RestartOnFailure: 1,
		tensorstack.RestartAlways: 0} {
		job := restarting(policy)
		children := of(pod("job-worker-0").Attempt(3).EndedAt(code, now.Add(-time.Second)), pod("job-worker-1").Running())
		p := see(t, job.GenericJob, admitted, children)
		same(t, "writes", nil, writes(p))
		if due := now.Add(3 * time.Second); !p.Due.Equal(due) || p.Progress.Outcome != nil ||
			p.Progress.Reclaimable["worker"] != 0 {
			t.Errorf("%s: due %s, progress %+v; want due %s, the job running and its quota kept", policy, p.Due, p.Progress, due)
		}
		job = then(p, job)
		r := job.Status.Tasks[0].Replicas[0]
		if want := map[int32]tensorstack.ReplicaPhase{0: tensorstack.ReplicaSucceeded,
			1: tensorstack.ReplicaFailed}[code]; r.RestartCount != 3 || r.Phase != want {
			t.Errorf("%s: while it waits the status says %+v, want 3 restarts and %s", policy, r, want)
		}
		p = plan(jobs.Seen[*tensorstack.GenericJob]{Job: job.GenericJob, Admission: admitted, Children: children,
			Now: now.Add(3 * time.Second)})
		same(t, "writes when it is due", []string{"delete Pod job-worker-0"}, writes(p))
		if r := then(p, job).Status.Tasks[0].Replicas[0]; r.RestartCount != 4 || r.SettledRestarts != 0 ||
			r.Phase != tensorstack.ReplicaCreating {
			t.Errorf("%s: when it is due the status says %+v, want 4 restarts and Creating", policy, r)
		}
	}
}

// TestDelaysStartAgainAfterAPodThatRan: the status records after which restart that was.
func TestDelaysStartAgainAfterAPodThatRan(t *testing.T) {
	job := restarting(tensorstack.RestartOnFailure)
	ran := pod("job-worker-0").Attempt(3).EndedAt(1, now)
	ran.Status.ContainerStatuses[0].State.Terminated.StartedAt = metav1.NewTime(now.Add(-10 * time.Minute))
	p := see(t, job.GenericJob, admitted, of(ran, pod("job-worker-1").Running()))
	same(t, "writes", []string{"delete Pod job-worker-0"}, writes(p))
	job = then(p, job)
	if r := job.Status.Tasks[0].Replicas[0]; r.RestartCount != 4 || r.SettledRestarts != 3 {
		t.Errorf("the status says %+v, want 4 restarts, 3 of them before a pod ran long", r)
	}
	p = see(t, job.GenericJob, admitted, of(pod("job-worker-0").Attempt(4).EndedAt(1, now), pod("job-worker-1").Running()))
	if due := now.Add(time.Second); !p.Due.Equal(due) {
		t.Errorf("the next restart is due at %s, want %s", p.Due, due)
	}
}

// TestAnEvictedReplicaDoesNotWait: a job that lost its quota, or a pod, starts at once when it may.
func TestAnEvictedReplicaDoesNotWait(t *testing.T) {
	job := restarting(tensorstack.RestartOnFailure)
	p := see(t, job.GenericJob, admitted, of(pod("job-worker-1").Running()))
	same(t, "writes for a pod that is gone", []string{"create Pod job-worker-0"}, writes(p))
	p = see(t, job.GenericJob, admitted,
		of(pod("job-worker-0").Attempt(3).Ended(1).Disrupted(), pod("job-worker-1").Running()))
	same(t, "writes for a pod that is lost", []string{"delete Pod job-worker-0"}, writes(p))
}
