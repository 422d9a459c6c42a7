package trainingjob

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	breezeml "github.com/musterhq/muster/api/breezeml/v1"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/jobstest"
)

// rejected returns a pod that its node has rejected for the reason.
func rejected(index int, reason string) jobstest.Pod {
	p := pod(index)
	p.Status = corev1.PodStatus{Phase: corev1.PodFailed, Reason: reason, Message: "no healthy devices"}
	return p
}

// agentJob returns a job of least to 4 workers with the agent that has been running with all of them.
func agentJob(t *testing.T, least int32) jobBuilder {
	t.Helper()
	job := newJob(least, 4)
	job.Spec.InjectLattice = true
	return withStatus(checkedPlan(t, now, job.TrainingJob, admitted(4),
		of(pod(0).Running(), pod(1).Running(), pod(2).Running(), pod(3).Running())), job)
}

// TestPodThatRanNothingCostsNothing, whatever the restart policy, even if no restart is allowed.
func TestPodThatRanNothingCostsNothing(t *testing.T) {
	initialized := rejected(0, "NodeShutdown")
	initialized.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "init",
		State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}}}
	initialized.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main",
		State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{}}}}
	unknown := rejected(0, "Terminated")
	unknown.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "ContainerStatusUnknown"}}}}
	late := rejected(0, "DeadlineExceeded")
	noCommand := rejected(0, "Failed")
	noCommand.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{ExitCode: 128, Reason: "StartError"}}}}
	for name, tc := range map[string]struct {
		pod   jobstest.Pod
		costs bool
	}{
		"rejected":                         {rejected(0, "UnexpectedAdmissionError"), false},
		"no room":                          {rejected(0, "OutOfcpu"), false},
		"node shut down before it ran":     {initialized, false},
		"kubelet knows of no container":    {unknown, false},
		"the pod's own deadline":           {late, true},
		"its command could not be started": {noCommand, true},
	} {
		for _, policy := range []breezeml.RestartPolicy{breezeml.RestartNever, breezeml.RestartOnFailure,
			breezeml.RestartExitCode, breezeml.RestartAlways} {
			for _, agent := range []bool{false, true} {
				job := newJob(1, 1).restarts(policy)
				job.Spec.InjectLattice, job.Spec.RunPolicy.BackoffLimit = agent, ptr.To[int32](0)
				job = withStatus(checkedPlan(t, now, job.TrainingJob, admitted(1), of(pod(0).Running())), job)
				p := checkedPlan(t, now, job.TrainingJob, admitted(1), of(tc.pod))
				job = withStatus(p, job)
				if failed := outcomeOf(job.TrainingJob) != nil; failed != tc.costs {
					t.Errorf("%s, policy %s, agent %v: failed %v, want %v", name, policy, agent, failed, tc.costs)
				}
				if !tc.costs && (len(job.Status.Restarts) > 0 || !slices.Contains(writes(p), "delete Pod job-worker-0")) {
					t.Errorf("%s, policy %s, agent %v: restarts %v, writes %v; want none counted and the pod replaced", name, policy,
						agent, job.Status.Restarts, writes(p))
				}
			}
		}
	}
}

// TestRejectedPodIsReplacedAfterAWhile: its node may reject the next one at once.
func TestRejectedPodIsReplacedAfterAWhile(t *testing.T) {
	again := rejected(0, "OutOfcpu")
	again.CreationTimestamp = metav1.NewTime(now.Add(-time.Second))
	p := checkedPlan(t, now, newJob(1, 1).TrainingJob, admitted(1), of(again))
	if due := now.Add(9 * time.Second); !p.Due.Equal(due) || slices.Contains(writes(p), "delete Pod job-worker-0") {
		t.Errorf("writes %v, due %s; want the pod kept until %s", writes(p), p.Due, due)
	}
}

// TestLostWorkerIsReplaced: with the agent, a container that was killed from outside is no failure of its program.
func TestLostWorkerIsReplaced(t *testing.T) {
	reported := pod(3).Ended(137)
	reported.Status.ContainerStatuses[0].State.Terminated.Message = "\n" + muster.AgentReport +
		" (out of memory), and was run again often enough\n"
	byNode := pod(3).Ended(1)
	byNode.Status.Reason = "Terminated"
	for name, tc := range map[string]struct {
		pod   jobstest.Pod
		agent bool
		fails bool
	}{
		"killed":                           {pod(3).Ended(137), true, false},
		"asked to end":                     {pod(3).Ended(143), true, false},
		"the agent gave up":                {reported, true, true},
		"the program failed":               {pod(3).Ended(1), true, true},
		"killed, without the agent":        {pod(3).Ended(137), false, true},
		"node shut down, with the agent":   {byNode, true, false},
		"node shut down, without an agent": {byNode, false, false},
	} {
		job := agentJob(t, 2)
		job.Spec.InjectLattice = tc.agent
		p := checkedPlan(t, now, job.TrainingJob, admitted(4),
			of(pod(0).Running(), pod(1).Running(), pod(2).Running(), tc.pod))
		after := withStatus(p, job)
		if failed := outcomeOf(after.TrainingJob) != nil; failed != tc.fails {
			t.Errorf("%s: failed %v, want %v", name, failed, tc.fails)
		}
		if !tc.fails && (after.Status.Restarts["3"] != 1 || len(after.Status.Losses) != 1 || !p.StatusFirst) {
			t.Errorf("%s: restarts %v, losses %v; want one of each, written first", name, after.Status.Restarts,
				after.Status.Losses)
		}
	}
}

// TestLossesHaveABudget: three an hour. Then the job goes on with what is left for the rest of the hour, or fails if
// that is too little. Workers lost together count once.
func TestLossesHaveABudget(t *testing.T) {
	for least, want := range map[int32]string{2: "Running 3", 4: "Completed 0"} {
		job, at := agentJob(t, least), now
		lose := func() jobs.Plan {
			lost := pod(3).Attempt(int(job.Status.Restarts["3"])).EndedAt(137, at.Add(-6*time.Minute))
			lost.CreationTimestamp = metav1.NewTime(at.Add(-7 * time.Minute))
			p := checkedPlan(t, at, job.TrainingJob, admitted(4), of(pod(0).Running(), pod(1).Running(), pod(2).Running(), lost))
			job = withStatus(p, job)
			return p
		}
		for range 3 {
			lose()
			same(t, "stage within the budget", "Running 4", stageAndSize(job))
			replaced := pod(3).Attempt(int(job.Status.Restarts["3"])).Running()
			job = withStatus(checkedPlan(t, at, job.TrainingJob, admitted(4),
				of(pod(0).Running(), pod(1).Running(), pod(2).Running(), replaced)), job)
			at = at.Add(8 * time.Minute)
		}
		p := lose()
		same(t, "stage beyond the budget", want, stageAndSize(job))
		if least == 4 {
			continue
		}
		if e := p.Events[0]; e.Reason != breezeml.SizeLimitedReason ||
			!strings.Contains(e.Message, "workers were lost 4 times within an hour, the last with exit code 137 in job-worker-3") {
			t.Errorf("events %v, want the reason for the size", events(p))
		}
		if until := now.Add(time.Hour); !job.Status.SizeLimit.Until.Time.Equal(until) {
			t.Errorf("limit %+v, want until the first loss is an hour ago", job.Status.SizeLimit)
		}
		three := of(pod(0).Running(), pod(1).Running(), pod(2).Running())
		p = checkedPlan(t, now.Add(time.Hour), job.TrainingJob, admitted(4), three)
		same(t, "stage after the hour", "Running 4", stageAndSize(withStatus(p, job)))
	}
	job := agentJob(t, 2)
	all := of(pod(0).Ended(143), pod(1).Ended(143), pod(2).Ended(143), pod(3).Running())
	job = withStatus(checkedPlan(t, now, job.TrainingJob, admitted(4), all), job)
	later := now.Add(10 * time.Second)
	last := of(pod(0).Attempt(1).Running(), pod(1).Attempt(1).Running(), pod(2).Attempt(1).Running(),
		pod(3).EndedAt(143, later))
	job = withStatus(checkedPlan(t, later, job.TrainingJob, admitted(4), last), job)
	if len(job.Status.Losses) != 1 || job.Status.Restarts["3"] != 1 {
		t.Errorf("four workers lost with their node are %v losses and the restarts %v, want one loss and all replaced",
			job.Status.Losses, job.Status.Restarts)
	}
}

// TestLimitOfRestartsIsTheBudget where the job has one: it fails beyond that, as with other restarts.
func TestLimitOfRestartsIsTheBudget(t *testing.T) {
	job := agentJob(t, 2)
	job.Spec.RunPolicy.BackoffLimit = ptr.To[int32](1)
	lost := func(i int) jobstest.Pod { return pod(i).Ended(137) }
	job = withStatus(checkedPlan(t, now, job.TrainingJob, admitted(4),
		of(lost(0), pod(1).Running(), pod(2).Running(), pod(3).Running())), job)
	same(t, "stage within the limit", "Running 4", stageAndSize(job))
	job = withStatus(checkedPlan(t, now, job.TrainingJob, admitted(4),
		of(pod(0).Attempt(1).Running(), lost(1), pod(2).Running(), pod(3).Running())), job)
	same(t, "stage beyond the limit", "Completed 0", stageAndSize(job))
}

// TestExitCodeIsHonouredWithTheAgent: what the agent reports is judged by its code, and so is a container that was
// killed.
func TestExitCodeIsHonouredWithTheAgent(t *testing.T) {
	for code, fails := range map[int32]bool{1: true, 127: true, 137: false, 139: false} {
		job := agentJob(t, 2).restarts(breezeml.RestartExitCode)
		after := withStatus(checkedPlan(t, now, job.TrainingJob, admitted(4),
			of(pod(0).Running(), pod(1).Running(), pod(2).Running(), pod(3).Ended(code))), job)
		if failed := outcomeOf(after.TrainingJob) != nil; failed != fails {
			t.Errorf("exit code %d: failed %v, want %v", code, failed, fails)
		}
	}
}
