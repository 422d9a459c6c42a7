package vcjob

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	bus "github.com/musterhq/muster/api/volcano/bus/v1alpha1"
	"github.com/musterhq/muster/internal/jobs"
)

func TestCommandsAreExecutedOnceAndThenDeleted(t *testing.T) {
	job := newJob().with("worker", 1).is(volcano.Running)
	running := pod("job-worker-0").running()
	stop := command("stop", bus.AbortJobAction)
	got := see(t, job.Job, admitted("worker", 1), of(running, stop))
	if want := "Aborting AbortJob: requested by Command stop"; state(got) != want || len(writes(got)) != 0 ||
		!got.StatusFirst {
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

// A waiting job can be aborted and resumed, a finished one stays as it is, and an unknown action is reported. All
// Commands are deleted.
func TestCommandsForJobsThatDoNotRun(t *testing.T) {
	job := newJob().with("worker", 1).is(volcano.Pending)
	job = then(see(t, job.Job, waiting, of(command("stop", bus.AbortJobAction))), job)
	got := see(t, job.Job, waiting, of(command("stop", bus.AbortJobAction)))
	same(t, "the Command goes", []string{"delete v1alpha1.Command stop"}, writes(got))
	if job = then(got, job); job.Status.State.Phase != volcano.Aborted || !describe(job.Job, jobs.Facts{}).Paused {
		t.Fatalf("a job that waits and is stopped is %s, and asks for quota", job.Status.State.Phase)
	}
	job = then(see(t, job.Job, waiting, of(command("go", bus.ResumeJobAction))), job)
	if job = then(see(t, job.Job, waiting, nil), job); job.Status.State.Phase != volcano.Pending ||
		describe(job.Job, jobs.Facts{}).Paused {
		t.Errorf("once it is resumed it is %s", job.Status.State.Phase)
	}
	for _, phase := range []volcano.JobPhase{volcano.Completed, volcano.Failed, volcano.Terminated} {
		ended := newJob().with("worker", 1).is(phase)
		got := see(t, ended.Job, waiting, of(command("late", bus.RestartJobAction)))
		same(t, "the Command goes", []string{"delete v1alpha1.Command late"}, writes(got))
		if after := then(got, ended).Status.State.Phase; after != phase {
			t.Errorf("a job that is %s is restarted: %s", phase, after)
		}
	}
	running := newJob().with("worker", 1).is(volcano.Running)
	got = see(t, running.Job, admitted("worker", 1), of(pod("job-worker-0").running(), command("odd", "FlyToTheMoon")))
	same(t, "events",
		[]string{`ExecuteAction "FlyToTheMoon" is not an action that a Command can request; the actions are AbortJob, ResumeJob, RestartJob, TerminateJob and CompleteJob`}, told(got))
}

// A Command written by hand may lack the UID: it targets the existing job of that name, not a later one.
func TestACommandWithoutUIDTargetsTheExistingJob(t *testing.T) {
	job := newJob().with("worker", 1).is(volcano.Running)
	job.CreationTimestamp = metav1.NewTime(now.Add(-time.Hour))
	running, stop := pod("job-worker-0").running(), command("stop", bus.AbortJobAction)
	stop.TargetObject.UID = ""
	stop.CreationTimestamp = metav1.NewTime(now)
	if s := state(see(t, job.Job, admitted("worker", 1),
		of(running, stop))); s != "Aborting AbortJob: requested by Command stop" {
		t.Errorf("state %q", s)
	}
	stop.CreationTimestamp = metav1.NewTime(now.Add(-2 * time.Hour))
	got := see(t, job.Job, admitted("worker", 1), of(running, stop))
	if phase := then(got, job).Status.State.Phase; phase != volcano.Running {
		t.Errorf("by a Command for a job of before it is %s", phase)
	}
	same(t, "then", []string{"delete v1alpha1.Command stop"}, writes(got))
	if name, uid := targetOf(stop); name != "job" || uid != "" {
		t.Errorf("it is for %q, %q", name, uid)
	}
	stop.TargetObject.APIVersion = "batch/v1"
	if name, _ := targetOf(stop); name != "" {
		t.Errorf("one for a batch Job is for the VCJob %q", name)
	}
	for _, name := range []string{"nvidia.com/gpu", "", "..", "a b", "Job"} {
		wrong := stop.DeepCopy()
		wrong.TargetObject.APIVersion, wrong.TargetObject.Name, wrong.TargetObject.UID = "", name, "u"
		if got, uid := targetOf(wrong); got != "" || uid != "" {
			t.Errorf("a Command for %q targets %q with the UID %q, want none: no Job can have that name", name, got, uid)
		}
	}
	stop.TargetObject.APIVersion, stop.TargetObject.Kind = "", "Queue"
	if name, _ := targetOf(stop); name != "" {
		t.Errorf("one for a Queue is for the VCJob %q", name)
	}
}

func TestCommandsDoNotRestartBeyondMaxRetry(t *testing.T) {
	job := newJob().with("worker", 1).restarted(3)
	got := see(t, job.Job, admitted("worker", 1), of(command("again", bus.RestartJobAction)))
	if want := "Failed MaxRetry: requested by Command again; retryCount is 3, the limit that maxRetry sets"; state(got) != want {
		t.Errorf("state %q, want %q", state(got), want)
	}
}

// A final decision stays, however long the pods take to terminate.
func TestCommandsDoNotBringBackAJobThatEnds(t *testing.T) {
	for _, phase := range []volcano.JobPhase{volcano.Completing, volcano.Terminating} {
		for _, action := range []bus.Action{bus.RestartJobAction, bus.AbortJobAction, bus.ResumeJobAction,
			bus.TerminateJobAction, bus.CompleteJobAction} {
			job := newJob().with("worker", 1).is(phase)
			going := pod("job-worker-0").running().going()
			got := see(t, job.Job, admitted("worker", 1), of(going, command("late", action)))
			want := []string{fmt.Sprintf(
				"ExecuteAction %s: nothing to do, the job is %s (requested by Command late)", action, phase)}
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
