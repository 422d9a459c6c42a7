package genericjob

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tensorstack "github.com/musterhq/muster/api/tensorstack/v1beta1"
	"github.com/musterhq/muster/internal/jobs"
)

// bounded is an admission whose queue wants its quota back at the time, an hour after it.
func bounded(until time.Time) jobs.Admission {
	out := admitted
	out.Until, out.Bound, out.BoundSource = until, time.Hour, "muster.dev/max-duration of LocalQueue q"
	return out
}

// tells are the reasons of the events that come with the plan's writes.
func tells(p jobs.Plan) []string {
	var out []string
	for _, w := range p.Writes {
		if e := w.SuccessEvent(); e != nil {
			out = append(out, e.Reason)
		}
	}
	return out
}

func TestAJobIsPausedWhenItsQueueWantsItsQuotaBack(t *testing.T) {
	job := newJob().with("worker", 2)
	job = then(see(t, job.GenericJob, admitted, of(pod("job-worker-0").Running(), pod("job-worker-1").Running())), job)
	pods := of(pod("job-worker-0").Running(), pod("job-worker-1").Ended(0))
	soon := now.Add(time.Minute)
	p := see(t, job.GenericJob, bounded(soon), pods)
	if len(p.Writes) > 0 || !p.Due.Equal(soon) {
		t.Errorf("before its time it would %v, due %s", writes(p), p.Due)
	}
	p = see(t, job.GenericJob, bounded(now), pods)
	if len(p.Writes) != 1 || p.Status != nil || len(p.Events) > 0 {
		t.Fatalf("at its time it would %v, and tell %v", writes(p), p.Events)
	}
	same(t, "with the change it tells", []string{"MaxDurationExceeded"}, tells(p))
	same(t, "what its status does not remember yet it gives back", map[string]int32{}, p.Progress.Reclaimable)
	if !p.Progress.Active || !p.Progress.Ready {
		t.Errorf("its queue is told that it stops, or is not ready, by %+v", p.Progress)
	}
	if says := p.Writes[0].SuccessEvent().Message; !strings.HasSuffix(says,
		"The limit is 1h, set by muster.dev/max-duration of LocalQueue q") {
		t.Errorf("the event says %q, want which limit it is", says)
	}
	held := jobBuilder{p.Writes[0].Object().(*tensorstack.GenericJob)}
	if !paused(held.GenericJob) {
		t.Error("it is not paused")
	}
	p = see(t, held.GenericJob, bounded(now), pods)
	same(t, "then", []string{"delete Pod job-worker-0"}, writes(p))
	same(t, "and tells no more of it", nil, tells(p))
}

// TestAResumedJobThatKeptItsQuotaGetsItsFullTime: one that names a Workload keeps
// its admission while it is paused, and with it the time at which that was to be over.
func TestAResumedJobThatKeptItsQuotaGetsItsFullTime(t *testing.T) {
	runs := of(pod("job-worker-0").Running())
	job := newJob().with("worker", 1).paused(true)
	job = then(see(t, job.GenericJob, bounded(now), nil), job)
	since := func(ago time.Duration) {
		condition(job.GenericJob, tensorstack.JobPaused).LastTransitionTime = metav1.NewTime(now.Add(-ago))
	}
	since(3 * time.Hour)
	job = job.paused(false)
	p := see(t, job.GenericJob, bounded(now.Add(-2*time.Hour)), nil)
	same(t, "resumed after its time was over", []string{"create Pod job-worker-0"}, writes(p))
	if !p.Due.Equal(now.Add(time.Hour)) {
		t.Errorf("it is due %s", p.Due)
	}
	job = then(p, job)
	since(59 * time.Minute)
	p = see(t, job.GenericJob, bounded(now.Add(-3*time.Hour)), runs)
	if len(p.Writes) > 0 || !p.Due.Equal(now.Add(time.Minute)) {
		t.Errorf("within its time it would %v, due %s", writes(p), p.Due)
	}
	since(time.Hour)
	same(t, "and when that is over", []string{"change GenericJob job"},
		writes(see(t, job.GenericJob, bounded(now.Add(-3*time.Hour)), runs)))
}

// TestPodsThatOutliveTheJobAreStoppedAtTheTimeLimit: with no clean-up, also of a job that ended while it was paused.
func TestPodsThatOutliveTheJobAreStoppedAtTheTimeLimit(t *testing.T) {
	for what, job := range map[string]jobBuilder{
		"one that runs":   newJob().with("worker", 3).succeedsBy(rule("worker", 0)),
		"one that is not": newJob().with("worker", 3).succeedsBy(rule("worker", 0)).paused(true),
	} {
		pods := of(pod("job-worker-0").Running(), pod("job-worker-1").Running(), pod("job-worker-2").Running())
		job = then(see(t, job.GenericJob, admitted, pods), job)
		condition(job.GenericJob, tensorstack.JobPaused).LastTransitionTime = metav1.NewTime(now.Add(-time.Hour))
		pods = of(pod("job-worker-0").Ended(0), pod("job-worker-1").Running(), pod("job-worker-2").Running())
		soon := now.Add(time.Minute)
		p := see(t, job.GenericJob, bounded(soon), pods)
		if len(p.Writes) > 0 || !p.Due.Equal(soon) || p.Progress.Outcome != nil {
			t.Errorf("%s: before its time it would %v, due %s, and tells %+v", what, writes(p), p.Due, p.Progress)
		}
		job = then(p, job)
		if job.Status.Phase != tensorstack.JobPhaseSucceeded {
			t.Fatalf("%s: it is %s", what, job.Status.Phase)
		}
		p = see(t, job.GenericJob, bounded(now), pods)
		same(t, what+": at its time", []string{"delete Pod job-worker-1", "delete Pod job-worker-2"}, writes(p))
		same(t, what+": it tells", []string{"MaxDurationExceeded"}, tells(p))
		p = see(t, job.GenericJob, bounded(now),
			of(pod("job-worker-0").Ended(0), pod("job-worker-1").Running().Terminating()))
		if len(p.Writes) > 0 || len(p.Events) > 0 {
			t.Errorf("%s: while they go it would %v, and tell %v", what, writes(p), p.Events)
		}
	}
}
