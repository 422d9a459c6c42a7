package vcjob

import (
	"fmt"
	"testing"

	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	bus "github.com/musterhq/muster/api/volcano/bus/v1alpha1"
	"github.com/musterhq/muster/internal/jobs"
)

func TestCommandsAreObeyedOnceAndThenDeleted(t *testing.T) {
	job := newJob().with("worker", 1).is(volcano.Running)
	running := pod("job-worker-0").running()
	stop := command("stop", bus.AbortJobAction)
	got := see(t, job.Job, admitted("worker", 1), of(running, stop))
	if want := "Aborting AbortJob: asked by Command stop"; state(got) != want || len(writes(got)) != 0 || !got.StatusFirst {
		t.Fatalf("state %q and writes %q, want %q and none", state(got), writes(got), want)
	}
	job = then(got, job)
	got = see(t, job.Job, admitted("worker", 1), of(running, stop))
	same(t, "then", []string{"delete job-worker-0", "delete v1alpha1.Command stop"}, writes(got))
	job = then(see(t, job.Job, admitted("worker", 1), nil), job)
	if job.Status.State.Phase != volcano.Aborted || !describe(job.Job, jobs.Facts{}).Paused {
		t.Fatalf("it is %s, and keeps its quota", job.Status.State.Phase)
	}
	job = then(see(t, job.Job, waiting, of(command("go", bus.ResumeJobAction))), job)
	if s := job.Status; s.State.Phase != volcano.Restarting || s.RetryCount != 0 || s.Version != 1 {
		t.Errorf("a resumed job is %s with %d retries and version %d", s.State.Phase, s.RetryCount, s.Version)
	}
}

func TestCommandsDoNotRestartAJobMoreOftenThanItMayBe(t *testing.T) {
	job := newJob().with("worker", 1).restarted(3)
	got := see(t, job.Job, admitted("worker", 1), of(command("again", bus.RestartJobAction)))
	if want := "Failed MaxRetry: asked by Command again; retryCount is 3, as high as maxRetry lets it be"; state(got) != want {
		t.Errorf("state %q, want %q", state(got), want)
	}
}

// What is decided for good stays so, however long its pods take to go.
func TestCommandsDoNotBringBackAJobThatEnds(t *testing.T) {
	for _, phase := range []volcano.JobPhase{volcano.Completing, volcano.Terminating} {
		for _, action := range []bus.Action{bus.RestartJobAction, bus.AbortJobAction, bus.ResumeJobAction, bus.TerminateJobAction, bus.CompleteJobAction} {
			job := newJob().with("worker", 1).is(phase)
			going := pod("job-worker-0").running().going()
			got := see(t, job.Job, admitted("worker", 1), of(going, command("late", action)))
			want := []string{fmt.Sprintf("ExecuteAction %s: nothing to do, the job is %s (asked by Command late)", action, phase)}
			if then(got, job).Status.State.Phase != phase {
				t.Errorf("%s of a job that is %s: %s", action, phase, state(got))
			}
			same(t, "events", want, told(got))
			if after := then(got, job); after.Status.RetryCount != 0 || after.Status.Version != 0 {
				t.Errorf("%s counts as a restart: %+v", action, after.Status)
			}
		}
	}
}

// told are a plan's events, "reason message" each.
func told(p jobs.Plan) []string {
	var out []string
	for _, e := range p.Events {
		out = append(out, e.Reason+" "+e.Message)
	}
	return out
}
