package vcjob

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	bus "github.com/musterhq/muster/api/volcano/bus/v1alpha1"
	"github.com/musterhq/muster/internal/jobs"
)

func twoTasks() jobBuilder { return newJob().with("ps", 1).with("worker", 2) }

var all = admitted("ps", 1, "worker", 2)

// Each case is one reconcile.
func TestPlan(t *testing.T) {
	restarts := func() jobBuilder {
		return twoTasks().on(bus.PodFailedEvent, bus.RestartJobAction).is(volcano.Running)
	}
	byTask := func(p ...volcano.LifecyclePolicy) jobBuilder {
		job := twoTasks().is(volcano.Running)
		job.Spec.Tasks[1].Policies = p
		return job
	}
	runs := []any{pod("job-ps-0").running(), pod("job-worker-0").running(), pod("job-worker-1").running()}
	failing := func(code int32) []client.Object { return of(runs[0], runs[1], pod("job-worker-1").ended(code)) }
	hungry := pod("job-worker-1").ended(137)
	hungry.Status.ContainerStatuses[0].State.Terminated.Reason = "OOMKilled"
	done := of(pod("job-ps-0").ended(0), pod("job-worker-0").ended(0), pod("job-worker-1").ended(0))
	for _, c := range []struct {
		name      string
		job       jobBuilder
		admission jobs.Admission
		children  []client.Object
		writes    []string
		state     string
		retries   int32
	}{
		{"pods of an admitted job are made", twoTasks(), all, nil,
			[]string{"create job-ps-0", "create job-worker-0", "create job-worker-1"},
			"Pending Starting: Pods are being started", 0},
		{"a job without pods says so", newJob().with("worker", 0), jobs.Admission{Grant: jobs.Unqueued}, nil,
			nil, "Pending NoPods: No task has replicas, so there is nothing to start", 0},
		{"a job without quota says for what it waits", twoTasks().is(volcano.Pending), waiting, nil,
			nil, "Pending QueueNotFound: Queue default is neither a LocalQueue of namespace ns nor a ClusterQueue that takes its jobs: there are no queues", 0},
		{"it runs once as many run as must", twoTasks().needs(2).is(volcano.Pending), all,
			of(runs[0], runs[1], pod("job-worker-1")), nil, "Running Running: Enough pods run", 0},
		{"one that loses its quota ends its pods, which is no restart", restarts(),
			jobs.Admission{Grant: jobs.Stopping}, of(runs...),
			[]string{"delete job-ps-0", "delete job-worker-0", "delete job-worker-1"},
			"Pending QueueNotFound: Queue default is neither a LocalQueue of namespace ns nor a ClusterQueue that takes its jobs: there are no queues", 0},
		{"it has succeeded when all have", twoTasks().is(volcano.Running), all, done,
			nil, "Completed AllEnded: All pods have ended, 3 with success", 0},
		{"it has failed when too few have", twoTasks().is(volcano.Running), all,
			of(pod("job-ps-0").ended(0), pod("job-worker-0").ended(0), pod("job-worker-1").ended(3)), nil,
			"Failed TooFewSucceeded: task worker: succeeded pods: 1, required: 2: pod job-worker-1 has failed with exit code 3", 0},
		{"it says why a pod has failed where its exit code does not", twoTasks().is(volcano.Running), all,
			of(pod("job-ps-0").ended(0), pod("job-worker-0").ended(0), hungry), nil,
			"Failed TooFewSucceeded: task worker: succeeded pods: 1, required: 2: pod job-worker-1 has failed with exit code 137 (OOMKilled)", 0},
		{"a failed pod that nothing must be done about leaves the others running", twoTasks().is(volcano.Running), all,
			failing(3), nil, "Running Before: before", 0},
		{"RestartJob makes all pods pods of the past first", restarts(), all, failing(3),
			nil, "Restarting Restarting: pod job-worker-1 has failed with exit code 3", 1},
		{"AbortJob", twoTasks().on(bus.PodFailedEvent, bus.AbortJobAction).is(volcano.Running), all, failing(1),
			nil, "Aborting AbortJob: pod job-worker-1 has failed with exit code 1", 0},
		{"TerminateJob", twoTasks().on(bus.AnyEvent, bus.TerminateJobAction).is(volcano.Running), all, failing(1),
			nil, "Terminating TerminateJob: pod job-worker-1 has failed with exit code 1", 0},
		{"ResumeJob, of a job that runs",
			twoTasks().on(bus.PodFailedEvent, bus.ResumeJobAction).is(volcano.Running), all, failing(1), nil,
			"Running Before: before", 0},
		{"ResumeJob, and all pods have ended",
			twoTasks().on(bus.AnyEvent, bus.ResumeJobAction).is(volcano.Running), all, done, nil,
			"Completed AllEnded: All pods have ended, 3 with success", 0},
		{"an evicted pod", twoTasks().on(bus.PodEvictedEvent, bus.RestartJobAction).is(volcano.Running), all,
			of(runs[0], runs[1], pod("job-worker-1").running().going()), nil,
			"Restarting Restarting: pod job-worker-1 was evicted or deleted", 1},
		{"a pod that had ended when it was deleted was not evicted",
			twoTasks().on(bus.PodEvictedEvent, bus.RestartJobAction).is(volcano.Running), all,
			of(runs[0], runs[1], pod("job-worker-1").ended(0).going()), nil, "Running Before: before", 0},
		{"a pod that failed because it was evicted was evicted",
			twoTasks().on(bus.PodFailedEvent, bus.AbortJobAction).on(bus.PodEvictedEvent,
				bus.RestartJobAction).is(volcano.Running), all, of(runs[0], runs[1], pod("job-worker-1").evicted()), nil,
			"Restarting Restarting: pod job-worker-1 has failed with exit code 137: it was evicted from its node", 1},
		{"and has failed where no policy is for that",
			twoTasks().on(bus.PodFailedEvent, bus.AbortJobAction).is(volcano.Running), all,
			of(runs[0], runs[1], pod("job-worker-1").evicted()), nil,
			"Aborting AbortJob: pod job-worker-1 has failed with exit code 137: it was evicted from its node", 0},
		{"a task that had no pods when the job was admitted waits for the others", twoTasks().is(volcano.Running),
			admitted("ps", 1), of(runs[0]), nil,
			"Pending TaskWithoutQuota: Task worker had no pods when the job was admitted: they start once the others have ended, or when the job is aborted and resumed", 0},
		{"and when they have ended the job is admitted anew", twoTasks().is(volcano.Running), admitted("ps", 1),
			of(pod("job-ps-0").ended(0)), nil,
			"Pending AdmittedAnew: The job gives up its quota, and queues again with the pods of task worker", 0},
		{"which begins when its quota is gone", twoTasks().is(volcano.Pending).because(admittedAnewReason), admitted("ps", 1),
			of(pod("job-ps-0").ended(0)), nil, "Pending AdmittedAnew: before", 0},
		{"and goes on where it was", twoTasks().is(volcano.Pending).because("Starting"), all, of(pod("job-ps-0").ended(0)),
			[]string{"create job-worker-0", "create job-worker-1"}, "Pending Starting: Pods are being started", 0},
		{"a task's policy goes before the job's", func() jobBuilder {
			job := restarts()
			job.Spec.Tasks[1].Policies = []volcano.LifecyclePolicy{{Event: bus.PodFailedEvent, Action: bus.CompleteJobAction}}
			return job
		}(), all, failing(3), nil, "Completing CompleteJob: pod job-worker-1 has failed with exit code 3", 0},
		{"an exit code that has a policy",
			byTask(volcano.LifecyclePolicy{ExitCode: ptr.To[int32](3), Action: bus.TerminateJobAction}), all, failing(3), nil,
			"Terminating TerminateJob: pod job-worker-1 has failed with exit code 3", 0},
		{"an exit code that has none",
			byTask(volcano.LifecyclePolicy{ExitCode: ptr.To[int32](4), Action: bus.TerminateJobAction}), all, failing(3), nil,
			"Running Before: before", 0},
		{"all pods of a task have succeeded",
			twoTasks().on(bus.TaskCompletedEvent, bus.CompleteJobAction).is(volcano.Running), all, of(pod("job-ps-0").ended(0),
				runs[1], runs[2]), nil, "Completing CompleteJob: all pods of task ps have succeeded", 0},
		{"RestartPod starts the one anew",
			byTask(volcano.LifecyclePolicy{Event: bus.PodFailedEvent, Action: bus.RestartPodAction}), all, failing(3), nil,
			"Running Before: before", 1},
		{"a restarting job deletes its pods", restarts().restarted(1), all, of(runs...),
			[]string{"delete job-ps-0", "delete job-worker-0", "delete job-worker-1"}, "Restarting Before: before", 1},
		{"and starts once they are gone", restarts().restarted(1), all, nil, nil, "Pending Restarted: before", 1},
		{"or has failed when it was restarted often enough", restarts().restarted(3), all, of(runs...),
			nil, "Failed MaxRetry: before; retryCount is 3, the limit that maxRetry sets", 3},
		{"a stopping job waits for its pods", twoTasks().is(volcano.Aborting), all, of(runs...),
			[]string{"delete job-ps-0", "delete job-worker-0", "delete job-worker-1"}, "Aborting Before: before", 0},
		{"and is stopped without them", twoTasks().is(volcano.Aborting), all, done,
			nil, "Aborted Aborted: All pods are stopped; a Command ResumeJob starts the job again", 0},
		{"an ended job ends what still runs", twoTasks().is(volcano.Completed), all,
			of(runs[0], pod("job-worker-0").ended(0), runs[2]), []string{"delete job-ps-0", "delete job-worker-1"},
			"Completed Before: before", 0},
		{"more than were admitted are not made", newJob().with("worker", 4), admitted("worker", 2),
			of(pod("job-worker-0").ended(0), pod("job-worker-1").running()), []string{"create job-worker-2"},
			"Pending Starting: Pods are being started", 0},
		{"more than are admitted go, the last first, which is no restart",
			newJob().with("worker", 3).needs(1).on(bus.PodEvictedEvent, bus.RestartJobAction).is(volcano.Running),
			admitted("worker", 2), of(pod("job-worker-0").running(), pod("job-worker-1").running(),
				pod("job-worker-2").running()), []string{"delete job-worker-2"}, "Running Before: before", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := see(t, c.job.Job, c.admission, c.children)
			same(t, "writes", c.writes, writes(got))
			if s := state(got); s != c.state {
				t.Errorf("state %q, want %q", s, c.state)
			}
			if got.Status != nil && got.Status.(*volcano.Job).Status.RetryCount != c.retries {
				t.Errorf("%d retries, want %d", got.Status.(*volcano.Job).Status.RetryCount, c.retries)
			}
		})
	}
}

func (j jobBuilder) because(reason string) jobBuilder {
	j.Status.State.Reason = reason
	return j
}

// TestAJobWithTooFewRunningPodsIsPending: as in Volcano, also after it has run, when its pods have to start again.
func TestAJobWithTooFewRunningPodsIsPending(t *testing.T) {
	lost := pod("job-worker-0").running()
	lost.Status.Phase = corev1.PodUnknown
	up := func(i string) podBuilder { return pod("job-worker-" + i).running() }
	for name, test := range map[string]struct {
		job  jobBuilder
		pods []client.Object
		want volcano.JobPhase
	}{
		"both pods start again": {newJob().with("worker", 2),
			of(pod("job-worker-0"), pod("job-worker-1")), volcano.Pending},
		"one of two starts again": {newJob().with("worker", 2), of(up("0"), pod("job-worker-1")),
			volcano.Pending},
		"one is missing": {newJob().with("worker", 2), of(up("0")), volcano.Pending},
		"one starts again that need not run": {newJob().with("worker", 2).needs(1),
			of(up("0"), pod("job-worker-1")), volcano.Running},
		"the other one has ended": {newJob().with("worker", 2),
			of(up("0"), pod("job-worker-1").ended(0)), volcano.Running},
		"a task of two starts again": {twoTasks(), of(pod("job-ps-0"), up("0"), up("1")), volcano.Pending},
		"a task of two that need not run": {twoTasks().needs(2), of(pod("job-ps-0"), up("0"), up("1")),
			volcano.Running},
		"the state of a pod is unknown":                 {newJob().with("worker", 2), of(lost, up("1")), volcano.Running},
		"the pods of a gang that was scaled to nothing": {newJob().with("worker", 0), nil, volcano.Pending},
	} {
		t.Run(name, func(t *testing.T) {
			job := test.job.is(volcano.Running)
			if got := then(see(t, job.Job, all, test.pods), job).Status.State.Phase; got != test.want {
				t.Errorf("the job is %s, want %s", got, test.want)
			}
		})
	}
	if got := then(see(t, newJob().with("worker", 2).is(volcano.Pending).Job, all, of(lost, up("1"))),
		newJob().with("worker", 2).is(volcano.Pending)); got.Status.State.Phase != volcano.Pending {
		t.Errorf("a job that has never run with a pod of unknown state is %s", got.Status.State.Phase)
	}
}

// Which queues there are instead of the one that a job names changes, and that there is no such queue does not.
func TestAJobWithoutItsQueueIsNotWrittenForEveryOther(t *testing.T) {
	job := then(see(t, twoTasks().Job, waiting, nil), twoTasks())
	beside := jobs.Seen[*volcano.Job]{Job: job.Job,
		Facts:     jobs.Facts{Queues: jobs.QueueFacts{Local: map[string]*kueue.LocalQueue{"other": {}}}},
		Admission: waiting, Now: now}
	if got := plan(beside); got.Status != nil {
		t.Errorf("another queue was made, and the job says %q", state(got))
	}
	beside.Job = job.DeepCopy()
	beside.Job.Labels = map[string]string{kueue.QueueLabel: "elsewhere"}
	const want = "Pending QueueNotFound: Queue elsewhere is neither a LocalQueue of namespace ns nor a ClusterQueue that takes its jobs: there are other"
	if got := state(plan(beside)); got != want {
		t.Errorf("a job that was given to another queue says %q, want %q", got, want)
	}
}

// That pods are there follows from their making, and is counted in any case; what befalls them does not.
func TestCreatedPodsNeedNoReconcile(t *testing.T) {
	job := twoTasks()
	job = then(see(t, job.Job, all, nil), job)
	got := see(t, job.Job, all, nil)
	if got.Status == nil && !got.DueIfDone.Equal(now.Add(countsDelay)) {
		t.Errorf("pods are made, and are to be counted at %v", got.DueIfDone)
	}
	pending := pod("job-ps-0")
	pending.Status.Phase = corev1.PodPending
	bound := podBuilder{pending.DeepCopy()}
	bound.Spec.NodeName = "node"
	for name, test := range map[string]struct {
		child client.Object
		want  bool
	}{
		"a pod that waits for a node": {pending.Pod, true}, "one that has one": {bound.Pod, false},
		"one that runs": {pod("job-ps-0").running().Pod, false},
		"one that goes": {podBuilder{pending.DeepCopy()}.going().Pod, false},
		"a Command":     {command("c", bus.AbortJobAction), false},
	} {
		if got := API.Watch.Expected(test.child); got != test.want {
			t.Errorf("%s is expected: %v, want %v", name, got, test.want)
		}
	}
}

// What is new about a job that just begins is told with what comes next.
func TestTheInitialStatusMayBeSkipped(t *testing.T) {
	queues := jobs.QueueFacts{Local: map[string]*kueue.LocalQueue{"default": {}}}
	for name, test := range map[string]struct {
		admission jobs.Admission
		pods      []any
		yields    bool
	}{
		"its queue has not looked at it": {jobs.Admission{Grant: jobs.Waiting}, nil, true},
		"its queue has no room":          {waiting, nil, false},
		"its pods are made":              {all, nil, true},
		"one of them has a node":         {all, []any{pod("job-ps-0")}, true},
		// Else it would be run again if it was deleted meanwhile.
		"one of them has ended well": {all, []any{pod("job-ps-0").ended(0)}, false},
	} {
		got := plan(jobs.Seen[*volcano.Job]{Job: twoTasks().Job, Facts: jobs.Facts{Queues: queues}, Admission: test.admission,
			Children: of(test.pods...), Now: now})
		if got.StatusYields != test.yields || got.Status == nil || got.StatusYields && !got.StatusCanWait {
			t.Errorf("%s: its status yields: %v, and can wait: %v", name, got.StatusYields, got.StatusCanWait)
		}
	}
}

// restarted is a job that is being restarted for the time.
func (j jobBuilder) restarted(times int32) jobBuilder {
	j.is(volcano.Restarting).Status.RetryCount, j.Status.Version = times, times
	return j
}

func TestMinSuccessEndsTheJobWhileOthersRun(t *testing.T) {
	job := newJob().with("worker", 3).is(volcano.Running)
	job.Spec.MinSuccess = ptr.To[int32](1)
	got := see(t, job.Job, admitted("worker", 3),
		of(pod("job-worker-0").ended(0), pod("job-worker-1").running(), pod("job-worker-2").ended(1)))
	if want := "Completed MinSuccess: succeeded pods: 1, required: 1"; state(got) != want {
		t.Errorf("state %q, want %q", state(got), want)
	}
	job = then(got, job)
	got = see(t, job.Job, admitted("worker", 3),
		of(pod("job-worker-0").ended(0), pod("job-worker-1").running(), pod("job-worker-2").ended(1)))
	same(t, "then", []string{"delete job-worker-1"}, writes(got))
	stopped := see(t, job.Job, jobs.Admission{Grant: jobs.Stopping},
		of(pod("job-worker-0").ended(0), pod("job-worker-1").running(), pod("job-worker-2").ended(1)))
	if got.Progress.Outcome != nil || stopped.Progress.Outcome != nil {
		t.Error("the quota is given back while a pod runs")
	}
}

func TestTasksWaitForThoseTheyDependOn(t *testing.T) {
	job := newJob().with("ps", 2).with("db", 1).with("worker", 1, dependsOn(volcano.IterationAll, "ps", "db")).
		with("watch", 1, dependsOn(volcano.IterationAny, "ps", "db")).with("log", 1, dependsOn("", "ps", "db"))
	admission := admitted("ps", 2, "db", 1, "worker", 1, "watch", 1, "log", 1)
	first := see(t, job.Job, admission, nil)
	same(t, "first", []string{"create job-ps-0", "create job-ps-1", "create job-db-0"}, writes(first))
	one := see(t, job.Job, admission, of(pod("job-ps-0").running(), pod("job-ps-1"), pod("job-db-0").running()))
	same(t, "db runs", []string{"create job-watch-0"}, writes(one))
	both := see(t, job.Job, admission,
		of(pod("job-ps-0").running(), pod("job-ps-1").ended(0), pod("job-db-0").running(), pod("job-watch-0")))
	same(t, "both run", []string{"create job-worker-0", "create job-log-0"}, writes(both))
}

// A running pod that is not ready cannot be used yet: its probe reports when it can.
func TestTasksWaitUntilThoseTheyDependOnAreReady(t *testing.T) {
	job := newJob().with("server", 1).with("client", 1, dependsOn("", "server"))
	server := pod("job-server-0").running()
	server.Status.Conditions = nil
	same(t, "it runs", nil, writes(see(t, job.Job, admitted("server", 1, "client", 1), of(server))))
	same(t, "it is ready", []string{"create job-client-0"},
		writes(see(t, job.Job, admitted("server", 1, "client", 1), of(server.running()))))
}

func TestATaskThatDependsOnOneThatFailedFailsTheJob(t *testing.T) {
	job := newJob().with("ps", 1).with("worker", 1, dependsOn("", "ps")).is(volcano.Running)
	got := see(t, job.Job, admitted("ps", 1, "worker", 1), of(pod("job-ps-0").ended(1)))
	if want := "Failed DependencyFailed: task worker depends on tasks that can no longer run: pod job-ps-0 has failed with exit code 1"; state(got) != want {
		t.Errorf("state %q, want %q", state(got), want)
	}
}

// TestAFinishedJobIsNotEvictedForMissingPods: it gives its quota back when the last of them is gone, and misses none
// till then.
func TestAFinishedJobIsNotEvictedForMissingPods(t *testing.T) {
	p := see(t, twoTasks().is(volcano.Completed).Job, all,
		of(pod("job-ps-0").ended(0), pod("job-worker-1").running().going()))
	if p.Progress.Outcome != nil || !p.Progress.Ready {
		t.Errorf("its queue is told %+v", p.Progress)
	}
}

func TestAnEndedJobIsDeletedWhenItsTimeIsUp(t *testing.T) {
	job := newJob().with("worker", 1).is(volcano.Completed) // an hour ago
	job.Spec.TTLSecondsAfterFinished = ptr.To[int32](7200)
	if got := see(t, job.Job, waiting, nil); len(writes(got)) != 0 || !got.Due.Equal(now.Add(time.Hour)) {
		t.Errorf("writes %q, due %v", writes(got), got.Due)
	}
	job.Spec.TTLSecondsAfterFinished = ptr.To[int32](3600)
	same(t, "writes", []string{"delete v1alpha1.Job job"}, writes(see(t, job.Job, waiting, nil)))
}

func TestSuccessIsRecordedWhenThePodIsGone(t *testing.T) {
	job := newJob().with("worker", 3).is(volcano.Running)
	job = then(see(t, job.Job, admitted("worker", 3),
		of(pod("job-worker-0").ended(0), pod("job-worker-1").ended(1), pod("job-worker-2").running())), job)
	got := see(t, job.Job, admitted("worker", 3), of(pod("job-worker-2").running()))
	same(t, "writes", nil, writes(got))
	if s := then(got, job).Status; s.Succeeded != 1 || s.Failed != 1 || s.Running != 1 {
		t.Errorf("counts %d, %d, %d", s.Succeeded, s.Failed, s.Running)
	}
}

func TestQuotaOfEndedPodsIsGivenBackUnlessAPolicyMayRestartThem(t *testing.T) {
	children := of(pod("job-worker-0").ended(0), pod("job-worker-1").running())
	free := see(t, newJob().with("worker", 2).is(volcano.Running).Job, admitted("worker", 2), children)
	same(t, "without", map[string]int32{"worker": 1}, free.Progress.Reclaimable)
	kept := see(t, newJob().with("worker", 2).on(bus.PodFailedEvent, bus.RestartJobAction).is(volcano.Running).Job,
		admitted("worker", 2), children)
	same(t, "with", nil, kept.Progress.Reclaimable)
}

// TestQuotaOfPodsThatAreNotNeededIsGivenBack: of pods that have ended for good, and of a task that was scaled down once
// its pods are gone.
func TestQuotaOfPodsThatAreNotNeededIsGivenBack(t *testing.T) {
	up := func(i string) podBuilder { return pod("job-worker-" + i).running() }
	done := func(i string) podBuilder { return pod("job-worker-" + i).ended(0) }
	restarts := func(job jobBuilder) jobBuilder { return job.on(bus.PodEvictedEvent, bus.RestartJobAction) }
	elastic := func(least int, a jobs.Admission) jobs.Admission {
		set := a.PodSets["worker"]
		set.Template = &corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{muster.MinReplicasAnnotation: fmt.Sprint(least)}}}
		a.PodSets["worker"] = set
		return a
	}
	for name, test := range map[string]struct {
		job       jobBuilder
		admission jobs.Admission
		pods      []client.Object
		want      map[string]int32
	}{
		"a gang that was scaled down, with its pods": {newJob().with("worker", 1), admitted("worker", 3),
			of(up("0"), up("1"), up("2")), nil},
		"one of them is gone": {newJob().with("worker", 1), admitted("worker", 3),
			of(up("0"), up("2").going()), map[string]int32{"worker": 1}},
		"both are gone": {newJob().with("worker", 1), admitted("worker", 3),
			of(up("0")), map[string]int32{"worker": 2}},
		"also if policies restart pods": {restarts(newJob().with("worker", 1)),
			admitted("worker", 3), of(up("0")), map[string]int32{"worker": 2}},
		"a task of a gang that was scaled to none": {twoTasks().sized("ps", 0), all, of(up("0"), up("1")),
			map[string]int32{"ps": 1}},
		"a gang that was scaled up": {newJob().with("worker", 3), admitted("worker", 2),
			of(done("0"), up("1")), nil},
		"a gang keeps that of ended pods if policies restart them": {restarts(newJob().with("worker", 2)),
			admitted("worker", 2), of(done("0"), up("1")), nil},
		"a job that can run with fewer does not": {restarts(twoTasks().needs(1)), all,
			of(pod("job-ps-0").running(), done("0"), done("1")), map[string]int32{"worker": 2}},
		"but for pods that have failed": {restarts(newJob().with("a", 2).with("b", 2).needs(1)), admitted("a", 2, "b", 2),
			of(pod("job-a-0").ended(1), pod("job-a-1").ended(0), pod("job-b-0").running()), map[string]int32{"a": 1}},
		"nor where the end of a task restarts it": {twoTasks().needs(1).on(bus.TaskCompletedEvent,
			bus.RestartTaskAction), all,
			of(pod("job-ps-0").running(), up("0"), done("1")), nil},
		"the task that is resized, with more pods to come than quota": {newJob().with("worker", 8).needs(1),
			elastic(1, partly("worker", 8, 4, 4)), of(done("0"), up("1"), up("2"), up("3"), up("4")), nil},
		"and with fewer, which it wants to be resized to": {newJob().with("worker", 8).needs(1),
			elastic(1, partly("worker", 8, 4, 4)),
			of(done("0"), done("1"), done("2"), done("3"), done("4"), up("5"), up("6"), up("7")), nil},
		"fewer than its minimum are left": {newJob().with("worker", 4).needs(2), elastic(2, admitted("worker", 4)),
			of(done("0"), done("1"), done("2"), up("3")), map[string]int32{"worker": 3}},
		"all of its pods have ended": {twoTasks().needs(1), elastic(1, all),
			of(pod("job-ps-0").running(), done("0"), done("1")), map[string]int32{"worker": 2}},
		"it was scaled down": {newJob().with("worker", 1).needs(1), elastic(1, admitted("worker", 3)), of(up("0")), nil},
	} {
		t.Run(name, func(t *testing.T) {
			same(t, "reclaimable", test.want,
				see(t, test.job.is(volcano.Running).Job, test.admission, test.pods).Progress.Reclaimable)
		})
	}
}

// sized gives the task that many replicas.
func (j jobBuilder) sized(task string, count int32) jobBuilder {
	for i := range j.Spec.Tasks {
		if j.Spec.Tasks[i].Name == task {
			j.Spec.Tasks[i].Replicas = count
		}
	}
	return j
}

// TestQuotaThatWasGivenBackIsNotUsed: pods that a job has again wait until others have ended, or it queues again.
func TestQuotaThatWasGivenBackIsNotUsed(t *testing.T) {
	up := func(i string) podBuilder { return pod("job-worker-" + i).running() }
	for name, test := range map[string]struct {
		job       jobBuilder
		admission jobs.Admission
		pods      []client.Object
		writes    []string
		state     string
	}{
		"a gang that is scaled up again": {newJob().with("worker", 3).needs(1), partly("worker", 3, 3, 1), of(up("0")), nil,
			"Running Before: before"},
		"one of its pods has ended": {newJob().with("worker", 3).needs(1), partly("worker", 3, 3, 1),
			of(pod("job-worker-0").ended(0)), []string{"create job-worker-1"}, "Running Before: before"},
		"a gang of which too little is left begins again": {newJob().with("worker", 3), partly("worker", 3, 3, 1), nil, nil,
			"Pending AdmittedAnew: The job gives up its quota, and queues again: it has given part of it back, and the rest is for fewer pods than must run"},
		"it does so once its pods are gone": {newJob().with("worker", 3), partly("worker", 3, 3, 1), of(up("0")), nil,
			"Pending Starting: Pods are being started"},
		"a task that has given all of it back": {twoTasks().needs(1), func() jobs.Admission {
			a := admitted("ps", 1, "worker", 2)
			a.PodSets["worker"] = jobs.PodSetAdmission{Count: 2, Asked: 2}
			return a
		}(), of(pod("job-ps-0").running()), nil,
			"Running TaskWithoutQuota: Task worker had ended or was scaled to no pods, and gave its quota back: they start once the others have ended, or when the job is aborted and resumed"},
	} {
		t.Run(name, func(t *testing.T) {
			got := see(t, test.job.is(volcano.Running).Job, test.admission, test.pods)
			same(t, "writes", test.writes, writes(got))
			if s := state(got); s != test.state {
				t.Errorf("state %q, want %q", s, test.state)
			}
		})
	}
}

// TestTheTaskThatIsResizedWantsThePodsThatAreLeft: the queue takes back the quota of those that have ended.
func TestTheTaskThatIsResizedWantsThePodsThatAreLeft(t *testing.T) {
	job := newJob().with("worker", 4).needs(1).is(volcano.Running)
	pods := of(pod("job-worker-0").ended(0), pod("job-worker-1").running(), pod("job-worker-2"),
		pod("job-worker-3").ended(1))
	same(t, "without policies", map[string]int32{"worker": 2},
		see(t, job.Job, admitted("worker", 4), pods).Progress.Needed)
	restarts := job.on(bus.PodEvictedEvent, bus.RestartJobAction)
	same(t, "where a pod that failed may run again", map[string]int32{"worker": 3},
		see(t, restarts.Job, admitted("worker", 4), pods).Progress.Needed)
}

func TestPodsAreKnownByVolcanosLabels(t *testing.T) {
	job := newJob().with("worker", 2, func(task *volcano.TaskSpec) {
		task.Template.Labels = map[string]string{"mine": "too"}
		task.Template.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
		task.Template.Spec.HostNetwork = true
	})
	job.Spec.Queue, job.Spec.SchedulerName = "gpu", volcano.SchedulerName
	job.Status.Version, job.Status.RetryCount = 2, 1
	got := made(t, see(t, job.Job, admitted("worker", 2), nil), "job-worker-1")
	same(t, "labels", map[string]string{"mine": "too", "volcano.sh/job-name": "job", "volcano.sh/job-namespace": "ns",
		"volcano.sh/queue-name": "gpu",
		"volcano.sh/task-spec":  "worker", "volcano.sh/task-index": "1", "muster.dev/job-uid": "job-uid"}, got.Labels)
	same(t, "annotations", map[string]string{"volcano.sh/job-name": "job", "volcano.sh/queue-name": "gpu",
		"volcano.sh/task-spec": "worker", "volcano.sh/task-index": "1",
		"volcano.sh/job-version": "2", "volcano.sh/job-retry-count": "1", "volcano.sh/template-uid": "job-worker",
		"volcano.sh/job-type":          "Job",
		"scheduling.k8s.io/group-name": "job-job-uid", "muster.dev/restarts": "2"}, got.Annotations)
	if s := got.Spec; s.RestartPolicy != corev1.RestartPolicyOnFailure || s.SchedulerName != "" ||
		s.DNSPolicy != corev1.DNSClusterFirstWithHostNet {
		t.Errorf("restartPolicy %s, scheduler %q, DNS %s", s.RestartPolicy, s.SchedulerName, s.DNSPolicy)
	}
}
