package genericjob

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	tensorstack "github.com/musterhq/muster/api/tensorstack/v1beta1"
	"github.com/musterhq/muster/test/scenario/harness"
)

// untilNoWorkload waits until the namespace has no Workload, so that nothing in it requests or uses quota.
func (w *world) untilNoWorkload() {
	w.Helper()
	harness.Until(w.World, &kueue.WorkloadList{}, "the namespace has no Workload",
		func(list *kueue.WorkloadList) bool { return len(list.Items) == 0 })
}

// untilWaits waits until the Workload of the job waits for quota, with the priority.
func (w *world) untilWaits(job string, priority int32) {
	w.Helper()
	w.UntilWorkloadOf(job, fmt.Sprintf("waits in the queue with priority %d", priority), func(wl *kueue.Workload) bool {
		return meta.IsStatusConditionFalse(wl.Status.Conditions, kueue.WorkloadQuotaReserved) && *wl.Spec.Priority == priority
	})
}

// resumedWith makes the workers resume with these arguments and without init containers.
func resumedWith(args ...string) func(*tensorstack.GenericJob) {
	return func(job *tensorstack.GenericJob) {
		job.Spec.RunMode = &tensorstack.RunMode{
			Pause: &tensorstack.PauseMode{ResumeSpecs: []tensorstack.ResumeSpec{{Type: "worker",
				SkipInitContainer: true, Args: args}}}}
	}
}

// TestGangsShareAQueueByPriority: gangs that do not fit together run one after the other. Waiting ones start in the
// order of the priorities in their scheduler sections, and pausing a job releases its quota.
func TestGangsShareAQueueByPriority(t *testing.T) {
	w := newWorld(t)
	w.queue(4)
	w.Create(w.job("first", with("worker", 3, 0), inQueue(0)))
	w.untilPhase("first", tensorstack.JobPhaseRunning)
	w.Create(w.job("low", with("worker", 2, 0), inQueue(1)))
	w.untilWaits("low", 1)
	w.Create(w.job("high", with("master", 1, 0), with("worker", 2, 0), inQueue(100)))
	w.untilWaits("high", 100)
	w.UntilOnlyPods("first-worker-0", "first-worker-1", "first-worker-2")
	w.pause("first", true)
	w.untilPhase("first", tensorstack.JobPhasePaused)
	w.untilPhase("high", tensorstack.JobPhaseRunning)
	w.UntilOnlyPods("high-master-0", "high-worker-0", "high-worker-1")
	w.pause("first", false)
	w.untilPhase("first", tensorstack.JobPhaseResuming)
	w.untilWaits("first", 0)
	for _, pod := range []string{"high-master-0", "high-worker-0", "high-worker-1"} {
		w.EndReplica(pod, 0, 0)
	}
	w.untilPhase("high", tensorstack.JobPhaseSucceeded)
	w.untilPhase("low", tensorstack.JobPhaseRunning)
	w.Delete(&tensorstack.GenericJob{ObjectMeta: metav1.ObjectMeta{Name: "low", Namespace: w.Namespace}})
	w.untilPhase("first", tensorstack.JobPhaseRunning)
}

// TestPausedFromTheBeginning: a job that is created paused has no pods and no Workload until it is resumed. Its pods
// then follow resumeSpecs.
func TestPausedFromTheBeginning(t *testing.T) {
	w := newWorld(t)
	w.queue(2)
	w.Create(w.job("later", with("worker", 2, 0), inQueue(0), resumedWith("--resume"),
		func(job *tensorstack.GenericJob) { job.Spec.RunMode.Pause.Enabled = true }))
	job := w.untilPhase("later", tensorstack.JobPhasePaused)
	if c := condition(job, tensorstack.JobPaused); c.Status != "True" || job.Status.Aggregate.Deleted != 2 {
		t.Errorf("condition Paused = %+v and counts = %+v, want Paused and 2 deleted", c, job.Status.Aggregate)
	}
	untilAnotherJobRuns(t)
	w.untilNoWorkload()
	w.UntilOnlyPods()
	w.pause("later", false)
	w.untilPhase("later", tensorstack.JobPhaseRunning)
	w.UntilPods("later-worker-1 exists", func(pods map[string]corev1.Pod) bool {
		spec := pods["later-worker-1"].Spec
		if got := spec.Containers[0].Args; !slices.Equal(got, []string{"--resume"}) ||
			!slices.Equal(spec.Containers[0].Command, []string{"train"}) || len(spec.InitContainers) != 0 {
			t.Errorf("later-worker-1 runs %v %v with %d init containers, want [train] [--resume] with none",
				spec.Containers[0].Command, got, len(spec.InitContainers))
		}
		return true
	})
}

// TestPauseWhilePending: pausing a job that waits for quota removes its Workload, and resuming it queues it again.
func TestPauseWhilePending(t *testing.T) {
	w := newWorld(t)
	w.queue(2)
	w.Create(w.job("waits", with("worker", 3, 0), inQueue(0)))
	w.untilWaits("waits", 0)
	w.pause("waits", true)
	w.untilPhase("waits", tensorstack.JobPhasePaused)
	w.untilNoWorkload()
	w.pause("waits", false)
	w.untilPhase("waits", tensorstack.JobPhaseResuming)
	w.untilWaits("waits", 0)
}

// TestPauseWhileRestarting: when a job is paused during a restart, the restart stays counted, the pod is recreated only
// after the job is resumed, and the deletion of the other pods does not count against their restart budgets.
func TestPauseWhileRestarting(t *testing.T) {
	w := newWorld(t)
	w.Create(w.job("again", with("worker", 2, 2)))
	w.untilPhase("again", tensorstack.JobPhaseRunning)
	w.EndReplica("again-worker-0", 0, 1)
	w.untilJob("again", "counts the restart",
		func(job *tensorstack.GenericJob) bool { return job.Status.Tasks[0].RestartCount == 1 })
	w.pause("again", true)
	w.untilPhase("again", tensorstack.JobPhasePaused)
	w.UntilOnlyPods()
	w.pause("again", false)
	w.untilPhase("again", tensorstack.JobPhaseRunning)
	w.EndReplica("again-worker-0", 1, 0)
	w.EndReplica("again-worker-1", 0, 0)
	if job := w.untilPhase("again", tensorstack.JobPhaseSucceeded); job.Status.Tasks[0].RestartCount != 1 {
		t.Errorf("restartCount = %d, want 1", job.Status.Tasks[0].RestartCount)
	}
}

// TestDebugThenPause: in debug mode the pods run the debug commands. Pause takes precedence over debug and deletes
// them, and after it they run the debug commands again.
func TestDebugThenPause(t *testing.T) {
	w := newWorld(t)
	w.Create(w.job("debug", with("master", 1, 0), with("worker", 1, 0), func(job *tensorstack.GenericJob) {
		job.Spec.RunMode = &tensorstack.RunMode{Debug: &tensorstack.DebugMode{Enabled: true,
			ReplicaSpecs: []tensorstack.ReplicaDebugSet{
				{Type: "worker", SkipInitContainer: true, Command: []string{"/usr/bin/sshd"}}}}}
	}))
	check := func(pods map[string]corev1.Pod) bool {
		master, worker := pods["debug-master-0"].Spec, pods["debug-worker-0"].Spec
		if len(master.Containers) == 0 || len(worker.Containers) == 0 {
			return false
		}
		if !slices.Equal(master.Containers[0].Command, []string{"sleep", "inf"}) || len(master.Containers[0].Args) > 0 ||
			len(master.InitContainers) != 1 {
			t.Errorf("the master runs %v %v with %d init containers, want [sleep inf] with one", master.Containers[0].Command,
				master.Containers[0].Args, len(master.InitContainers))
		}
		if !slices.Equal(worker.Containers[0].Command, []string{"/usr/bin/sshd"}) || len(worker.Containers[0].Args) > 0 ||
			len(worker.InitContainers) != 0 {
			t.Errorf("the worker runs %v %v with %d init containers, want [/usr/bin/sshd] with none",
				worker.Containers[0].Command, worker.Containers[0].Args, len(worker.InitContainers))
		}
		return true
	}
	w.untilPhase("debug", tensorstack.JobPhaseRunning)
	w.UntilPods("both pods have containers", check)
	w.pause("debug", true)
	w.untilPhase("debug", tensorstack.JobPhasePaused)
	w.UntilOnlyPods()
	w.pause("debug", false)
	w.untilPhase("debug", tensorstack.JobPhaseRunning)
	w.UntilPods("both pods have containers again", check)
}

// TestAPauseLeadsOutOfDebugMode: a job in debug mode is paused, and debug mode is disabled when it is resumed. Its pod
// then runs the command of the template.
func TestAPauseLeadsOutOfDebugMode(t *testing.T) {
	w := newWorld(t)
	w.Create(w.job("leaves", with("worker", 1, 0), func(job *tensorstack.GenericJob) {
		job.Spec.RunMode = &tensorstack.RunMode{Debug: &tensorstack.DebugMode{Enabled: true}}
	}))
	w.untilPhase("leaves", tensorstack.JobPhaseRunning)
	w.pause("leaves", true)
	w.untilPhase("leaves", tensorstack.JobPhasePaused)
	job := &tensorstack.GenericJob{ObjectMeta: metav1.ObjectMeta{Name: "leaves", Namespace: w.Namespace}}
	w.Patch(job, `{"spec":{"runMode":{"debug":{"enabled":false},"pause":{"enabled":false}}}}`)
	w.untilPhase("leaves", tensorstack.JobPhaseRunning)
	w.UntilPods("leaves-worker-0 exists", func(pods map[string]corev1.Pod) bool {
		pod, ok := pods["leaves-worker-0"]
		if !ok {
			return false
		}
		if main := pod.Spec.Containers[0]; !slices.Equal(main.Command, []string{"train"}) ||
			!slices.Equal(main.Args, []string{"--rank", "0"}) {
			t.Errorf("leaves-worker-0 runs %v %v, want [train] [--rank 0]", main.Command, main.Args)
		}
		return true
	})
	w.EndReplica("leaves-worker-0", 0, 0)
	w.untilPhase("leaves", tensorstack.JobPhaseSucceeded)
}

// TestPauseWhileResuming: a resumed job that waits for quota is paused again. It leaves the queue, and runs after the
// next resume once there is quota.
func TestPauseWhileResuming(t *testing.T) {
	w := newWorld(t)
	w.queue(2)
	w.Create(w.job("twice", with("worker", 2, 0), inQueue(0)))
	w.untilPhase("twice", tensorstack.JobPhaseRunning)
	w.pause("twice", true)
	w.untilPhase("twice", tensorstack.JobPhasePaused)
	w.Create(w.job("other", with("worker", 2, 0), inQueue(0)))
	w.untilPhase("other", tensorstack.JobPhaseRunning)
	w.pause("twice", false)
	w.untilPhase("twice", tensorstack.JobPhaseResuming)
	w.untilWaits("twice", 0)
	w.pause("twice", true)
	w.untilPhase("twice", tensorstack.JobPhasePaused)
	w.EndReplica("other-worker-0", 0, 0)
	w.EndReplica("other-worker-1", 0, 0)
	w.untilPhase("other", tensorstack.JobPhaseSucceeded)
	w.pause("twice", false)
	w.untilPhase("twice", tensorstack.JobPhaseRunning)
	w.untilPodsOf("twice", "twice-worker-0", "twice-worker-1")
}

// TestAPauseAfterTheEndChangesNothing: pausing and resuming a completed job changes neither its phase nor its
// conditions, and recreates no pods.
func TestAPauseAfterTheEndChangesNothing(t *testing.T) {
	w := newWorld(t)
	w.Create(w.job("over", with("worker", 1, 0),
		func(job *tensorstack.GenericJob) { job.Spec.CleanUpPolicy = tensorstack.CleanUpAll }))
	w.untilPhase("over", tensorstack.JobPhaseRunning)
	w.EndReplica("over-worker-0", 0, 0)
	before := w.untilJob("over", "has succeeded and is cleaned up", func(job *tensorstack.GenericJob) bool {
		return job.Status.Phase == tensorstack.JobPhaseSucceeded && job.Status.Aggregate.Deleted == 1
	})
	w.pause("over", true)
	w.pause("over", false)
	// The operator observes a job created now only after these changes.
	w.Create(w.job("after", with("worker", 1, 0)))
	w.untilPhase("after", tensorstack.JobPhaseRunning)
	after := w.untilJob("over", "exists", func(*tensorstack.GenericJob) bool { return true })
	if !slices.EqualFunc(before.Status.Conditions, after.Status.Conditions, func(a, b tensorstack.JobCondition) bool {
		return a.Type == b.Type && a.Status == b.Status && a.Reason == b.Reason
	}) || after.Status.Phase != tensorstack.JobPhaseSucceeded {
		t.Errorf("status = %+v, want as before the pause: %+v", after.Status, before.Status)
	}
	w.UntilOnlyPods("after-worker-0")
}

// TestOperatorKilledAgainAndAgain: the operator is killed repeatedly while jobs restart, are paused and wait for each
// other. The restart counts are the same as without the kills, and no pod remains.
func TestOperatorKilledAgainAndAgain(t *testing.T) {
	w := newWorld(t)
	w.queue(4)
	cleaned := func(job *tensorstack.GenericJob) { job.Spec.CleanUpPolicy = tensorstack.CleanUpAll }
	w.Create(w.job("one", with("worker", 4, 1), inQueue(2), cleaned))
	w.Operator().Kill()
	w.untilPhase("one", tensorstack.JobPhaseRunning)
	w.Create(w.job("two", with("worker", 4, 0), inQueue(1), cleaned))
	w.EndReplica("one-worker-0", 0, 1)
	w.Operator().Kill()
	w.EndReplica("one-worker-0", 1, 0)
	w.pause("one", true)
	w.Operator().Kill()
	w.untilPhase("two", tensorstack.JobPhaseRunning)
	w.pause("one", false)
	for _, pod := range []string{"two-worker-0", "two-worker-1", "two-worker-2", "two-worker-3"} {
		w.EndReplica(pod, 0, 0)
	}
	w.Operator().Kill()
	w.untilPhase("two", tensorstack.JobPhaseSucceeded)
	w.untilPhase("one", tensorstack.JobPhaseRunning)
	for _, pod := range []string{"one-worker-1", "one-worker-2", "one-worker-3"} {
		w.EndReplica(pod, 0, 0)
	}
	w.Operator().Kill()
	job := w.untilPhase("one", tensorstack.JobPhaseSucceeded)
	if task := job.Status.Tasks[0]; task.RestartCount != 1 || task.Replicas[0].RestartCount != 1 {
		t.Errorf("task status = %+v, want one restart, of worker-0", task)
	}
	w.UntilOnlyPods()
}
