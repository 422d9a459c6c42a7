package genericjob

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	tensorstack "github.com/musterhq/muster/api/tensorstack/v1beta1"
	"github.com/musterhq/muster/test/scenario/harness"
)

// maxDuration is how long the queues let jobs run: long enough to start a job and observe it on a busy machine.
const maxDuration = "15s"

// TestAQueueBoundsHowLongAGenericJobRuns: a job that has run for the max-duration of its queue is paused, gets a
// warning event, and releases its quota. It runs again when it is resumed.
func TestAQueueBoundsHowLongAGenericJobRuns(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.queue(2)
	w.annotateQueue(w.Namespace, "muster.dev/max-duration", maxDuration)
	w.Create(w.job("long", with("worker", 2, 0), inQueue(0)))
	w.untilPhase("long", tensorstack.JobPhaseRunning)
	job := w.untilPhase("long", tensorstack.JobPhasePaused)
	if mode := job.Spec.RunMode; mode == nil || mode.Pause == nil || !mode.Pause.Enabled {
		t.Errorf("runMode = %+v, want pause enabled", mode)
	}
	if event := w.UntilEvent("long", "MaxDurationExceeded"); event.Type != corev1.EventTypeWarning {
		t.Errorf("type of the event = %s, want Warning", event.Type)
	}
	w.untilNoWorkload()
	w.annotateQueue(w.Namespace, "muster.dev/max-duration", "0")
	w.pause("long", false)
	w.untilPhase("long", tensorstack.JobPhaseRunning)
}

// TestAQueueBoundsPodsThatOutliveTheirJob: a completed job whose clean-up policy leaves a pod running holds its quota
// only until the max-duration of its queue.
func TestAQueueBoundsPodsThatOutliveTheirJob(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.queue(2)
	w.annotateQueue(w.Namespace, "muster.dev/max-duration", maxDuration)
	w.Create(w.job("done", with("worker", 2, 0), inQueue(0), func(job *tensorstack.GenericJob) {
		job.Spec.SuccessRules, job.Spec.CleanUpPolicy = rules("worker 0"), tensorstack.CleanUpNone
	}))
	w.untilPhase("done", tensorstack.JobPhaseRunning)
	w.EndReplica("done-worker-0", 0, 0)
	w.untilPhase("done", tensorstack.JobPhaseSucceeded)
	w.UntilOnlyPods("done-worker-0")
	w.UntilEvent("done", "MaxDurationExceeded")
	w.Create(w.job("next", with("worker", 2, 0), inQueue(0)))
	w.untilPhase("next", tensorstack.JobPhaseRunning)
}

// TestAQueueBoundsHowLongABatchJobRuns: a batch Job that has run for the max-duration of its queue is suspended, and
// its Workload is deactivated, so that it is not admitted again.
func TestAQueueBoundsHowLongABatchJobRuns(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.queue(2)
	w.annotateQueue(w.Namespace, "muster.dev/max-duration", maxDuration)
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "long", Namespace: w.Namespace,
		Labels: map[string]string{kueue.QueueLabel: "q"}}}
	job.Spec.Parallelism, job.Spec.Completions = ptr.To[int32](2), ptr.To[int32](2)
	job.Spec.Template = w.job("", with("worker", 1, 0)).Spec.ReplicaSpecs[0].Template
	job.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
	w.Create(job)
	until := func(what string, holds func(*batchv1.Job) bool) {
		t.Helper()
		harness.UntilOne(w.World, &batchv1.JobList{}, "long", what, holds)
	}
	until("runs", func(job *batchv1.Job) bool { return !*job.Spec.Suspend && job.Status.Active == 2 })
	until("is suspended", func(job *batchv1.Job) bool { return *job.Spec.Suspend && job.Status.Active == 0 })
	w.UntilWorkloadOf("long", "is deactivated and holds no quota", func(wl *kueue.Workload) bool {
		return !ptr.Deref(wl.Spec.Active, true) && wl.Status.Admission == nil
	})
	w.UntilOnlyPods()
}

// TestAClosedQueueAdmitsNothing: jobs that run in a queue when it is closed continue, also through a restart. New jobs
// wait until it is open again.
func TestAClosedQueueAdmitsNothing(t *testing.T) {
	w := newWorld(t)
	w.queue(4)
	w.Create(w.job("in", with("worker", 2, 1), inQueue(0)))
	w.untilPhase("in", tensorstack.JobPhaseRunning)
	w.annotateQueue(w.Namespace, "muster.dev/closed", "true")
	w.Create(w.job("out", with("worker", 2, 0), inQueue(0)))
	w.untilWaits("out", 0)
	w.EndReplica("in-worker-0", 0, 1)
	w.EndReplica("in-worker-0", 1, 0)
	w.EndReplica("in-worker-1", 0, 0)
	w.untilPhase("in", tensorstack.JobPhaseSucceeded)
	w.untilWaits("out", 0)
	w.annotateQueue(w.Namespace, "muster.dev/closed", "false")
	w.untilPhase("out", tensorstack.JobPhaseRunning)
}

// vendorQueues creates the queues of the vendor's example: a cohort with a quota of 6 pods (6 times 50 CPUs in the
// example) and the queues a to d, each with a borrowing limit and a queue priority but no quota of its own.
func (w *world) vendorQueues() {
	w.Helper()
	flavor := kueue.ResourceFlavorReference(w.Namespace)
	group := func(nominal int64, borrowing *resource.Quantity) []kueue.ResourceGroup {
		return []kueue.ResourceGroup{{CoveredResources: []corev1.ResourceName{corev1.ResourcePods},
			Flavors: []kueue.FlavorQuotas{{Name: flavor,
				Resources: []kueue.ResourceQuota{{Name: corev1.ResourcePods,
					NominalQuota: *resource.NewQuantity(nominal, resource.DecimalSI), BorrowingLimit: borrowing}}}}}}
	}
	w.Shared(&kueue.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace}},
		&kueue.Cohort{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace},
			Spec: kueue.CohortSpec{ResourceGroups: group(6, nil)}})
	for _, q := range []struct {
		name     string
		limit    int64
		priority string
	}{{"a", 4, "1"}, {"b", 2, "1"}, {"c", 1, "2"}, {"d", 4, "2"}} {
		name := w.Namespace + "-" + q.name
		w.Shared(&kueue.ClusterQueue{
			ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{"muster.dev/queue-priority": q.priority}},
			Spec: kueue.ClusterQueueSpec{NamespaceSelector: &metav1.LabelSelector{}, Cohort: kueue.CohortReference(w.Namespace),
				ResourceGroups: group(0, resource.NewQuantity(q.limit, resource.DecimalSI))}})
		w.Create(&kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Name: q.name, Namespace: w.Namespace},
			Spec: kueue.LocalQueueSpec{ClusterQueue: kueue.ClusterQueueReference(name)}})
	}
}

// TestTheVendorsExampleOfQueuePriorities: the cohort is full. A new job waits if its queue has no higher priority than
// the others or is at its limit. A new job in a queue of higher priority preempts the job of lowest priority in a lower
// queue, except in queues that are not preemptible.
func TestTheVendorsExampleOfQueuePriorities(t *testing.T) {
	w := newWorld(t)
	w.vendorQueues()
	submit := func(name string, priority int32) {
		t.Helper()
		w.Create(w.job(name, with("worker", 1, 0), inQueue(priority),
			func(job *tensorstack.GenericJob) { job.Spec.Scheduler.T9kScheduler.Queue = name[:1] }))
	}
	running := []string{"a1", "a2", "b1", "c1", "d1"}
	for _, name := range running {
		submit(name, 50)
	}
	submit("a3", 10)
	for _, name := range append(running, "a3") {
		w.untilPhase(name, tensorstack.JobPhaseRunning)
	}
	before := w.uids()
	submit("b2", 50)
	w.untilWaits("b2", 50)
	submit("c2", 50)
	w.untilWaits("c2", 50)
	submit("d2", 0)
	w.untilPhase("d2", tensorstack.JobPhaseRunning)
	w.untilWaits("a3", 10)
	w.UntilOnlyPods("a1-worker-0", "a2-worker-0", "b1-worker-0", "c1-worker-0", "d1-worker-0", "d2-worker-0")
	w.annotateQueue(w.Namespace+"-a", "muster.dev/preemptible", "false")
	submit("d3", 0)
	w.untilPhase("d3", tensorstack.JobPhaseRunning)
	w.untilWaits("b1", 50)
	w.UntilOnlyPods("a1-worker-0", "a2-worker-0", "c1-worker-0", "d1-worker-0", "d2-worker-0", "d3-worker-0")
	after := w.uids()
	for _, name := range []string{"a1-worker-0", "a2-worker-0", "c1-worker-0", "d1-worker-0"} {
		if before[name] != after[name] {
			t.Errorf("pod %s was recreated, want it to keep running", name)
		}
	}
}
