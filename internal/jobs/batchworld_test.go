package jobs_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/batchjob"
	"github.com/musterhq/muster/internal/workload"
)

// batchWorld is a world with one batch Job ns/job instead of the JobSet.
type batchWorld struct {
	*world
	// evictions are still to come: each once all pods are ready.
	evictions int
}

func newBatchWorld(t *testing.T, f fault, job *batchv1.Job, evictions int) *batchWorld {
	t.Helper()
	w := newWorld(t, f, job, clusterQueue("cq"), flavor())
	w.job = job.Name
	w.reconciler = jobs.NewReconciler(batchjob.API, w.watched(), w.events, w.clock)
	return &batchWorld{world: w, evictions: evictions}
}

// newBatchJob is ns/job with two pods at once; queue is its label.
func newBatchJob(queue string, suspended bool) *batchv1.Job {
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "job", Namespace: "ns", UID: "job-uid", Generation: 1}}
	if queue != "" {
		job.Labels = map[string]string{kueue.QueueLabel: queue}
	}
	job.Spec.Parallelism, job.Spec.Completions, job.Spec.Suspend = ptr.To[int32](2), ptr.To[int32](2), ptr.To(suspended)
	job.Spec.Template.Spec.Containers = []corev1.Container{{Name: "c"}}
	return job
}

func (w *batchWorld) batchJob() *batchv1.Job { return &list[batchv1.JobList](w.world).Items[0] }

// settle has everybody act in turn until nobody has anything left to do.
func (w *batchWorld) settle() {
	w.t.Helper()
	for range 100 {
		before := w.changes
		w.reconcile()
		w.admit()
		w.evict()
		w.runJob()
		if w.changes == before {
			return
		}
	}
	w.t.Fatalf("no end is in sight; the last writes:\n%s", strings.Join(w.writes[max(0, len(w.writes)-20):], "\n"))
}

// evict takes the admission back, as often as it is to be, once all pods are ready.
func (w *batchWorld) evict() {
	for _, wl := range list[kueue.WorkloadList](w.world).Items {
		if w.evictions == 0 || !meta.IsStatusConditionTrue(wl.Status.Conditions, kueue.WorkloadPodsReady) {
			continue
		}
		w.evictions--
		meta.SetStatusCondition(&wl.Status.Conditions, metav1.Condition{Type: kueue.WorkloadEvicted, Status: metav1.ConditionTrue,
			Reason: kueue.WorkloadEvictedByPreemption, Message: "because", LastTransitionTime: metav1.NewTime(epoch)})
		w.updateStatus(&wl)
	}
}

// runJob is the Job controller: it moves the Job one step on.
func (w *batchWorld) runJob() {
	for _, job := range list[batchv1.JobList](w.world).Items {
		s := &job.Status
		known := len(s.Conditions) > 0 && s.Conditions[0].Type == batchv1.JobSuspended && s.Conditions[0].Status == corev1.ConditionTrue
		switch {
		case len(s.Conditions) > 0 && s.Conditions[0].Type == batchv1.JobComplete:
			continue
		case *job.Spec.Suspend && ptr.Deref(s.Terminating, 0) > 0:
			s.Terminating = nil
		case *job.Spec.Suspend && s.Active > 0:
			s.Active, s.Ready, s.Terminating = 0, nil, ptr.To(s.Active)
		case *job.Spec.Suspend && !known:
			s.Conditions = []batchv1.JobCondition{{Type: batchv1.JobSuspended, Status: corev1.ConditionTrue}}
		case *job.Spec.Suspend:
			continue
		case known:
			s.Conditions = nil
		case s.Active == 0:
			s.Active = *job.Spec.Parallelism
		case ptr.Deref(s.Ready, 0) == 0:
			s.Ready = ptr.To(s.Active)
		case w.fate(&job) == "" || w.evictions > 0:
			continue
		default:
			s.Succeeded, s.Active, s.Ready = s.Active, 0, nil
			s.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue, Message: "all done"}}
		}
		w.updateStatus(&job)
	}
}

var batchLives = map[string]struct {
	job       func() *batchv1.Job
	evictions int
}{
	"held from its creation": {func() *batchv1.Job { return newBatchJob("cq", true) }, 0},
	"held by nobody":         {func() *batchv1.Job { return newBatchJob("cq", false) }, 0},
	"evicted and run again":  {func() *batchv1.Job { return newBatchJob("cq", true) }, 2},
	"with fewer pods than it asked for": {func() *batchv1.Job {
		job := newBatchJob("cq", true)
		job.Annotations = map[string]string{kueue.JobMinParallelismAnnotation: "1"}
		return job
	}, 1},
}

// TestNoWriteThatFailsChangesTheEndOfABatchJob: whichever write of its life fails,
// before it took effect or after, it comes to the same end.
func TestNoWriteThatFailsChangesTheEndOfABatchJob(t *testing.T) {
	for name, life := range batchLives {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			live := func(t *testing.T, f fault) *batchWorld {
				w := newBatchWorld(t, f, life.job(), life.evictions)
				w.settle()
				return w
			}
			good := live(t, fault{})
			want := good.state()
			if len(want.Jobs[0].Status.Conditions) != 1 || want.Jobs[0].Status.Conditions[0].Type != batchv1.JobComplete {
				t.Fatalf("it did not complete: %+v", want.Jobs[0])
			}
			if w := want.Workloads[0]; !meta.IsStatusConditionTrue(w.Status.Conditions, kueue.WorkloadFinished) || len(w.Finalizers) != 0 {
				t.Fatalf("its Workload is not over: %+v", w)
			}
			for _, f := range faults(good.writes) {
				t.Run(f.String(), func(t *testing.T) {
					if diff := cmp.Diff(want, live(t, f).state()); diff != "" {
						t.Errorf("the end is another (-fault-free +got):\n%s", diff)
					}
				})
			}
		})
	}
}

// TestABatchJobsLifeTakesFewWrites: six where the reference implementation needs
// eight, its queue's admission counted in both.
func TestABatchJobsLifeTakesFewWrites(t *testing.T) {
	w := newBatchWorld(t, fault{}, newBatchJob("cq", true), 0)
	w.put(personsQueue("cq"))
	w.settle()
	workload := list[kueue.WorkloadList](w.world).Items[0].Name
	want := []string{
		"create Workload " + workload + " #1",
		"change Job job #1",                   // started
		"status Workload " + workload + " #1", // pods are ready
		"status Workload " + workload + " #2", // finished
		"change Workload " + workload + " #1", // let go
	}
	if diff := cmp.Diff(want, w.writes); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	w.settle()
	if len(w.writes) != len(want) {
		t.Errorf("it goes on writing: %v", w.writes[len(want):])
	}
}

func TestABatchJobThatNobodyHeldIsStoppedAtOnce(t *testing.T) {
	w := newBatchWorld(t, fault{}, newBatchJob("cq", false), 0)
	w.reconcile()
	if !*w.batchJob().Spec.Suspend {
		t.Error("it runs without quota")
	}
	w.reconcile()
	if w.admit(); len(w.events.events) != 0 {
		t.Errorf("people are told of what they did not do: %v", w.events.events)
	}
	w.reconcile()
	if !*w.batchJob().Spec.Suspend {
		t.Error("it is started before the Job controller knows that it was stopped")
	}
}

func TestABatchJobWithoutAQueueIsNoneOfOurs(t *testing.T) {
	for name, job := range map[string]*batchv1.Job{"one that runs": newBatchJob("", false), "one that its user suspended": newBatchJob("", true)} {
		t.Run(name, func(t *testing.T) {
			w := newBatchWorld(t, fault{}, job, 0)
			w.reconcile()
			if len(w.writes) != 0 {
				t.Errorf("wrote %v", w.writes)
			}
		})
	}
}

func TestALocalQueueThatAPersonMadeTakesInBatchJobsThatComeAfterIt(t *testing.T) {
	for name, tc := range map[string]struct {
		queueMade int // seconds after the Job
		want      int
	}{
		"before it": {-1, 1},
		"after it":  {1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			job := newBatchJob("", false)
			job.CreationTimestamp = metav1.NewTime(epoch)
			w := newBatchWorld(t, fault{}, job, 0)
			queue := personsQueue("default")
			queue.CreationTimestamp = metav1.Unix(epoch.Unix()+int64(tc.queueMade), 0)
			w.put(queue)
			w.reconcile()
			if got := len(list[kueue.WorkloadList](w.world).Items); got != tc.want {
				t.Errorf("%d Workloads, want %d", got, tc.want)
			}
		})
	}
}

// TestABatchJobThatIsAMistakeWaitsAndIsToldOnce, however often it changes meanwhile, and anew when the mistake is another or comes again.
func TestABatchJobThatIsAMistakeWaitsAndIsToldOnce(t *testing.T) {
	job := newBatchJob("cq", true)
	job.Annotations = map[string]string{kueue.JobMinParallelismAnnotation: "many"}
	w := newBatchWorld(t, fault{}, job, 0)
	toldOf := func(words string) (n int) {
		for _, event := range w.events.events {
			if strings.HasPrefix(event, "InvalidJob: The annotation") && strings.Contains(event, words) {
				n++
			}
		}
		return n
	}
	w.settle()
	if got := list[kueue.WorkloadList](w.world).Items; len(got) != 0 {
		t.Errorf("it was queued: %v", got)
	}
	changed := w.batchJob() // by the Job controller
	changed.Status.Conditions = append(changed.Status.Conditions, batchv1.JobCondition{Type: batchv1.JobSuspended, Status: corev1.ConditionTrue})
	if err := w.api.Status().Update(t.Context(), changed); err != nil {
		t.Fatal(err)
	}
	w.settle()
	if got := toldOf(`"many"`); got != 1 {
		t.Errorf("told %d times: %v", got, w.events.events)
	}
	for _, parallelism := range []string{"more", "1", "many"} {
		mended := w.batchJob()
		mended.Annotations[kueue.JobMinParallelismAnnotation] = parallelism
		if err := w.api.Update(t.Context(), mended); err != nil {
			t.Fatal(err)
		}
		w.reconcile()
	}
	if more, many := toldOf(`"more"`), toldOf(`"many"`); more != 1 || many != 2 {
		t.Errorf("told %d and %d times: %v", more, many, w.events.events)
	}
}

// TestAJobWhoseQueueThereIsNotIsToldOnce, and which there are; and that no queue of its own was made just before it is no mistake.
func TestAJobWhoseQueueThereIsNotIsToldOnce(t *testing.T) {
	w := newBatchWorld(t, fault{}, newBatchJob("nowhere", true), 0)
	told := func() (told []string) {
		w.reconcile()
		for _, event := range w.events.events {
			if strings.HasPrefix(event, "QueueNotFound") {
				told = append(told, event)
			}
		}
		return told
	}
	if got := told(); len(got) != 0 {
		t.Errorf("told before anybody says that it waits: %v", got)
	}
	waiting := list[kueue.WorkloadList](w.world).Items[0]
	meta.SetStatusCondition(&waiting.Status.Conditions, metav1.Condition{Type: kueue.WorkloadQuotaReserved, Status: metav1.ConditionFalse,
		Reason: kueue.WorkloadInadmissible, Message: "LocalQueue nowhere doesn't exist", LastTransitionTime: metav1.NewTime(epoch)})
	w.updateStatus(&waiting)
	told()
	want := []string{"QueueNotFound: The job waits: Queue nowhere is neither a LocalQueue of namespace ns nor a ClusterQueue that takes its jobs: there are cq"}
	if diff := cmp.Diff(want, told()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	w.put(&kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Name: "another", Namespace: "ns"}, Spec: kueue.LocalQueueSpec{ClusterQueue: "cq"}})
	if got := told(); len(got) != 1 {
		t.Errorf("told again when another queue was made: %v", got)
	}
	w.put(&kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Name: "nowhere", Namespace: "ns"}, Spec: kueue.LocalQueueSpec{ClusterQueue: "cq"}})
	w.settle()
	if got := told(); len(got) != 1 || len(w.batchJob().Status.Conditions) == 0 {
		t.Errorf("once it is made: told %v, %+v", got, w.batchJob().Status)
	}
}

// TestADeletedWorkloadCountsUntilItsBatchJobHasStopped, and is made anew then.
func TestADeletedWorkloadCountsUntilItsBatchJobHasStopped(t *testing.T) {
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
			t.Fatalf("%d pods run without quota", pods)
		}
		w.runJob()
	}
	w.settle()
	if now := list[kueue.WorkloadList](w.world).Items; len(now) != 1 || now[0].DeletionTimestamp != nil {
		t.Errorf("Workloads: %+v", now)
	}
	if job := w.batchJob(); *job.Spec.Suspend || job.Spec.Template.Spec.NodeSelector["pool"] != "f" {
		t.Errorf("it does not run again: %+v", job.Spec)
	}
}

func TestTheWorkloadOfADeletedBatchJobCountsUntilItsPodsAreGone(t *testing.T) {
	w := newBatchWorld(t, fault{}, newBatchJob("cq", true), 0)
	w.fate = running
	w.settle()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "ns", Labels: map[string]string{batchv1.ControllerUidLabel: "job-uid"}}}
	w.put(pod)
	first := list[kueue.WorkloadList](w.world).Items[0]
	for _, o := range []client.Object{w.batchJob(), &first} {
		if err := w.api.Delete(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	if result := w.reconcile(); result.RequeueAfter == 0 || len(list[kueue.WorkloadList](w.world).Items) != 1 {
		t.Fatal("the quota is given back though a pod is left")
	}
	if err := w.api.Delete(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	w.reconcile()
	if got := list[kueue.WorkloadList](w.world).Items; len(got) != 0 {
		t.Errorf("Workloads: %+v", got)
	}
}

func TestAPrebuiltWorkloadIsWaitedForAndTaken(t *testing.T) {
	job := newBatchJob("cq", true)
	job.Labels[kueue.PrebuiltWorkloadLabel] = "prebuilt"
	w := newBatchWorld(t, fault{}, job, 0)
	w.settle()
	if got := list[kueue.WorkloadList](w.world).Items; len(got) != 0 {
		t.Fatalf("another was made: %v", got)
	}
	prebuilt := &kueue.Workload{ObjectMeta: metav1.ObjectMeta{Name: "prebuilt", Namespace: "ns"}, Spec: kueue.WorkloadSpec{
		PodSets: []kueue.PodSet{{Name: "main", Count: 2, Template: newBatchJob("", true).Spec.Template}}}}
	w.put(prebuilt)
	w.settle()
	if got := list[kueue.WorkloadList](w.world).Items; len(got) != 1 || !metav1.IsControlledBy(&got[0], job) || got[0].Spec.QueueName != "cq" {
		t.Errorf("Workloads: %+v", got)
	}
	if len(w.batchJob().Status.Conditions) != 1 {
		t.Error("it did not run")
	}
}

// TestWhoQueuesAnewKeepsItsQuotaUntilItsPodsAreGone: its user stops it and has its pods ask for more, in one change.
func TestWhoQueuesAnewKeepsItsQuotaUntilItsPodsAreGone(t *testing.T) {
	for _, name := range []string{"", "prebuilt"} {
		t.Run("names a Workload "+name, func(t *testing.T) {
			job := newBatchJob("cq", true)
			w := newBatchWorld(t, fault{}, job, 0)
			w.fate = running
			if name != "" {
				job = w.batchJob()
				job.Labels[kueue.PrebuiltWorkloadLabel] = name
				if err := w.api.Update(t.Context(), job); err != nil {
					t.Fatal(err)
				}
				w.put(&kueue.Workload{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns"}, Spec: kueue.WorkloadSpec{
					PodSets: []kueue.PodSet{{Name: "main", Count: 2, Template: newBatchJob("", true).Spec.Template}}}})
			}
			w.settle()
			changed := w.batchJob()
			if changed.Status.Active != 2 {
				t.Fatalf("it does not run: %+v", changed.Status)
			}
			changed.Spec.Suspend = ptr.To(true)
			changed.Spec.Template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse("1")}
			if err := w.api.Update(t.Context(), changed); err != nil {
				t.Fatal(err)
			}
			holds := func() bool {
				w.reconcile()
				return slices.ContainsFunc(list[kueue.WorkloadList](w.world).Items, func(wl kueue.Workload) bool {
					return workload.HoldsQuota(&wl) && !workload.IsFinished(&wl)
				})
			}
			for step := range 2 {
				for range 2 { // as often as it is looked at
					if !holds() {
						t.Fatalf("its quota is given back while pods are there: step %d, %+v", step, w.batchJob().Status)
					}
				}
				w.runJob()
			}
			for range 10 {
				if !holds() {
					return
				}
				w.runJob()
			}
			t.Error("its pods are gone, and it has their quota yet")
		})
	}
}

// TestAJobHearsOfTheWorkloadThatItNames: though that is not its own yet, such as one that was admitted while the job took it.
func TestAJobHearsOfTheWorkloadThatItNames(t *testing.T) {
	job := newBatchJob("cq", true)
	job.Labels[kueue.PrebuiltWorkloadLabel] = "prebuilt"
	conflict := apierrors.NewConflict(schema.GroupResource{Group: kueue.GroupVersion.Group, Resource: "workloads"}, "prebuilt", errors.New("changed since"))
	w := newBatchWorld(t, fault{write: "change Workload prebuilt #1", err: conflict}, job, 0)
	prebuilt := &kueue.Workload{ObjectMeta: metav1.ObjectMeta{Name: "prebuilt", Namespace: "ns"}, Spec: kueue.WorkloadSpec{
		PodSets: []kueue.PodSet{{Name: "main", Count: 2, Template: newBatchJob("", true).Spec.Template}}}}
	w.put(prebuilt)
	look := func() {
		t.Helper()
		if _, err := w.reconciler.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(job)}); err != nil {
			t.Fatal(err)
		}
	}
	hears := func(w2 *kueue.Workload) bool {
		return slices.Equal(jobs.JobsOfWorkload(w.reconciler, w2), []ctrl.Request{{NamespacedName: client.ObjectKeyFromObject(job)}})
	}
	look()
	if !w.faulty {
		t.Fatalf("no such write: %v", w.writes)
	}
	other := prebuilt.DeepCopy()
	other.Name = "other"
	if !hears(prebuilt) || hears(other) {
		t.Errorf("of the one that it names: %t, of another: %t", hears(prebuilt), hears(other))
	}
	owned := other.DeepCopy()
	owned.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job"))}
	foreign := other.DeepCopy()
	foreign.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("CronJob"))}
	if !hears(owned) || hears(foreign) {
		t.Errorf("of its own: %t, of that of another kind: %t", hears(owned), hears(foreign))
	}
	if err := w.api.Delete(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	look()
	if hears(prebuilt) {
		t.Error("it is gone, and hears of it")
	}
}

func TestWhatChecksAddThatCannotBeAddedEndsTheWorkload(t *testing.T) {
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
	if c == nil || c.Reason != kueue.WorkloadFinishedReasonFailedToStart || !strings.Contains(c.Message, `zone of pod set main to "b", but it is "a" already`) {
		t.Errorf("Finished: %+v", c)
	}
	if !*w.batchJob().Spec.Suspend {
		t.Error("it was started")
	}
}
