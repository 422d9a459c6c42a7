package admission

import (
	"context"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	testclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	config "github.com/musterhq/muster/api/config/v1alpha1"
	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/admission/admissiontest"
	"github.com/musterhq/muster/internal/admission/indexes"
	"github.com/musterhq/muster/internal/admission/lifecycle"
	"github.com/musterhq/muster/internal/workload"
)

func inactive(w *kueue.Workload) *kueue.Workload {
	w.Spec.Active = ptr.To(false)
	return w
}

func newWorkloads(w *admissiontest.World, policy lifecycle.Policy) *workloads {
	return &workloads{client: w, cache: w, live: w, policy: policy,
		clock: testclock.NewFakePassiveClock(admissiontest.Now)}
}

func requestFor(name string) ctrl.Request {
	return ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "ns", Name: name}}
}

// settle reconciles a Workload until nothing is left to do, and returns its requeue delay.
func (wo *workloads) settle(t *testing.T, name string, writes *admissiontest.World) time.Duration {
	t.Helper()
	for range 20 {
		before := len(writes.Written())
		result, err := wo.Reconcile(t.Context(), requestFor(name))
		if err != nil {
			t.Fatal(err)
		}
		if len(writes.Written()) == before {
			return result.RequeueAfter
		}
	}
	t.Fatalf("reconciling does not end; writes: %v", writes.Written())
	return 0
}

func TestTheLifecycleOfAWorkloadIsWrittenStepByStep(t *testing.T) {
	for name, test := range map[string]struct {
		workload *kueue.Workload
		want     []string
		then     func(w *kueue.Workload) bool
	}{
		"quota without checks": {
			admissiontest.ReservedWorkload("a"), []string{"status Workload a"}, workload.IsAdmitted},
		"a deactivated Workload without owner": {
			inactive(admissiontest.AdmittedWorkload("a")), []string{"status Workload a"},
			func(w *kueue.Workload) bool { return workload.IsEvicted(w) && !workload.HoldsQuota(w) }},
		"rejected by a check": {
			func() *kueue.Workload {
				w := admissiontest.AdmittedWorkload("a")
				w.Status.AdmissionChecks = []kueue.AdmissionCheckState{{Name: "x", State: kueue.CheckStateRejected}}
				return w
			}(), []string{"status Workload a", "change Workload a", "status Workload a"},
			func(w *kueue.Workload) bool { return !workload.IsActive(w) && !workload.HoldsQuota(w) }},
		"waiting": {
			admissiontest.NewWorkload("a", 1, nil), nil, workload.IsActive},
	} {
		t.Run(name, func(t *testing.T) {
			w := admissiontest.NewWorld(t, admissiontest.NewClusterQueue("cq", "8"),
				admissiontest.NewLocalQueue("q", "cq"), test.workload)
			newWorkloads(w, lifecycle.Policy{}).settle(t, "a", w)
			admissiontest.Expect(t, "writes", test.want, w.Written())
			if !test.then(w.Workload("a")) {
				t.Errorf("final status = %+v", w.Workload("a").Status)
			}
		})
	}
}

// TestALostResponseDoesNoHarm: each write in turn takes effect although its response is lost.
func TestALostResponseDoesNoHarm(t *testing.T) {
	rejected := admissiontest.AdmittedWorkload("a")
	rejected.Status.AdmissionChecks = []kueue.AdmissionCheckState{{Name: "x", State: kueue.CheckStateRejected}}
	end := func(lost int) (*kueue.Workload, int) {
		w := admissiontest.NewWorld(t, admissiontest.NewClusterQueue("cq", "8"), admissiontest.NewLocalQueue("q", "cq"),
			rejected.DeepCopy())
		w.After = func(string) error {
			if len(w.Written()) == lost {
				return context.DeadlineExceeded
			}
			return nil
		}
		r := newWorkloads(w, lifecycle.Policy{})
		for range 20 {
			before := len(w.Written())
			_, err := r.Reconcile(t.Context(), requestFor("a"))
			if err == nil && len(w.Written()) == before {
				return w.Workload("a"), before
			}
		}
		t.Fatalf("reconciling does not end; writes: %v", w.Written())
		return nil, 0
	}
	want, writes := end(0)
	if writes == 0 {
		t.Fatal("Reconcile writes nothing, want some writes")
	}
	for lost := 1; lost <= writes; lost++ {
		got, again := end(lost)
		admissiontest.Expect(t, "writes", writes, again)
		admissiontest.Expect(t, "status", want.Status, got.Status)
		admissiontest.Expect(t, "spec", want.Spec, got.Spec)
	}
}

func TestAConflictOverAWorkloadIsLeftToTheWatch(t *testing.T) {
	w := admissiontest.NewWorld(t, admissiontest.NewClusterQueue("cq", "8"), admissiontest.NewLocalQueue("q", "cq"),
		admissiontest.ReservedWorkload("a"))
	w.Before = func(string) error {
		return apierrors.NewConflict(schema.GroupResource{Resource: "workloads"}, "a", nil)
	}
	if result, err := newWorkloads(w, lifecycle.Policy{}).Reconcile(t.Context(), requestFor("a")); err != nil ||
		result.RequeueAfter != 0 {
		t.Errorf("Reconcile returned %+v, %v, want no error and no requeue", result, err)
	}
}

func TestAFailedStepIsRetried(t *testing.T) {
	w := admissiontest.NewWorld(t, admissiontest.NewClusterQueue("cq", "8"), admissiontest.NewLocalQueue("q", "cq"),
		admissiontest.ReservedWorkload("a"))
	w.Before = func(string) error { return apierrors.NewInternalError(context.DeadlineExceeded) }
	if _, err := newWorkloads(w, lifecycle.Policy{}).Reconcile(t.Context(), requestFor("a")); err == nil {
		t.Error("Reconcile returned no error, want that of the write")
	}
}

func TestADeadlineIsCheckedAtLeastHourly(t *testing.T) {
	w := admissiontest.NewWorld(t, admissiontest.NewClusterQueue("cq", "8"), admissiontest.NewLocalQueue("q", "cq"))
	running := admissiontest.AdmittedWorkload("a")
	running.Spec.MaximumExecutionTimeSeconds = ptr.To[int32](600)
	long := admissiontest.AdmittedWorkload("b")
	long.Spec.MaximumExecutionTimeSeconds = ptr.To[int32](1e9)
	for _, o := range []client.Object{running, long} {
		if err := w.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	r := newWorkloads(w, lifecycle.Policy{})
	admissiontest.Expect(t, "wait for the warning", 9*time.Minute, r.settle(t, "a", w))
	admissiontest.Expect(t, "long wait", time.Hour, r.settle(t, "b", w))
}

func TestExpiredWorkloadsAndJobsAreDeleted(t *testing.T) {
	policy := lifecycle.Policy{AfterFinished: ptr.To(time.Duration(0)), AfterDeactivated: ptr.To(time.Duration(0))}
	finished := admissiontest.NewWorkload("a", 1, nil)
	workload.SetCondition(finished, kueue.WorkloadFinished, metav1.ConditionTrue, kueue.WorkloadFinishedReasonSucceeded,
		"", admissiontest.Now)
	job := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "job", UID: "job-uid"}}
	ours := inactive(admissiontest.NewWorkload("a", 1, nil))
	ours.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(job,
		corev1.SchemeGroupVersion.WithKind("Pod"))}
	workload.SetCondition(ours, kueue.WorkloadEvicted, metav1.ConditionTrue,
		kueue.WorkloadDeactivatedDueTo+kueue.WorkloadRequeuingLimitExceeded, "", admissiontest.Now)
	for name, test := range map[string]struct {
		workload *kueue.Workload
		want     []string
	}{
		"a finished Workload":                 {finished, []string{"delete Workload a"}},
		"a deactivated Workload with its job": {ours, []string{"delete Pod job"}},
		"a waiting Workload":                  {admissiontest.NewWorkload("a", 1, nil), nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := admissiontest.NewWorld(t, job.DeepCopy(), test.workload)
			if _, err := newWorkloads(w, policy).Reconcile(t.Context(), requestFor("a")); err != nil {
				t.Fatal(err)
			}
			admissiontest.Expect(t, "writes", test.want, w.Written())
		})
	}
}

// TestAJobThatMayNotBeDeletedIsLeft: the operator has rights for the kinds that it runs only, while another controller
// can make Workloads for jobs of any kind. That is no failure to be tried again at once.
func TestAJobThatMayNotBeDeletedIsLeft(t *testing.T) {
	kind := schema.GroupVersionKind{Group: "kubeflow.org", Version: "v1", Kind: "PyTorchJob"}
	ours := inactive(admissiontest.NewWorkload("a", 1, nil))
	ours.OwnerReferences = []metav1.OwnerReference{
		*metav1.NewControllerRef(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "job", UID: "job-uid"}}, kind)}
	workload.SetCondition(ours, kueue.WorkloadEvicted, metav1.ConditionTrue,
		kueue.WorkloadDeactivatedDueTo+kueue.WorkloadRequeuingLimitExceeded, "", admissiontest.Now)
	for name, answer := range map[string]error{
		"no right": apierrors.NewForbidden(schema.GroupResource{Group: kind.Group,
			Resource: "pytorchjobs"}, "job", nil),
		"no longer served": &meta.NoKindMatchError{GroupKind: kind.GroupKind(), SearchedVersions: []string{kind.Version}},
	} {
		t.Run(name, func(t *testing.T) {
			w, tried := admissiontest.NewWorld(t, ours.DeepCopy()), []string(nil)
			w.Before = func(write string) error {
				tried = append(tried, write)
				return answer
			}
			result, err := newWorkloads(w, lifecycle.Policy{AfterDeactivated: ptr.To(time.Duration(0))}).
				Reconcile(t.Context(), requestFor("a"))
			if err != nil || result.RequeueAfter != time.Hour {
				t.Errorf("Reconcile returned %+v, %v, want no error and a requeue after an hour", result, err)
			}
			admissiontest.Expect(t, "writes", []string{"delete PyTorchJob job"}, tried)
		})
	}
}

// queued records the requests that are added to a queue, and their delays.
type queued struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]
	requests []string
}

func (q *queued) Add(r reconcile.Request) { q.AddAfter(r, 0) }

func (q *queued) AddAfter(r reconcile.Request, d time.Duration) {
	q.requests = append(q.requests, r.Name+" after "+d.String())
}

func TestOnlyUpdatesThatNeedAStepAreEnqueued(t *testing.T) {
	w := admissiontest.NewWorld(t, admissiontest.NewClusterQueue("cq", "8"), admissiontest.NewLocalQueue("q", "cq"))
	r := newWorkloads(w, lifecycle.Policy{})
	timed := admissiontest.AdmittedWorkload("timed")
	timed.Spec.MaximumExecutionTimeSeconds = ptr.To[int32](60)
	var q queued
	for _, o := range []*kueue.Workload{admissiontest.NewWorkload("waits", 1, nil), admissiontest.AdmittedWorkload("runs"),
		inactive(admissiontest.AdmittedWorkload("ends")), timed} {
		r.enqueueNeedingStep().Create(t.Context(), event.CreateEvent{Object: o}, &q)
		r.enqueueNeedingStep().Update(t.Context(), event.UpdateEvent{ObjectOld: o, ObjectNew: o}, &q)
	}
	admissiontest.Expect(t, "requests",
		[]string{"ends after 0s", "ends after 0s", "timed after 1m0s", "timed after 1m0s"}, q.requests)

}

func TestStoppingOrRestartingAQueueEnqueuesItsWorkloads(t *testing.T) {
	held := admissiontest.NewWorkload("held", 1, nil)
	workload.SetCondition(held, kueue.WorkloadRequeued, metav1.ConditionFalse, kueue.WorkloadEvictedByClusterQueueStopped,
		"", admissiontest.Now)
	objects := []client.Object{admissiontest.NewLocalQueue("q", "cq"), admissiontest.AdmittedWorkload("runs"),
		admissiontest.NewWorkload("waits", 1, nil), held}

	open := admissiontest.NewClusterQueue("cq", "8")
	w := admissiontest.NewWorld(t, append(objects, open)...)
	admissiontest.Expect(t, "after the restart",
		[]reconcile.Request{requestFor("held")}, newWorkloads(w, lifecycle.Policy{}).ofClusterQueue(t.Context(), open))

	drained := admissiontest.NewClusterQueue("cq", "8")
	drained.Spec.StopPolicy = ptr.To(kueue.HoldAndDrain)
	w = admissiontest.NewWorld(t, append(objects, drained)...)
	admissiontest.Expect(t, "when it is drained",

		[]reconcile.Request{requestFor("runs"), requestFor("runs")},
		newWorkloads(w, lifecycle.Policy{}).ofClusterQueue(t.Context(), drained))

	local := admissiontest.NewLocalQueue("q", "cq")
	local.Spec.StopPolicy = ptr.To(kueue.HoldAndDrain)
	w = admissiontest.NewWorld(t, admissiontest.NewClusterQueue("cq", "8"), local, admissiontest.AdmittedWorkload("runs"))
	admissiontest.Expect(t, "when the LocalQueue is drained",
		[]reconcile.Request{requestFor("runs")}, newWorkloads(w, lifecycle.Policy{}).ofLocalQueue(t.Context(), local))

}

func TestWhichQueueChangesEnqueueItsWorkloads(t *testing.T) {
	change := func(edit func(q *kueue.ClusterQueue)) bool {
		before, after := admissiontest.NewClusterQueue("cq", "8"), admissiontest.NewClusterQueue("cq", "8")
		edit(after)
		return indexes.ConcernsWorkloads.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after})
	}
	for name, test := range map[string]struct {
		edit func(q *kueue.ClusterQueue)
		want bool
	}{
		"its status":              {func(q *kueue.ClusterQueue) { q.Status.PendingWorkloads = 1 }, false},
		"its quota":               {func(q *kueue.ClusterQueue) { q.Spec.ResourceGroups = nil }, false},
		"its stop policy":         {func(q *kueue.ClusterQueue) { q.Spec.StopPolicy = ptr.To(kueue.Hold) }, true},
		"its default stop policy": {func(q *kueue.ClusterQueue) { q.Spec.StopPolicy = ptr.To(kueue.None) }, false},
		"its checks": {func(q *kueue.ClusterQueue) {
			q.Spec.AdmissionChecks = []kueue.AdmissionCheckReference{"x"}
		}, true},
		"its closed annotation": {func(q *kueue.ClusterQueue) {
			q.Annotations = map[string]string{muster.ClosedAnnotation: "true"}
		}, true},
		"its deletion": {func(q *kueue.ClusterQueue) {
			q.DeletionTimestamp = ptr.To(metav1.NewTime(admissiontest.Now))
		}, true},
		"its time limit": {func(q *kueue.ClusterQueue) {
			q.Annotations = map[string]string{muster.MaxDurationAnnotation: "1h"}
		}, true},
		"another annotation": {func(q *kueue.ClusterQueue) { q.Annotations = map[string]string{"x": "1h"} }, false},
		"a finalizer of its": {func(q *kueue.ClusterQueue) { q.Finalizers = []string{"x"} }, false},
	} {
		if got := change(test.edit); got != test.want {
			t.Errorf("change of %s: enqueued = %t, want %t", name, got, test.want)
		}
	}
}

// TestALoweredLimitOfAQueueTakesEffectOnItsRunningWorkloads: they are reconciled when it is lowered, and each is
// deactivated when it reaches the limit.
func TestALoweredLimitOfAQueueTakesEffectOnItsRunningWorkloads(t *testing.T) {
	local, cluster := admissiontest.NewLocalQueue("q", "cq"), admissiontest.NewClusterQueue("cq", "8")
	w := admissiontest.NewWorld(t, local, cluster, admissiontest.AdmittedWorkload("runs"),
		admissiontest.NewWorkload("waits", 1, nil))
	r := newWorkloads(w, lifecycle.Policy{})
	admissiontest.Expect(t, "without a limit", []reconcile.Request(nil), r.ofLocalQueue(t.Context(), local))
	for name, q := range map[string]client.Object{"LocalQueue": local, "ClusterQueue": cluster} {
		before := q.DeepCopyObject().(client.Object)
		q.SetAnnotations(map[string]string{muster.MaxDurationAnnotation: "90s"})
		if !indexes.ConcernsWorkloads.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: q}) {
			t.Errorf("a new limit of a %s is not noticed", name)
		}
		if err := w.Update(t.Context(), q); err != nil {
			t.Fatal(err)
		}
		of := r.ofLocalQueue
		if name == "ClusterQueue" {
			of = r.ofClusterQueue
		}
		if !slices.Contains(of(t.Context(), q), requestFor("runs")) {
			t.Errorf("the running Workload is not reconciled for a new limit of its %s", name)
		}
		admissiontest.Expect(t, "wait", 90*time.Second, r.settle(t, "runs", w))
		q.SetAnnotations(nil)
		if err := w.Update(t.Context(), q); err != nil {
			t.Fatal(err)
		}
	}
}

func TestLifecyclePolicyFollowsTheConfiguration(t *testing.T) {
	cfg := &config.Configuration{
		WaitForPodsReady: &config.WaitForPodsReady{
			Enable: ptr.To(true), Timeout: &metav1.Duration{Duration: time.Minute},
			RecoveryTimeout: &metav1.Duration{Duration: time.Second},
			RequeuingStrategy: &config.RequeuingStrategy{BackoffLimitCount: ptr.To[int32](3),
				BackoffBaseSeconds: ptr.To[int32](60), BackoffMaxSeconds: ptr.To[int32](3600)},
		},
		ObjectRetentionPolicies: &config.ObjectRetentionPolicies{
			Workloads: &config.WorkloadRetentionPolicy{AfterFinished: &metav1.Duration{Duration: time.Hour}}},
	}
	admissiontest.Expect(t, "policy", lifecycle.Policy{
		PodsReady: &lifecycle.PodsReady{Timeout: time.Minute, RecoveryTimeout: time.Second, BackoffBase: time.Minute,
			BackoffLimit: ptr.To[int32](3)},
		BackoffMax:    time.Hour,
		AfterFinished: ptr.To(time.Hour),
	}, lifecyclePolicy(cfg))

	cfg.WaitForPodsReady.Enable = ptr.To(false)
	admissiontest.Expect(t, "pods-ready policy if waiting for ready pods is off", nil,
		lifecyclePolicy(cfg).PodsReady)

}

// TestAnEvictionOfTheLifecycleThatDoesNotFitTakesTheQuotaAtOnce: as for decisions of the engine.
func TestAnEvictionOfTheLifecycleThatDoesNotFitTakesTheQuotaAtOnce(t *testing.T) {
	owned := inactive(admissiontest.AdmittedWorkload("a"))
	owned.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: "a", UID: "job",
		Controller: ptr.To(true)}}
	w := admissiontest.NewWorld(t, admissiontest.NewClusterQueue("cq", "8"), admissiontest.NewLocalQueue("q", "cq"), owned)
	w.Before = admissiontest.Once(admissiontest.ErrTooLarge)
	if _, err := newWorkloads(w, lifecycle.Policy{}).Reconcile(t.Context(), requestFor("a")); err != nil {
		t.Fatal(err)
	}
	if workload.HoldsQuota(w.Workload("a")) {
		t.Error("the deactivated Workload holds quota for ever")
	}
}
