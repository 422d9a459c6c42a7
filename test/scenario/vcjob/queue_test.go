package vcjob

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	scheduling "github.com/musterhq/muster/api/volcano/scheduling/v1beta1"
	"github.com/musterhq/muster/test/scenario/harness"
)

// TestAVolcanoQueueHasAClusterQueue: a Volcano Queue controls a ClusterQueue with its weight. Jobs that name it run
// within its capability, and its status has their number and allocation.
func TestAVolcanoQueueHasAClusterQueue(t *testing.T) {
	w := newWorld(t)
	queue := &scheduling.Queue{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace + "-team"}, Spec: scheduling.QueueSpec{
		Weight: 3,
		// The capacity of the simulated nodes is not shared among the queues: they are tainted.
		Deserved:   corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")},
		Capability: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}}}
	w.Shared(queue)
	oneCPU := func(task *volcano.TaskSpec) {
		task.Template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
	}
	in := func(job *volcano.Job) { job.Spec.Queue = queue.Name }
	harness.UntilOne(w.World, &kueue.ClusterQueueList{}, queue.Name, "is controlled by the Queue and has its weight",
		func(q *kueue.ClusterQueue) bool {
			return metav1.IsControlledBy(q, queue) && q.Spec.Cohort == "volcano" && q.Spec.FairSharing != nil &&
				q.Spec.FairSharing.Weight.Value() == 3
		})
	w.Create(w.job("first", with("worker", 2, endless, oneCPU), in))
	w.untilPhase("first", volcano.Running)
	w.Create(w.job("second", with("worker", 1, endless, oneCPU), in))
	w.untilJob("second", "waits for quota",
		func(job *volcano.Job) bool { return job.Status.State.Reason == "WaitingForQuota" })
	harness.UntilOne(w.World, &scheduling.QueueList{}, queue.Name, "has both jobs and 2 CPUs in its status",
		func(q *scheduling.Queue) bool {
			cpu := q.Status.Allocated[corev1.ResourceCPU]
			return q.Status.State == scheduling.QueueStateOpen && q.Status.Running == 1 && q.Status.Pending == 1 &&
				cpu.String() == "2"
		})
	for _, name := range []string{"first-worker-0", "first-worker-1", "second-worker-0"} {
		w.EndReplica(name, 0, 0)
	}
	w.untilPhase("second", volcano.Completed)
}

// TestAVolcanoQueueIsChangedAndDeletedWithJobsInIt: a larger capability admits a waiting job. When the Queue is
// deleted, its jobs run to their end, and the ClusterQueue is deleted after that.
func TestAVolcanoQueueIsChangedAndDeletedWithJobsInIt(t *testing.T) {
	w := newWorld(t)
	cpu := func(amount string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(amount)}
	}
	queue := &scheduling.Queue{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace + "-deleted"},
		Spec: scheduling.QueueSpec{Deserved: cpu("1"), Capability: cpu("1")}}
	w.Shared(queue)
	untilClusterQueue := func(what string, holds func(*kueue.ClusterQueue) bool) {
		t.Helper()
		harness.Until(w.World, &kueue.ClusterQueueList{}, what, func(list *kueue.ClusterQueueList) bool {
			for i := range list.Items {
				if list.Items[i].Name == queue.Name {
					return holds(&list.Items[i])
				}
			}
			return holds(nil)
		})
	}
	untilClusterQueue("the ClusterQueue exists", func(q *kueue.ClusterQueue) bool { return q != nil })
	job := func(name string) *volcano.Job {
		return w.job(name, func(job *volcano.Job) { job.Spec.Queue = queue.Name },
			with("worker", 1, endless, func(task *volcano.TaskSpec) {
				task.Template.Spec.Containers[0].Resources.Requests = cpu("1")
			}))
	}
	w.Create(job("first"))
	w.untilPhase("first", volcano.Running)
	w.Create(job("second"))
	w.untilJob("second", "waits for quota",
		func(job *volcano.Job) bool { return job.Status.State.Reason == "WaitingForQuota" })
	w.Change(queue, func() { queue.Spec.Deserved, queue.Spec.Capability = cpu("2"), cpu("2") })
	w.untilPhase("second", volcano.Running)

	w.Delete(queue)
	untilClusterQueue("the ClusterQueue is terminating but in use",
		func(q *kueue.ClusterQueue) bool { return q != nil && !q.DeletionTimestamp.IsZero() })
	for _, name := range []string{"first", "second"} {
		w.EndReplica(name+"-worker-0", 0, 0)
		if job := w.untilPhase(name, volcano.Completed); job.Status.RetryCount != 0 || job.Status.Version != 0 {
			t.Errorf("%s has retryCount %d and version %d, want 0 and 0", name, job.Status.RetryCount, job.Status.Version)
		}
	}
	untilClusterQueue("the ClusterQueue is deleted", func(q *kueue.ClusterQueue) bool { return q == nil })
}

// TestQueuesBelowAParentShareItsCapability: two Queues below a parent of 2 CPUs deserve one CPU each. The jobs of one
// may use both, but not a third; a job of the other Queue takes back the CPU that this Queue deserves, although it also
// uses resources of which the Queue says nothing.
func TestQueuesBelowAParentShareItsCapability(t *testing.T) {
	w := newWorld(t)
	cpu := func(amount string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(amount)}
	}
	parent := &scheduling.Queue{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace + "-parent"},
		Spec: scheduling.QueueSpec{Capability: cpu("2")}}
	w.Shared(parent)
	child := func(name string) string {
		queue := &scheduling.Queue{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace + "-" + name},
			Spec: scheduling.QueueSpec{Parent: parent.Name, Deserved: cpu("1")}}
		w.Shared(queue)
		return queue.Name
	}
	borrows, owns := child("borrows"), child("owns")
	job := func(name, queue string) *volcano.Job {
		return w.job(name, func(job *volcano.Job) { job.Spec.Queue = queue },
			with("worker", 1, endless, func(task *volcano.TaskSpec) {
				task.Template.Spec.Containers[0].Resources.Requests = cpu("1")
			}))
	}
	for _, name := range []string{"first", "second"} {
		w.Create(job(name, borrows))
		w.untilPhase(name, volcano.Running)
	}
	waits := func(job *volcano.Job) bool { return job.Status.State.Reason == "WaitingForQuota" }
	w.Create(job("third", borrows))
	w.untilJob("third", "waits, since the parent has no more", waits)
	w.Create(job("owner", owns))
	w.untilPhase("owner", volcano.Running)
	harness.Until(w.World, &volcano.JobList{}, "one of the first two jobs waits again, and the other one runs on",
		func(list *volcano.JobList) bool {
			running, waiting := 0, 0
			for i := range list.Items {
				switch job := &list.Items[i]; {
				case job.Name != "first" && job.Name != "second":
				case job.Status.State.Phase == volcano.Running:
					running++
				case waits(job):
					waiting++
				}
			}
			return running == 1 && waiting == 1
		})
}

// TestALocalQueueGoesWithItsVolcanoQueue: the LocalQueue that was made for the jobs of a Volcano Queue is deleted with
// the Queue, and jobs that name it are told that there is no such queue.
func TestALocalQueueGoesWithItsVolcanoQueue(t *testing.T) {
	w := newWorld(t)
	amount := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
	queue := &scheduling.Queue{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace + "-gone"},
		Spec: scheduling.QueueSpec{Deserved: amount}}
	w.Shared(queue)
	in := func(job *volcano.Job) { job.Spec.Queue = queue.Name }
	w.Create(w.job("before", with("worker", 1, endless), in))
	w.untilPhase("before", volcano.Running)
	w.EndReplica("before-worker-0", 0, 0)
	w.untilPhase("before", volcano.Completed)
	w.Delete(queue)
	harness.Until(w.World, &kueue.LocalQueueList{}, "the LocalQueue is deleted",
		func(list *kueue.LocalQueueList) bool { return len(list.Items) == 0 })
	w.Create(w.job("after", with("worker", 1, endless), in))
	w.untilJob("after", "reports that there is no such queue",
		func(job *volcano.Job) bool { return job.Status.State.Reason == "QueueNotFound" })
}
