package controller_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/jobs/batchjob"
	"github.com/musterhq/muster/internal/jobs/controller"
)

// batchWorld is a world with one batch Job ns/job instead of the JobSet.
type batchWorld struct {
	*world
	// evictions is how many evictions are still to come, each once all pods are ready. sizes are those that the queue
	// grants before these, one after the other, each once the pods of the last one are ready.
	evictions int
	sizes     []int32
}

// newBatchWorld returns a world with the Job, the ClusterQueue cq and the ResourceFlavor f, in which the fault occurs.
func newBatchWorld(t *testing.T, f fault, job *batchv1.Job, evictions int, sizes ...int32) *batchWorld {
	t.Helper()
	w := newWorld(t, f, job, clusterQueue("cq"), flavor())
	w.job = job.Name
	w.reconciler = controller.NewReconciler(batchjob.API, w.recordingClient(), w.events, w.clock)
	return &batchWorld{world: w, evictions: evictions, sizes: sizes}
}

// newBatchJob returns ns/job with two concurrent pods; queue is its queue label, "" for none.
func newBatchJob(queue string, suspended bool) *batchv1.Job {
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "job", Namespace: "ns", UID: "job-uid", Generation: 1}}
	if queue != "" {
		job.Labels = map[string]string{kueue.QueueLabel: queue}
		job.Annotations = map[string]string{muster.QueuedAnnotation: muster.QueuedItself} // as an admission policy does
	}
	job.Spec.Parallelism, job.Spec.Completions, job.Spec.Suspend = ptr.To[int32](2), ptr.To[int32](2), ptr.To(suspended)
	job.Spec.Template.Spec.Containers = []corev1.Container{{Name: "c"}}
	return job
}

func (b *batchWorld) batchJob() *batchv1.Job {
	return &list[batchv1.JobList](b.world).Items[0]
}

// settle runs all controllers in turn until none of them writes any more.
func (b *batchWorld) settle() {
	b.t.Helper()
	for range 100 {
		before := b.changes
		b.reconcile()
		b.admit()
		b.resize()
		b.evict()
		b.runJob()
		if b.changes == before {
			return
		}
	}
	b.failUnsettled()
}

// evict evicts the Workload if an eviction is still to come and all pods are ready.
func (b *batchWorld) evict() {
	for _, wl := range list[kueue.WorkloadList](b.world).Items {
		if b.evictions == 0 || len(b.sizes) > 0 ||
			!meta.IsStatusConditionTrue(wl.Status.Conditions, kueue.WorkloadPodsReady) {
			continue
		}
		b.evictions--
		b.evictWorkload(&wl)
	}
}

// resize grants the next size once the Job has as many ready pods as were granted, and none of the last size is left.
func (b *batchWorld) resize() {
	for _, wl := range list[kueue.WorkloadList](b.world).Items {
		if len(b.sizes) == 0 || wl.Status.Admission == nil || len(wl.Status.ResourceRequests) > 0 {
			continue
		}
		granted := &wl.Status.Admission.PodSetAssignments[0]
		if s := b.batchJob().Status; s.Active != *granted.Count || ptr.Deref(s.Ready, 0) != *granted.Count {
			continue
		}
		if b.sizes[0] < *granted.Count {
			wl.Status.ResourceRequests = []kueue.PodSetRequest{{Name: granted.Name}} // what the pods that go still use
		}
		granted.Count, b.sizes = ptr.To(b.sizes[0]), b.sizes[1:]
		b.updateStatus(&wl)
	}
}

// runJob acts as the Job controller: it moves the Job one step on.
func (b *batchWorld) runJob() {
	for _, job := range list[batchv1.JobList](b.world).Items {
		s := &job.Status
		known := len(s.Conditions) > 0 && s.Conditions[0].Type == batchv1.JobSuspended &&
			s.Conditions[0].Status == corev1.ConditionTrue
		switch {
		case len(s.Conditions) > 0 && s.Conditions[0].Type == batchv1.JobComplete:
			continue
		case *job.Spec.Suspend && ptr.Deref(s.Terminating, 0) > 0:
			s.Terminating = nil
		case *job.Spec.Suspend && s.Active > 0:
			s.Active, s.Ready, s.Terminating, s.StartTime = 0, nil, ptr.To(s.Active), nil
		case *job.Spec.Suspend && !known:
			s.Conditions = []batchv1.JobCondition{{Type: batchv1.JobSuspended, Status: corev1.ConditionTrue}}
		case *job.Spec.Suspend:
			continue
		case known:
			s.Conditions = nil
		case s.Active != *job.Spec.Parallelism:
			s.Active, s.StartTime = *job.Spec.Parallelism, ptr.To(metav1.NewTime(epoch))
		case ptr.Deref(s.Ready, 0) != s.Active:
			s.Ready = ptr.To(s.Active)
		case b.fate(&job) == "" || b.evictions > 0 || len(b.sizes) > 0:
			continue
		default:
			s.Succeeded, s.Active, s.Ready = s.Active, 0, nil
			s.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue, Message: "all done"}}
		}
		b.updateStatus(&job)
	}
}

// batchLives are the Jobs of TestFailedWritesDoNotChangeTheOutcomeOfABatchJob, how often each is evicted, and to which
// sizes it is resized before.
var batchLives = map[string]struct {
	job       func() *batchv1.Job
	evictions int
	sizes     []int32
}{
	"created suspended":     {func() *batchv1.Job { return newBatchJob("cq", true) }, 0, nil},
	"created running":       {func() *batchv1.Job { return newBatchJob("cq", false) }, 0, nil},
	"evicted and run again": {func() *batchv1.Job { return newBatchJob("cq", true) }, 2, nil},
	"with fewer pods than parallelism": {func() *batchv1.Job {
		job := newBatchJob("cq", true)
		job.Annotations = map[string]string{kueue.JobMinParallelismAnnotation: "1"}
		return job
	}, 1, nil},
	"shrunk, grown, evicted and run again": {func() *batchv1.Job {
		job := newBatchJob("cq", true)
		job.Spec.CompletionMode = ptr.To(batchv1.IndexedCompletion)
		job.Spec.Template.Annotations = map[string]string{muster.MinReplicasAnnotation: "1",
			muster.MaxReplicasAnnotation: "3"}
		return job
	}, 1, []int32{1, 3}},
}

// TestFailedWritesDoNotChangeTheOutcomeOfABatchJob: each write of each Job's life fails in turn, before or after it
// takes effect. The final state is that without the fault.
func TestFailedWritesDoNotChangeTheOutcomeOfABatchJob(t *testing.T) {
	for name, life := range batchLives {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			live := func(t *testing.T, f fault) *batchWorld {
				w := newBatchWorld(t, f, life.job(), life.evictions, life.sizes...)
				w.settle()
				return w
			}
			good := live(t, fault{})
			want := good.state()
			if len(want.Jobs[0].Status.Conditions) != 1 || want.Jobs[0].Status.Conditions[0].Type != batchv1.JobComplete {
				t.Fatalf("without a fault the Job did not complete: %+v", want.Jobs[0])
			}
			if w := want.Workloads[0]; !meta.IsStatusConditionTrue(w.Status.Conditions, kueue.WorkloadFinished) ||
				len(w.Finalizers) != 0 {
				t.Fatalf("the Workload is not finished, or has finalizers: %+v", w)
			}
			for _, f := range faults(good.writes) {
				t.Run(f.String(), func(t *testing.T) {
					if diff := cmp.Diff(want, live(t, f).state()); diff != "" {
						t.Errorf("the final state differs (-fault-free +got):\n%s", diff)
					}
				})
			}
		})
	}
}

// TestWritesOfABatchJob checks that a Job costs five writes besides its admission.
func TestWritesOfABatchJob(t *testing.T) {
	w := newBatchWorld(t, fault{}, newBatchJob("cq", true), 0)
	w.put(userLocalQueue("cq"))
	w.settle()
	workload := list[kueue.WorkloadList](w.world).Items[0].Name
	want := []string{
		"create Workload " + workload + " #1",
		"change Job job #1",                   // started
		"status Workload " + workload + " #1", // pods are ready
		"status Workload " + workload + " #2", // finished
		"change Workload " + workload + " #1", // finalizer removed
	}
	if diff := cmp.Diff(want, w.writes); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	w.settle()
	if len(w.writes) != len(want) {
		t.Errorf("writes after the end: %v", w.writes[len(want):])
	}
}

// TestUnheldBatchJobIsStoppedAtOnce: a Job of a queue that was created without suspend is suspended, without an event,
// and started only once the Job controller has observed that.
func TestUnheldBatchJobIsStoppedAtOnce(t *testing.T) {
	w := newBatchWorld(t, fault{}, newBatchJob("cq", false), 0)
	w.reconcile()
	if !*w.batchJob().Spec.Suspend {
		t.Error("the Job runs without quota")
	}
	w.reconcile()
	if w.admit(); len(w.events.events) != 0 {
		t.Errorf("events = %v, want none: the user did not resume the Job", w.events.events)
	}
	w.reconcile()
	if !*w.batchJob().Spec.Suspend {
		t.Error("the Job is started before the Job controller has observed its suspension")
	}
}

func TestBatchJobWithoutAQueueIsLeftAlone(t *testing.T) {
	for name, job := range map[string]*batchv1.Job{"running": newBatchJob("", false),
		"suspended by its user": newBatchJob("", true)} {
		t.Run(name, func(t *testing.T) {
			w := newBatchWorld(t, fault{}, job, 0)
			w.reconcile()
			if len(w.writes) != 0 {
				t.Errorf("writes = %v, want none", w.writes)
			}
		})
	}
}

// TestTheMarkOfAJobThatLeftItsQueueIsChanged, once: its users may start it then.
func TestTheMarkOfAJobThatLeftItsQueueIsChanged(t *testing.T) {
	job := newBatchJob("cq", true)
	job.Labels = nil
	w := newBatchWorld(t, fault{}, job, 0)
	for range 2 {
		w.reconcile()
	}
	if mark := w.batchJob().Annotations[muster.QueuedAnnotation]; mark != muster.NotQueued || len(w.writes) != 1 {
		t.Errorf("the mark is %q after the writes %v, want %q and one write", mark, w.writes, muster.NotQueued)
	}
}

// TestAJobKeepsItsMarkWithoutItsLabel: its Workload keeps it in its queue.
func TestAJobKeepsItsMarkWithoutItsLabel(t *testing.T) {
	w := newBatchWorld(t, fault{}, newBatchJob("cq", true), 0)
	w.reconcile()
	for _, labels := range []map[string]string{nil, {kueue.QueueLabel: ""}} {
		job := w.batchJob()
		job.Labels, job.Spec.Suspend = labels, ptr.To(false)
		job.Generation++
		if err := w.api.Update(t.Context(), job); err != nil {
			t.Fatal(err)
		}
		w.reconcile()
		if job := w.batchJob(); !*job.Spec.Suspend || job.Annotations[muster.QueuedAnnotation] != muster.QueuedItself {
			t.Errorf("with the labels %v: suspended: %t, mark %q, want it held in its queue", labels, *job.Spec.Suspend,
				job.Annotations[muster.QueuedAnnotation])
		}
	}
}

// TestQueueNamedByAnAnnotation: older manifests name the queue of a Job or JobSet by an annotation. The label takes
// precedence.
func TestQueueNamedByAnAnnotation(t *testing.T) {
	labelled, older := newBatchJob("cq", true), newBatchJob("", true)
	js := newJobSet("")
	for object, queue := range map[client.Object]string{labelled: "other", older: "cq", js: "cq"} {
		object.SetAnnotations(map[string]string{kueue.QueueAnnotation: queue})
	}
	for name, w := range map[string]*world{
		"batch Job":                newBatchWorld(t, fault{}, older, 0).world,
		"batch Job with the label": newBatchWorld(t, fault{}, labelled, 0).world,
		"JobSet":                   newWorld(t, fault{}, js, clusterQueue("cq"), flavor()),
	} {
		w.reconcile()
		if got := list[kueue.WorkloadList](w).Items; len(got) != 1 || got[0].Spec.QueueName != "cq" {
			t.Errorf("%s: Workloads = %+v, want one in the queue cq", name, got)
		}
		if got := list[kueue.LocalQueueList](w).Items; len(got) != 1 || got[0].Name != "cq" {
			t.Errorf("%s: LocalQueues = %+v, want cq", name, got)
		}
	}
}

// TestDefaultLocalQueueOfAUserTakesInLaterBatchJobs: Jobs that were created before the LocalQueue are left alone.
func TestDefaultLocalQueueOfAUserTakesInLaterBatchJobs(t *testing.T) {
	for name, tc := range map[string]struct {
		queueCreated int // in seconds after the Job
		want         int
	}{
		"queue before the Job": {-1, 1},
		"queue after the Job":  {1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			job := newBatchJob("", false)
			job.CreationTimestamp = metav1.NewTime(epoch)
			w := newBatchWorld(t, fault{}, job, 0)
			queue := userLocalQueue("default")
			queue.CreationTimestamp = metav1.Unix(epoch.Unix()+int64(tc.queueCreated), 0)
			w.put(queue)
			w.reconcile()
			if got := len(list[kueue.WorkloadList](w.world).Items); got != tc.want {
				t.Errorf("%d Workloads, want %d", got, tc.want)
			}
		})
	}
}

// TestDeletedWorkloadCountsUntilItsBatchJobHasStopped: its finalizer keeps it while the Job has pods. It is created
// again then.
func TestDeletedWorkloadCountsUntilItsBatchJobHasStopped(t *testing.T) {
	w := newBatchWorld(t, fault{}, newBatchJob("cq", true), 0)
	w.fate = running
	w.settle()
	first := list[kueue.WorkloadList](w.world).Items[0]
	if err := w.api.Delete(t.Context(), &first); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		w.reconcile()
		pods := w.batchJob().Status.Active + ptr.Deref(w.batchJob().Status.Terminating, 0)
		now := list[kueue.WorkloadList](w.world).Items
		if pods > 0 && (len(now) != 1 || now[0].Status.Admission == nil) {
			t.Fatalf("%d pods run without an admitted Workload: %+v", pods, now)
		}
		w.runJob()
	}
	w.settle()
	if now := list[kueue.WorkloadList](w.world).Items; len(now) != 1 || now[0].DeletionTimestamp != nil {
		t.Errorf("Workloads = %+v, want a new one", now)
	}
	if job := w.batchJob(); *job.Spec.Suspend || job.Spec.Template.Spec.NodeSelector["pool"] != "f" {
		t.Errorf("the Job does not run again on the nodes of its flavor: %+v", job.Spec)
	}
}

// evictWithoutPods lowers the parallelism of a running Job to 0, as its user would, and evicts it. Until then it keeps
// its quota.
func evictWithoutPods(t *testing.T, w *batchWorld) {
	t.Helper()
	job := w.batchJob()
	job.Spec.Parallelism = ptr.To[int32](0)
	if err := w.api.Update(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	job.Status.Active, job.Status.Ready = 0, nil
	w.updateStatus(job)
	w.reconcile()
	wl := list[kueue.WorkloadList](w.world).Items[0]
	if wl.Status.Admission == nil {
		t.Error("the Job has lost its quota")
	}
	w.evictWorkload(&wl)
}

// TestEvictedBatchJobWithoutPodsReturnsItsQuota: a Job whose user has lowered its parallelism to 0 keeps its quota, to
// grow back, but not from others.
func TestEvictedBatchJobWithoutPodsReturnsItsQuota(t *testing.T) {
	w := newBatchWorld(t, fault{}, newBatchJob("cq", true), 0)
	w.fate = running
	w.settle()
	evictWithoutPods(t, w)
	for range 5 {
		w.reconcile()
		w.runJob()
	}
	if wl := list[kueue.WorkloadList](w.world).Items[0]; wl.Status.Admission != nil {
		t.Errorf("the evicted Job still holds quota: %+v", wl.Status)
	}
}

// TestPartlyAdmittedBatchJobStaysWithoutPods: a Job that runs with fewer pods than it asked for, and whose user has
// lowered its parallelism to 0, keeps its quota, and has no pods after an eviction either. Once it is raised the Job
// queues for that.
func TestPartlyAdmittedBatchJobStaysWithoutPods(t *testing.T) {
	asked := newBatchJob("cq", true)
	asked.Annotations = map[string]string{kueue.JobMinParallelismAnnotation: "1"}
	w := newBatchWorld(t, fault{}, asked, 0)
	w.fate = running
	live := func() {
		for range 10 {
			w.reconcile()
			w.admit()
			w.runJob()
		}
	}
	w.reconcile()
	w.admit()
	wl := list[kueue.WorkloadList](w.world).Items[0]
	wl.Status.Admission.PodSetAssignments[0].Count = ptr.To[int32](1)
	w.updateStatus(&wl)
	live()
	job := w.batchJob()
	if *job.Spec.Parallelism != 1 || job.Status.Active != 1 {
		t.Fatalf("parallelism %d, %d pods, want one", *job.Spec.Parallelism, job.Status.Active)
	}
	evictWithoutPods(t, w)
	live()
	if job = w.batchJob(); *job.Spec.Suspend || *job.Spec.Parallelism != 0 {
		t.Errorf("admitted again: suspend %t, parallelism %d, want to run no pods", *job.Spec.Suspend, *job.Spec.Parallelism)
	}
	job.Spec.Parallelism = ptr.To[int32](2)
	if err := w.api.Update(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	live()
	if job = w.batchJob(); *job.Spec.Suspend || *job.Spec.Parallelism != 2 || job.Status.Active != 2 {
		t.Errorf("raised: suspend %t, parallelism %d, %d pods, want two pods that run", *job.Spec.Suspend,
			*job.Spec.Parallelism, job.Status.Active)
	}
}

// TestBatchJobQueuedWithoutPodsIsQueuedAnewOnceItHasSome: it has quota for none.
func TestBatchJobQueuedWithoutPodsIsQueuedAnewOnceItHasSome(t *testing.T) {
	job := newBatchJob("cq", true)
	job.Spec.Parallelism = ptr.To[int32](0)
	w := newBatchWorld(t, fault{}, job, 0)
	w.fate = running
	w.reconcile()
	w.admit()
	for range 3 {
		w.reconcile()
	}
	raised := w.batchJob()
	raised.Spec.Parallelism = ptr.To[int32](2)
	if err := w.api.Update(t.Context(), raised); err != nil {
		t.Fatal(err)
	}
	w.settle()
	if got := list[kueue.WorkloadList](w.world).Items; len(got) != 1 || got[0].Spec.PodSets[0].Count != 2 {
		t.Errorf("Workloads = %+v, want one for two pods", got)
	}
	if got := w.batchJob(); *got.Spec.Suspend || *got.Spec.Parallelism != 2 || got.Status.Active != 2 {
		t.Errorf("suspend %t, parallelism %d, %d pods, want two pods that run", *got.Spec.Suspend, *got.Spec.Parallelism,
			got.Status.Active)
	}
}

func TestWorkloadOfADeletedBatchJobCountsUntilItsPodsAreGone(t *testing.T) {
	w := newBatchWorld(t, fault{}, newBatchJob("cq", true), 0)
	w.fate = running
	w.settle()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "ns",
		Labels: map[string]string{batchv1.ControllerUidLabel: "job-uid"}}}
	w.put(pod)
	first := list[kueue.WorkloadList](w.world).Items[0]
	for _, o := range []client.Object{w.batchJob(), &first} {
		if err := w.api.Delete(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	if result := w.reconcile(); result.RequeueAfter == 0 || len(list[kueue.WorkloadList](w.world).Items) != 1 {
		t.Fatal("the quota is released, or the Job not requeued, though a pod is left")
	}
	// A pod on a dead node is there for good.
	w.clock.SetTime(list[kueue.WorkloadList](w.world).Items[0].DeletionTimestamp.Add(8 * time.Minute))
	if result := w.reconcile(); result.RequeueAfter != time.Minute {
		t.Errorf("after 8 minutes the pods are listed again after %s, want a minute", result.RequeueAfter)
	}
	if err := w.api.Delete(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	w.reconcile()
	if got := list[kueue.WorkloadList](w.world).Items; len(got) != 0 {
		t.Errorf("Workloads = %+v, want none", got)
	}
}

// TestConflictingCheckUpdatesFinishTheWorkload: a job whose pods cannot get what an admission check sets fails to
// start.
func TestConflictingCheckUpdatesFinishTheWorkload(t *testing.T) {
	job := newBatchJob("cq", true)
	job.Spec.Template.Spec.NodeSelector = map[string]string{"zone": "a"}
	w := newBatchWorld(t, fault{}, job, 0)
	w.reconcile()
	wl := list[kueue.WorkloadList](w.world).Items[0]
	wl.Status.AdmissionChecks = []kueue.AdmissionCheckState{{Name: "c", State: kueue.CheckStateReady,
		PodSetUpdates: []kueue.PodSetUpdate{{Name: "main", NodeSelector: map[string]string{"zone": "b"}}}}}
	w.updateStatus(&wl)
	w.settle()
	wl = list[kueue.WorkloadList](w.world).Items[0]
	c := meta.FindStatusCondition(wl.Status.Conditions, kueue.WorkloadFinished)
	if c == nil || c.Reason != kueue.WorkloadFinishedReasonFailedToStart ||
		!strings.Contains(c.Message, `zone of pod set main to "b", but it is "a" already`) {
		t.Errorf("Finished = %+v, want FailedToStart with both values", c)
	}
	if !*w.batchJob().Spec.Suspend {
		t.Error("the Job was started")
	}
}
