package vcjob

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	bus "github.com/musterhq/muster/api/volcano/bus/v1alpha1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/jobstest"
)

// restarted is a job with a worker and a policy, that has been restarted three times.
func restarted(event bus.Event, action bus.Action) jobBuilder {
	job := newJob().with("worker", 1).with("ps", 1).on(event, action).is(volcano.Running)
	job.Spec.MaxRetry, job.Status.RetryCount = 1000, 3
	return job
}

// at plans the job at a time.
func at(job jobBuilder, when time.Time, children []client.Object) jobs.Plan {
	return plan(jobs.Seen[*volcano.Job]{Job: job.Job, Admission: admitted("worker", 1, "ps", 1),
		Children: children, Now: when})
}

// endedNow is the pod of the worker, which ended with the exit code a second ago.
func endedNow(code int32) podBuilder {
	return podBuilder(jobstest.NewPod("job-worker-0").EndedAt(code, now.Add(-time.Second)))
}

// TestARestartInARowWaits: whatever it restarts, and whatever for, the restart is done when it is due, and the job
// goes on until then.
func TestARestartInARowWaits(t *testing.T) {
	for _, action := range []bus.Action{bus.RestartJobAction, bus.RestartTaskAction, bus.RestartPodAction} {
		for event, code := range map[bus.Event]int32{bus.PodFailedEvent: 1, bus.AnyEvent: 1, bus.TaskCompletedEvent: 0} {
			for _, ps := range []podBuilder{pod("job-ps-0").running(), pod("job-ps-0").ended(0)} {
				if event != bus.PodFailedEvent && ps.Status.Phase == corev1.PodSucceeded {
					continue // its own task has completed too
				}
				job := restarted(event, action)
				children := of(endedNow(code), ps)
				p := see(t, job.Job, admitted("worker", 1, "ps", 1), children)
				due := now.Add(3 * time.Second)
				job = then(p, job)
				if s := job.Status; !p.Due.Equal(due) || s.State.Phase != volcano.Running || s.RetryCount != 3 ||
					p.Progress.Reclaimable["worker"] != 0 || len(p.Writes) > 0 {
					t.Errorf("%s for %s: due %s in phase %s after %d retries, with %v and %v reclaimable; want due %s, and nothing else",
						action, event, p.Due, s.State.Phase, s.RetryCount, writes(p), p.Progress.Reclaimable, due)
				}
				if got := then(at(job, due, children), job).Status; got.RetryCount != 4 {
					t.Errorf("%s for %s: when it is due, there are %d retries, want 4", action, event, got.RetryCount)
				}
			}
		}
	}
}

// TestRestartsThatDoNotWait are those of which no program is the cause, the first one after a pod that ran, and the
// last one, with which the job fails.
func TestRestartsThatDoNotWait(t *testing.T) {
	ran := endedNow(1)
	ran.Status.ContainerStatuses[0].State.Terminated.StartedAt = metav1.NewTime(now.Add(-time.Hour))
	last := restarted(bus.PodFailedEvent, bus.RestartPodAction)
	last.Spec.MaxRetry = 4
	first := restarted(bus.PodFailedEvent, bus.RestartJobAction)
	first.Status.RetryCount = 0
	lost := podBuilder(jobstest.Pod(endedNow(137)).Disrupted())
	for what, test := range map[string]struct {
		job     jobBuilder
		pod     podBuilder
		settled string
	}{
		"the first":              {first, endedNow(1), ""},
		"the last":               {last, endedNow(1), ""},
		"of a pod that ran":      {restarted(bus.PodFailedEvent, bus.RestartPodAction), ran, "3"},
		"of a job whose pod ran": {restarted(bus.PodFailedEvent, bus.RestartJobAction), ran, "3"},
		"of a lost pod":          {restarted(bus.PodFailedEvent, bus.RestartPodAction), lost, ""},
		"of a pod that is deleted meanwhile": {restarted(bus.PodFailedEvent, bus.RestartPodAction),
			podBuilder(jobstest.Pod(endedNow(1)).Terminating()), ""},
		"of an evicted pod": {restarted(bus.PodEvictedEvent, bus.RestartPodAction),
			pod("job-worker-0").running().going(), ""},
	} {
		before := test.job.Status.RetryCount
		got := then(see(t, test.job.Job, admitted("worker", 1, "ps", 1),
			of(test.pod, pod("job-ps-0").running())), test.job).Status
		if got.RetryCount != before+1 || got.ControlledResources[settledKey] != test.settled {
			t.Errorf("%s: %d retries after %d, settled at %q; want one more, and %q", what, got.RetryCount, before,
				got.ControlledResources[settledKey], test.settled)
		}
	}
}

// TestDelaysStartAgainAfterAPodThatRan: the second restart since then waits a second, in spite of all before.
func TestDelaysStartAgainAfterAPodThatRan(t *testing.T) {
	job := restarted(bus.PodFailedEvent, bus.RestartPodAction)
	job.Status.RetryCount, job.Status.ControlledResources = 90, map[string]string{settledKey: "89"}
	p := see(t, job.Job, admitted("worker", 1, "ps", 1),
		of(podBuilder(jobstest.NewPod("job-worker-0").EndedAt(1, now)), pod("job-ps-0").running()))
	if due := now.Add(time.Second); !p.Due.Equal(due) {
		t.Errorf("due %s, want %s", p.Due, due)
	}
}

// TestPodsThatWaitAreRestartedTogether: they count as one restart, as pods that fail together do.
func TestPodsThatWaitAreRestartedTogether(t *testing.T) {
	job := restarted(bus.PodFailedEvent, bus.RestartPodAction)
	children := of(endedNow(1), podBuilder(jobstest.NewPod("job-ps-0").EndedAt(1, now)))
	got := then(at(job, now.Add(3*time.Second), children), job)
	if p := at(got, now.Add(3*time.Second), children); got.Status.RetryCount != 4 ||
		!slices.Equal(writes(p), []string{"delete job-worker-0", "delete job-ps-0"}) {
		t.Errorf("%d retries, then %v; want one more, for both", got.Status.RetryCount, writes(p))
	}
}

// TestAPodThatIsLostWhileItWaitsComesBack: a restart that is lost with it would leave its job without it.
func TestAPodThatIsLostWhileItWaitsComesBack(t *testing.T) {
	job := restarted(bus.PodFailedEvent, bus.RestartPodAction)
	job = then(see(t, job.Job, admitted("worker", 1, "ps", 1), of(endedNow(1), pod("job-ps-0").running())), job)
	p := see(t, job.Job, admitted("worker", 1, "ps", 1), of(pod("job-ps-0").running()))
	if !slices.ContainsFunc(writes(p),
		func(w string) bool { return strings.HasSuffix(w, " job-worker-0") && strings.HasPrefix(w, "create") }) {
		t.Errorf("writes = %v, want the worker created", writes(p))
	}
}
