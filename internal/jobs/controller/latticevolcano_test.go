package controller_test

import (
	"context"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	lattice "github.com/musterhq/muster/api/lattice/v1alpha1"
	"github.com/musterhq/muster/api/muster"
	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/controller"
	"github.com/musterhq/muster/internal/jobs/latticejob"
	"github.com/musterhq/muster/internal/jobs/vcjob"
	"github.com/musterhq/muster/internal/workload"
)

// queueForVolcano returns a world whose LatticeJob waits in a queue of Muster's, to be run by Volcano.
func queueForVolcano(t *testing.T, prepare ...func(*latticeWorld)) *latticeWorld {
	t.Helper()
	w := newExternalWorld(t)
	if err := w.api.Create(t.Context(), flavor()); err != nil {
		t.Fatal(err)
	}
	w.setVolcanoServed(true)
	w.edit(func(job *lattice.LatticeJob) { job.Spec.Queue = "cq" })
	for _, step := range prepare {
		step(w)
	}
	w.settle()
	if phase := w.latticeJob().Status.Phase; phase != lattice.Pending || w.workload() == nil {
		t.Fatalf("the LatticeJob is %s, with the Workload %v; want it Pending with one", phase, w.workload())
	}
	return w
}

// runWithVolcano returns a world whose LatticeJob was admitted by Muster and is run by Volcano.
func runWithVolcano(t *testing.T, edits ...func(*lattice.LatticeJob)) *latticeWorld {
	t.Helper()
	w := queueForVolcano(t, func(w *latticeWorld) {
		for _, edit := range edits {
			w.edit(edit)
		}
	})
	w.admit()
	w.settle()
	setVCJobPhase(volcano.Running, "")(w)
	w.settle()
	if phase := w.latticeJob().Status.Phase; phase != lattice.Running || w.workload() == nil {
		t.Fatalf("the LatticeJob is %s, with the Workload %v; want it Running with one", phase, w.workload())
	}
	return w
}

// workload returns the only Workload, nil if there is none.
func (l *latticeWorld) workload() *kueue.Workload {
	l.t.Helper()
	all := list[kueue.WorkloadList](l.world).Items
	if len(all) == 0 {
		return nil
	}
	return &all[0]
}

// deleteVCJob deletes the VCJob as a user would.
func (l *latticeWorld) deleteVCJob() {
	l.t.Helper()
	l.changes++
	if err := l.api.DeleteAllOf(l.t.Context(), &volcano.Job{}, client.InNamespace("ns")); err != nil {
		l.t.Fatal(err)
	}
}

// withoutVCJobs is a client whose cache does not contain any VCJob yet.
type withoutVCJobs struct{ client.Client }

func (w withoutVCJobs) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if _, is := list.(*volcano.JobList); is {
		return nil
	}
	return w.Client.List(ctx, list, opts...)
}

// staleJob is a client whose cache contains an earlier version of the job.
type staleJob struct {
	client.Client
	job *lattice.LatticeJob
}

func (s staleJob) Get(ctx context.Context, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
	if job, is := object.(*lattice.LatticeJob); is {
		s.job.DeepCopyInto(job)
		return nil
	}
	return s.Client.Get(ctx, key, object, opts...)
}

// TestMistakeMadeAfterTheWorkloadDoesNotPreventTheStart: the job is admitted as it was before, and would otherwise hold
// its quota without running.
func TestMistakeMadeAfterTheWorkloadDoesNotPreventTheStart(t *testing.T) {
	w := queueForVolcano(t)
	w.edit(func(job *lattice.LatticeJob) {
		job.Labels = map[string]string{kueue.WorkloadPriorityClassLabel: "none-such"}
	})
	w.settle()
	w.admit()
	w.settle()
	if n := len(list[volcano.JobList](w.world).Items); n != 1 {
		t.Errorf("%d VCJobs were created, want 1; the LatticeJob's message is %q", n, w.latticeJob().Status.Message)
	}
}

// TestLostJobReturnsItsQuota: a LatticeJob whose VCJob was deleted will not run any more. A VCJob that is missing from
// the cache is not deleted: after a restart, the job may be cached before its VCJob.
func TestLostJobReturnsItsQuota(t *testing.T) {
	w := runWithVolcano(t)
	w.reconciler = controller.NewReconciler(latticejob.New(latticejob.Settings{External: true}),
		withoutVCJobs{w.recordingClient()}, w.events, w.clock)
	w.setVolcanoServed(true)
	before := w.changes
	if result := w.reconcile(); w.changes != before || result.RequeueAfter == 0 {
		t.Errorf("%d writes while the VCJob is not cached, requeued after %v; want none and a requeue", w.changes-before,
			result.RequeueAfter)
	}
	w.restart()
	w.setVolcanoServed(true)
	w.deleteVCJob()
	w.settle()
	if c := meta.FindStatusCondition(w.workload().Status.Conditions, kueue.WorkloadFinished); c == nil ||
		c.Reason != kueue.WorkloadFinishedReasonFailed {
		t.Errorf("the Workload is not finished as failed: %+v", w.workload().Status.Conditions)
	}
	if status := w.latticeJob().Status; status.Phase != lattice.Running {
		t.Errorf("the LatticeJob is %s (%s), want Running", status.Phase, status.Message)
	}
	if n := len(list[volcano.JobList](w.world).Items); n != 0 {
		t.Errorf("%d VCJobs were created again, want none", n)
	}
}

// TestDeletedJobHoldsItsQuotaWhileItsPodsRun: the pods that Volcano created count, those of a later VCJob of the same
// name do not.
func TestDeletedJobHoldsItsQuotaWhileItsPodsRun(t *testing.T) {
	for name, labels := range map[string]func(*volcano.Job) map[string]string{
		"started by this version": func(vcjob *volcano.Job) map[string]string {
			return vcjob.Spec.Tasks[0].Template.Labels
		},
		"started by an earlier version": func(vcjob *volcano.Job) map[string]string {
			return map[string]string{volcano.JobNameKey: vcjob.Name}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := runWithVolcano(t)
			pod := func(name string, at time.Time) *corev1.Pod {
				pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns",
					Labels: labels(&list[volcano.JobList](w.world).Items[0]), CreationTimestamp: metav1.NewTime(at)}}
				if err := w.api.Create(t.Context(), pod); err != nil {
					t.Fatal(err)
				}
				return pod
			}
			own := pod("job-t-0", epoch)
			if name == "started by an earlier version" {
				pod("job-of-another", time.Now().Add(time.Hour))
			}
			for _, o := range []client.Object{w.latticeJob(), w.workload()} {
				if err := w.api.Delete(t.Context(), o); err != nil {
					t.Fatal(err)
				}
			}
			if again := w.reconcile().RequeueAfter; again == 0 || w.workload() == nil {
				t.Errorf("requeued after %v with the Workload %v, want a requeue and one", again, w.workload())
			}
			if err := w.api.Delete(t.Context(), own); err != nil {
				t.Fatal(err)
			}
			if again := w.reconcile().RequeueAfter; again != 0 || w.workload() != nil {
				t.Errorf("without pods: requeued after %v with the Workload %v, want neither", again, w.workload())
			}
		})
	}
}

// evict evicts the job.
func (l *latticeWorld) evict() {
	l.t.Helper()
	evicted := l.workload()
	meta.SetStatusCondition(&evicted.Status.Conditions, metav1.Condition{Type: kueue.WorkloadEvicted,
		Status: metav1.ConditionTrue, Reason: kueue.WorkloadEvictedByPreemption})
	l.updateStatus(evicted)
}

// TestEvictedJobIsNotLost if the operator is killed between any two of its writes: the VCJob that it has deleted itself
// is created again.
func TestEvictedJobIsNotLost(t *testing.T) {
	life := func(t *testing.T, f fault) *latticeWorld {
		w := runWithVolcano(t)
		w.fault, w.seen, w.writes = f, map[string]int{}, nil
		w.evict()
		w.settle()
		w.admit()
		w.settle()
		return w
	}
	good := life(t, fault{})
	for _, f := range append(faults(good.writes), fault{}) {
		t.Run(f.String(), func(t *testing.T) {
			w := life(t, f)
			if n := len(list[volcano.JobList](w.world).Items); n != 1 || w.latticeJob().Status.Message == "" {
				t.Errorf("%d VCJobs after the second admission, want 1; the LatticeJob's message is %q", n,
					w.latticeJob().Status.Message)
			}
		})
	}
}

// TestEvictedJobIsNotLostToAStaleCache: a new leader may have observed that the VCJob is gone, but not yet the status
// that says that Muster deleted it.
func TestEvictedJobIsNotLostToAStaleCache(t *testing.T) {
	w := runWithVolcano(t)
	running := w.latticeJob()
	w.evict()
	w.reconcile()
	w.reconciler = controller.NewReconciler(latticejob.New(latticejob.Settings{External: true}),
		staleJob{w.recordingClient(), running}, w.events, w.clock)
	w.setVolcanoServed(true)
	w.reconcile()
	if meta.IsStatusConditionTrue(w.workload().Status.Conditions, kueue.WorkloadFinished) {
		t.Errorf("the Workload is finished, as if a user had deleted the VCJob; the LatticeJob's message is %q",
			w.latticeJob().Status.Message)
	}
	w.restart()
	w.setVolcanoServed(true)
	w.settle()
	w.admit()
	w.settle()
	if n := len(list[volcano.JobList](w.world).Items); n != 1 {
		t.Errorf("%d VCJobs after the second admission, want 1; the LatticeJob's message is %q", n,
			w.latticeJob().Status.Message)
	}
}

// TestLatticeJobHasNoWorkloadIfItsVCJobIsQueued: if Muster runs VCJobs that Volcano ran before, the LatticeJob's
// Workload is deleted, or both would take quota. It is gone once the pods that Volcano created are gone.
func TestLatticeJobHasNoWorkloadIfItsVCJobIsQueued(t *testing.T) {
	for name, edit := range map[string]func(*lattice.LatticeJob){
		"queue in the spec": func(*lattice.LatticeJob) {},
		"queue label":       func(job *lattice.LatticeJob) { job.Labels = map[string]string{kueue.QueueLabel: "cq"} },
	} {
		t.Run(name, func(t *testing.T) {
			w := runWithVolcano(t, edit)
			template := list[volcano.JobList](w.world).Items[0].Spec.Tasks[0].Template
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "job-t-0", Namespace: "ns", Labels: template.Labels}}
			ofMuster := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "job-t-1", Namespace: "ns",
				Labels: map[string]string{muster.JobUIDLabel: "the VCJob's", volcano.JobNameKey: "job"}}}
			for _, pod := range []*corev1.Pod{pod, ofMuster} {
				if err := w.api.Create(t.Context(), pod); err != nil {
					t.Fatal(err)
				}
			}
			w.reconciler = controller.NewReconciler(latticejob.New(latticejob.Settings{}), w.recordingClient(),
				w.events, w.clock)
			w.settle()
			if left := w.workload(); left == nil || left.DeletionTimestamp.IsZero() || w.reconcile().RequeueAfter == 0 {
				t.Errorf("while Volcano's pods run: Workload %v, want it terminating and the job requeued", left)
			}
			if err := w.api.Delete(t.Context(), pod); err != nil {
				t.Fatal(err)
			}
			w.settle()
			if left := w.workload(); left != nil {
				t.Errorf("a Workload is left, with finalizers %v", left.Finalizers)
			}
			if phase := w.latticeJob().Status.Phase; phase != lattice.Running {
				t.Errorf("the LatticeJob is %s, want Running", phase)
			}
		})
	}
}

// TestPrebuiltWorkloadIsForTheVCJob if Muster runs VCJobs: the LatticeJob creates the VCJob, with the label, without
// waiting for the Workload.
func TestPrebuiltWorkloadIsForTheVCJob(t *testing.T) {
	for _, queue := range []string{"", "cq"} {
		w := newExternalWorld(t)
		w.reconciler = controller.NewReconciler(latticejob.New(latticejob.Settings{}), w.recordingClient(), w.events, w.clock)
		if err := w.api.Create(t.Context(), &kueue.Workload{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "prebuilt"},
			Spec: kueue.WorkloadSpec{QueueName: "cq"}}); err != nil {
			t.Fatal(err)
		}
		w.edit(func(job *lattice.LatticeJob) {
			job.Labels = map[string]string{kueue.PrebuiltWorkloadLabel: "prebuilt"}
			if queue != "" {
				job.Labels[kueue.QueueLabel] = queue
			}
		})
		w.settle()
		created := list[volcano.JobList](w.world).Items
		if len(created) != 1 || created[0].Labels[kueue.PrebuiltWorkloadLabel] != "prebuilt" ||
			len(w.workload().OwnerReferences) > 0 {
			t.Errorf("queue label %q: %d VCJobs, message %q, owners of the Workload %v; want one labelled VCJob and no owners",
				queue, len(created), w.latticeJob().Status.Message, w.workload().OwnerReferences)
		}
	}
}

// TestPodsAreNotCountedTwiceIfVolcanoTakesOver: the VCJob's Workload counts the pods that Muster has started, for as
// long as it holds quota; the LatticeJob gets one only then.
func TestPodsAreNotCountedTwiceIfVolcanoTakesOver(t *testing.T) {
	for name, end := range map[string]func(*world, *kueue.Workload) error{
		"it is deleted": func(w *world, ofVCJob *kueue.Workload) error {
			ofVCJob.Finalizers = nil
			if err := w.api.Update(t.Context(), ofVCJob); err != nil {
				return err
			}
			return w.api.Delete(t.Context(), ofVCJob)
		},
		"it is finished": func(w *world, ofVCJob *kueue.Workload) error {
			workload.SetCondition(ofVCJob, kueue.WorkloadFinished, metav1.ConditionTrue, "Succeeded", "", epoch)
			return w.api.Status().Update(t.Context(), ofVCJob)
		},
		"it has given its quota back": func(w *world, ofVCJob *kueue.Workload) error {
			ofVCJob.Status = kueue.WorkloadStatus{}
			return w.api.Status().Update(t.Context(), ofVCJob)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newExternalWorld(t)
			w.edit(func(job *lattice.LatticeJob) { job.Spec.Queue = "cq" })
			w.reconciler = controller.NewReconciler(latticejob.New(latticejob.Settings{}), w.recordingClient(),
				w.events, w.clock)
			w.settle()
			setVCJobPhase(volcano.Running, "")(w)
			w.settle()
			ofVCJob := controller.WorkloadFor(vcjob.API.Kind, &list[volcano.JobList](w.world).Items[0])
			ofVCJob.Spec.PodSets = []kueue.PodSet{{Name: "t", Count: 2}}
			if err := w.api.Create(t.Context(), ofVCJob); err != nil {
				t.Fatal(err)
			}
			w.admit()
			w.restart()
			w.setVolcanoServed(true)
			w.settle()
			if n := len(list[kueue.WorkloadList](w.world).Items); n != 1 {
				t.Errorf("%d Workloads count the same pods, want 1", n)
			}
			if err := w.api.Get(t.Context(), client.ObjectKeyFromObject(ofVCJob), ofVCJob); err != nil {
				t.Fatal(err)
			}
			if err := end(w.world, ofVCJob); err != nil {
				t.Fatal(err)
			}
			w.settle()
			if !slices.ContainsFunc(list[kueue.WorkloadList](w.world).Items, func(left kueue.Workload) bool {
				return ptr.Deref(metav1.GetControllerOf(&left), metav1.OwnerReference{}).Kind == "LatticeJob"
			}) {
				t.Error("the LatticeJob has no Workload for what Volcano runs")
			}
		})
	}
}

// TestPodsThatVolcanoCannotCreateAreNoticed: Volcano only says in an event on the VCJob that its pods are refused. The
// LatticeJob and its Workload say so, and after 15 s the job is evicted.
func TestPodsThatVolcanoCannotCreateAreNoticed(t *testing.T) {
	const quota = `pods "job-t-0" is forbidden: exceeded quota: none`
	for name, said := range map[string]string{
		"as Volcano prints it": `Error creating pods: [failed to create pod job-t-0, err: &errors.StatusError{ErrStatus:v1.Status{TypeMeta:v1.TypeMeta{Kind:"", APIVersion:""}, ` +
			`ListMeta:v1.ListMeta{SelfLink:"", ResourceVersion:"", Continue:"", RemainingItemCount:(*int64)(nil)}, Status:"Failure", ` +
			`Message:"pods \"job-t-0\" is forbidden: exceeded quota: none", Reason:"Forbidden", Details:(*v1.StatusDetails)(0xc000a1b2c0), Code:403}}]`,
		"in plain words": "Error creating: " + quota,
	} {
		t.Run(name, func(t *testing.T) {
			w := queueForVolcano(t)
			w.admit()
			w.settle()
			setVCJobPhase(volcano.Pending, "")(w)
			w.settle()
			vcjob := &list[volcano.JobList](w.world).Items[0]
			event := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Name: "refused", Namespace: "ns"},
				Reason: jobs.FailedCreate, Message: said,
				InvolvedObject: corev1.ObjectReference{APIVersion: "batch.volcano.sh/v1alpha1", Kind: "Job", Namespace: "ns",
					Name: vcjob.Name, UID: vcjob.UID},
				LastTimestamp: metav1.NewTime(w.clock.Now())}
			if err := w.api.Create(t.Context(), event); err != nil {
				t.Fatal(err)
			}
			if got := controller.JobsOfRefusal(w.reconciler, event); len(got) != 1 || got[0].Name != "job" {
				t.Errorf("the event has these jobs reconciled: %v, want the LatticeJob", got)
			}
			w.settle()
			if got, want := w.latticeJob().Status.Message,
				lattice.SubmittedMessage+". Its pods cannot be created: "+quota; got != want {
				t.Errorf("the LatticeJob says %q, want %q", got, want)
			}
			if c := meta.FindStatusCondition(w.workload().Status.Conditions, muster.RefusedCondition); c == nil ||
				c.Message != "Its pods cannot be created: "+quota {
				t.Errorf("the Workload says %+v", c)
			}
			w.clock.SetTime(w.clock.Now().Add(15 * time.Second))
			w.reconcile()
			evicted := meta.FindStatusCondition(w.workload().Status.Conditions, kueue.WorkloadEvicted)
			if evicted == nil || evicted.Reason != kueue.WorkloadEvictedByPodsReadyTimeout ||
				evicted.Message != "Its pods cannot be created: "+quota {
				t.Fatalf("after 15 s the condition Evicted is %+v", evicted)
			}
			w.settle()
			if w.workload().Status.Admission != nil || len(list[volcano.JobList](w.world).Items) > 0 {
				t.Errorf("it holds quota, or its VCJob is left, after the eviction: %+v", w.workload().Status)
			}
		})
	}
}

// TestPodsThatVolcanoGetsLaterAreNoReason: once the pods run, an old refusal says nothing.
func TestPodsThatVolcanoGetsLaterAreNoReason(t *testing.T) {
	w := runWithVolcano(t)
	vcjob := &list[volcano.JobList](w.world).Items[0]
	event := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Name: "refused", Namespace: "ns"}, Reason: jobs.FailedCreate,
		Message: "Error creating: quota",
		InvolvedObject: corev1.ObjectReference{APIVersion: "batch.volcano.sh/v1alpha1", Kind: "Job", Namespace: "ns",
			Name: vcjob.Name, UID: vcjob.UID},
		LastTimestamp: metav1.NewTime(w.clock.Now())}
	if err := w.api.Create(t.Context(), event); err != nil {
		t.Fatal(err)
	}
	w.settle()
	w.clock.SetTime(w.clock.Now().Add(time.Minute))
	w.settle()
	if got := w.latticeJob().Status.Message; got != lattice.SubmittedMessage {
		t.Errorf("the LatticeJob says %q, want %q", got, lattice.SubmittedMessage)
	}
	if meta.IsStatusConditionTrue(w.workload().Status.Conditions, kueue.WorkloadEvicted) {
		t.Error("it is evicted though its pods run")
	}
}
