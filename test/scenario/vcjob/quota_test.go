package vcjob

import (
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"

	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	"github.com/musterhq/muster/test/scenario/harness"
)

// gpus has each pod of a task ask for that many GPUs. Simulated nodes have 8.
func gpus(count string) func(*volcano.TaskSpec) {
	return func(task *volcano.TaskSpec) {
		list := corev1.ResourceList{"nvidia.com/gpu": resource.MustParse(count)}
		task.Template.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: list, Limits: list}
	}
}

// TestAGangThatIsScaledDownGivesQuotaBack: of a running gang that is scaled down from three pods to one, the quota of
// the two removed pods goes to a job that waits for it, and the pod that stays runs on.
func TestAGangThatIsScaledDownGivesQuotaBack(t *testing.T) {
	w := newWorld(t)
	w.queue(3)
	gang := w.job("gang", with("worker", 3, endless), func(job *volcano.Job) { job.Spec.MinAvailable = 3 })
	w.Create(gang)
	w.untilJob("gang", "runs with all its pods", func(job *volcano.Job) bool { return job.Status.Running == 3 })
	w.Create(w.job("waits", with("worker", 2, endless)))
	w.untilJob("waits", "waits for quota",
		func(job *volcano.Job) bool { return job.Status.State.Reason == "WaitingForQuota" })
	w.Change(gang, func() { gang.Spec.MinAvailable, gang.Spec.Tasks[0].Replicas = 1, 1 })
	w.Operator().Kill()
	w.untilJob("waits", "runs with the quota of the removed pods",
		func(job *volcano.Job) bool { return job.Status.Running == 2 })
	w.UntilOnlyPods("gang-worker-0", "waits-worker-0", "waits-worker-1")
	w.Change(gang, func() { gang.Spec.Tasks[0].Replicas = 2 })
	w.EndReplica("waits-worker-0", 0, 0)
	w.EndReplica("waits-worker-1", 0, 0)
	w.EndReplica("gang-worker-0", 0, 0)
	w.EndReplica("gang-worker-1", 0, 0) // it starts once the first has ended
	if job := w.untilPhase("gang", volcano.Completed); job.Status.Succeeded != 2 || job.Status.RetryCount != 0 {
		t.Errorf("succeeded = %d, retryCount = %d, want 2 and 0", job.Status.Succeeded, job.Status.RetryCount)
	}
}

// TestCompletedPodsGiveQuotaBack: of a job that can run with fewer pods than it has, the quota of pods that have
// completed goes at once to a job of lower priority, whether all pods of a task or only some have completed.
func TestCompletedPodsGiveQuotaBack(t *testing.T) {
	w := newWorld(t)
	w.queue(4)
	urgent := w.prioritized("urgent", 3)
	with("other", 1, endless)(urgent)
	urgent.Spec.MinAvailable = 1
	w.Create(urgent)
	w.untilJob("urgent", "runs with all its pods", func(job *volcano.Job) bool { return job.Status.Running == 4 })
	w.Create(w.job("first", with("worker", 1, endless)), w.job("second", with("worker", 2, endless)))
	w.untilJob("second", "waits for quota",
		func(job *volcano.Job) bool { return job.Status.State.Reason == "WaitingForQuota" })
	w.EndReplica("urgent-worker-0", 0, 0)
	w.untilPhase("first", volcano.Running)
	w.EndReplica("urgent-worker-1", 0, 0)
	w.Operator().Kill()
	w.EndReplica("urgent-worker-2", 0, 0)
	w.untilJob("second", "runs with the quota of the completed pods",
		func(job *volcano.Job) bool { return job.Status.Running == 2 })
	if job := w.untilJob("urgent", "reports one running pod",
		func(job *volcano.Job) bool { return job.Status.Running == 1 }); job.Status.RetryCount != 0 ||
		job.Status.Version != 0 {
		t.Errorf("retryCount = %d, version = %d, want 0 and 0", job.Status.RetryCount, job.Status.Version)
	}
	w.EndReplica("urgent-other-0", 0, 0)
	w.untilPhase("urgent", volcano.Completed)
}

// TestPlacesOfCompletedAndRemovedPodsAreFree: on nodes that Muster assigns, the places of pods that have completed or
// were removed are given to others, and the pods that run on stay on their nodes.
func TestPlacesOfCompletedAndRemovedPodsAreFree(t *testing.T) {
	w := newWorld(t)
	w.queueOnNodes(4)
	gang := w.job("gang", with("worker", 2, endless, gpus("8")))
	array := w.job("array", with("worker", 2, endless, gpus("8")), func(job *volcano.Job) { job.Spec.MinAvailable = 1 })
	w.Create(gang, array)
	for _, name := range []string{"gang", "array"} {
		w.untilJob(name, "runs with all its pods", func(job *volcano.Job) bool { return job.Status.Running == 2 })
	}
	w.Change(gang, func() { gang.Spec.Tasks[0].Replicas = 1 })
	w.EndReplica("array-worker-0", 0, 0)
	w.Create(w.job("next", with("worker", 2, endless, gpus("8"))))
	w.untilJob("next", "runs with all its pods", func(job *volcano.Job) bool { return job.Status.Running == 2 })
	for _, name := range []string{"gang", "array"} {
		if job := w.untilJob(name, "has one running pod",
			func(job *volcano.Job) bool { return job.Status.Running == 1 }); job.Status.Version != 0 ||
			job.Status.RetryCount != 0 {
			t.Errorf("%s: version = %d, retryCount = %d, want 0 and 0", name, job.Status.Version, job.Status.RetryCount)
		}
	}
}

// TestAJobWhosePodsStartAgainIsPending: a running job all of whose pods are lost is Pending until enough of them run
// again. It is not evicted for that: its queue does not place pods on nodes.
func TestAJobWhosePodsStartAgainIsPending(t *testing.T) {
	w := newWorld(t)
	w.queue(2)
	w.Create(w.job("lost", with("worker", 2, endless)))
	w.untilPhase("lost", volcano.Running)
	untilNext := w.phases()
	for _, name := range []string{"lost-worker-0", "lost-worker-1"} {
		w.Delete(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: w.Namespace}})
	}
	untilNext(volcano.Pending)
	untilNext(volcano.Running)
}

// phases returns a function that waits until a VCJob of the namespace is in a phase, at that time or later, also if the
// phase lasts only briefly.
func (w *world) phases() func(volcano.JobPhase) {
	w.Helper()
	seen := make(chan volcano.JobPhase, 1000)
	harness.Follow(w.World, &volcano.JobList{},
		func(event watch.Event) { seen <- event.Object.(*volcano.Job).Status.State.Phase }, &sync.Mutex{})
	return func(want volcano.JobPhase) {
		w.Helper()
		deadline := time.After(time.Minute)
		for {
			select {
			case got := <-seen:
				if got == want {
					return
				}
			case <-deadline:
				w.Fatalf("no job became %s", want)
			}
		}
	}
}

// TestAnyPodsThatReachMinAvailableStartAJob: where minAvailable is below the sum of the tasks' minimums, any pods
// count. A task that fits nowhere, or for which quota or nodes are short, holds up no other, whatever the order of the
// tasks; nor does one with a minimum of 0.
func TestAnyPodsThatReachMinAvailableStartAJob(t *testing.T) {
	w := newWorld(t)
	w.queueOnNodes(4)
	small := newWorld(t)
	small.queue(2)
	needs := func(pods int32) func(*volcano.Job) { return func(job *volcano.Job) { job.Spec.MinAvailable = pods } }
	nowhere := func(task *volcano.TaskSpec) {
		task.Template.Spec.NodeSelector = map[string]string{"no": "such"}
		gpus("1")(task)
	}
	none := func(task *volcano.TaskSpec) { task.MinAvailable = ptr.To[int32](0) }
	for _, c := range []struct {
		in      *world
		job     *volcano.Job
		running int32
		without string
	}{
		{w, w.job("five-on-four-nodes", with("t0", 1, endless, gpus("8")), with("t1", 1, endless, gpus("8")),
			with("t2", 1, endless, gpus("8")), with("t3", 1, endless, gpus("8")), with("t4", 1, endless, gpus("8")), needs(1)),
			4, "Task t4 got no quota"},
		{w, w.job("last-fits-nowhere", with("a", 1, endless, gpus("1")), with("b", 0, endless),
			with("c", 2, endless, nowhere, none), needs(1)), 1, "Task c got no quota"},
		{w, w.job("first-fits-nowhere", with("c", 2, endless, nowhere, none), with("a", 1, endless, gpus("1"))), 1,
			"Task c got no quota"},
		{w, w.job("two-fit-nowhere", with("c", 1, endless, nowhere), with("a", 2, endless, gpus("1")),
			with("d", 1, endless, nowhere), needs(2)), 2, "Tasks c, d got no quota"},
		{small, small.job("little-quota", with("a", 1, endless), with("b", 1, endless), with("c", 1, endless), needs(2)), 2,
			"Task c got no quota"},
	} {
		c.in.Create(c.job)
		c.in.untilJob(c.job.Name, "runs with the pods that fit", func(job *volcano.Job) bool {
			state := job.Status.State
			return state.Phase == volcano.Running && job.Status.Running == c.running &&
				strings.HasPrefix(state.Message, c.without)
		})
		c.in.Delete(c.job)
	}
	w.Create(w.job("too-few", with("a", 1, endless, gpus("1")), with("c", 2, endless, nowhere), needs(2)))
	w.untilJob("too-few", "waits", func(job *volcano.Job) bool {
		return job.Status.State.Reason == "WaitingForQuota" && job.Status.Running == 0
	})
}

// TestATaskWithoutQuotaRunsOnceTheOthersHaveEnded: the job then queues again with it, and completes.
func TestATaskWithoutQuotaRunsOnceTheOthersHaveEnded(t *testing.T) {
	w := newWorld(t)
	w.queue(1)
	w.Create(w.job("turns", with("a", 1, endless), with("b", 1, endless),
		func(job *volcano.Job) { job.Spec.MinAvailable = 1 }))
	for _, task := range []string{"a", "b"} {
		w.untilJob("turns", "runs task "+task,
			func(job *volcano.Job) bool { return job.Status.TaskStatusCount[task].Phase[corev1.PodRunning] == 1 })
		w.EndReplica("turns-"+task+"-0", 0, 0)
	}
	w.untilPhase("turns", volcano.Completed)
}
