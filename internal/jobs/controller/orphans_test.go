package controller

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/jobs/workloads"
	"github.com/musterhq/muster/internal/workload"
)

// orphanedWorkload returns an admitted Workload as it is after its job was deleted without what it owned.
func orphanedWorkload(edit func(*kueue.Workload)) *kueue.Workload {
	return abandonedWorkload("ConfigMap", func(w *kueue.Workload) {
		w.OwnerReferences, w.Labels = nil, map[string]string{kueue.JobUIDLabel: "u"}
		w.Status = admittedWorkload().Status
		edit(w)
	})
}

// orphanWorld returns the controller and an API server with the objects.
func orphanWorld(t *testing.T, objects ...client.Object) *orphans {
	t.Helper()
	a := abandonedWorld(t, clocktesting.NewFakePassiveClock(noon), objects...)
	return &orphans{client: a.read.client, live: a.read.live, executor: a.executor, clock: a.clock,
		apis: []Served{Serve(abandonedAPI())}}
}

// reconcile reconciles the Workload and returns it, nil if it is gone, and after how long it is reconciled again.
func (o *orphans) reconcile(t *testing.T, key client.ObjectKey) (*kueue.Workload, time.Duration) {
	t.Helper()
	result, err := o.Reconcile(t.Context(), ctrl.Request{NamespacedName: key})
	if err != nil {
		t.Fatal(err)
	}
	var w kueue.Workload
	if err := o.client.Get(t.Context(), key, &w); apierrors.IsNotFound(err) {
		return nil, result.RequeueAfter
	} else if err != nil {
		t.Fatal(err)
	}
	return &w, result.RequeueAfter
}

// TestAnOrphanKeepsItsQuotaUntilItsPodsAreGone, whatever the Workload is called, and also if it is deleted meanwhile.
func TestAnOrphanKeepsItsQuotaUntilItsPodsAreGone(t *testing.T) {
	for name, edit := range map[string]func(*kueue.Workload){
		"running":          func(*kueue.Workload) {},
		"named by another": func(w *kueue.Workload) { w.Name = "prebuilt" },
		"evicted": func(w *kueue.Workload) {
			workload.Evict(w, workload.Eviction{Reason: kueue.WorkloadEvictedByPreemption}, noon)
		},
		"deleted": func(w *kueue.Workload) { w.DeletionTimestamp = ptr.To(metav1.NewTime(noon)) },
	} {
		t.Run(name, func(t *testing.T) {
			pod := abandonedPod()
			pod.Finalizers = []string{"example.com/ends-late"}
			w := orphanedWorkload(edit)
			key := client.ObjectKeyFromObject(w)
			o := orphanWorld(t, w, pod)
			for range 2 {
				got, again := o.reconcile(t, key)
				if got == nil || !workload.HoldsQuota(got) || workload.IsFinished(got) || again == 0 {
					t.Fatalf("with a pod: Workload %+v, again after %s, want it to hold its quota, and to be looked at again", got, again)
				}
			}
			if err := o.client.Get(t.Context(), client.ObjectKeyFromObject(pod), pod); err != nil {
				t.Fatal(err)
			}
			if stopped := pod.DeletionTimestamp != nil; stopped != (name == "evicted") {
				t.Errorf("the pod is deleted: %t, want that only of an evicted Workload", stopped)
			}
			pod.Finalizers = nil
			if err := o.client.Update(t.Context(), pod); err != nil {
				t.Fatal(err)
			}
			if err := client.IgnoreNotFound(o.client.Delete(t.Context(), pod)); err != nil {
				t.Fatal(err)
			}
			switch got, _ := o.reconcile(t, key); {
			case name == "deleted":
				if got != nil {
					t.Errorf("without pods: Workload %+v, want it gone", got)
				}
			case got == nil || !meta.IsStatusConditionTrue(got.Status.Conditions, kueue.WorkloadFinished) ||
				meta.FindStatusCondition(got.Status.Conditions,
					kueue.WorkloadFinished).Reason != kueue.WorkloadFinishedReasonOwnerNotFound:
				t.Errorf("without pods: Workload %+v, want it finished without an owner", got)
			}
		})
	}
}

// TestOnlyOrphansInUseAreLookedAfter: the jobs of others report that their pods are gone.
func TestOnlyOrphansInUseAreLookedAfter(t *testing.T) {
	for name, tc := range map[string]struct {
		w    *kueue.Workload
		want bool
	}{
		"with quota":    {orphanedWorkload(func(*kueue.Workload) {}), true},
		"without quota": {orphanedWorkload(func(w *kueue.Workload) { w.Status = kueue.WorkloadStatus{} }), false},
		"finished": {orphanedWorkload(func(w *kueue.Workload) { workloads.Finish(w, "Succeeded", "", noon) }),
			false},
		"with a job": {abandonedWorkload("ConfigMap",
			func(w *kueue.Workload) { w.Labels = map[string]string{kueue.JobUIDLabel: "u"} }), false},
		"that never had a job": {orphanedWorkload(func(w *kueue.Workload) { w.Labels = nil }), false},
	} {
		if got := isOrphanInUse(tc.w); got != tc.want {
			t.Errorf("%s: %t, want %t", name, got, tc.want)
		}
	}
}

// evictedOrphan returns an orphaned Workload that was evicted now.
func evictedOrphan() *kueue.Workload {
	return orphanedWorkload(func(w *kueue.Workload) {
		workload.Evict(w, workload.Eviction{Reason: kueue.WorkloadEvictedByPreemption}, noon)
	})
}

// controlled has the object controlled by the owner of this kind, whose name is its UID.
func controlled[O client.Object](object O, kind, owner string) O {
	object.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: kind, Name: owner, UID: types.UID(owner),
		Controller: ptr.To(true)}})
	return object
}

// TestJobsThatWouldReplaceTheirPodsAreSuspended when an orphaned Workload is evicted: those of a JobSet that was
// deleted without them, though a user has changed their labels or their controller since. A Job that somebody else has
// made for a controller of its own is not stopped, whatever its labels say.
func TestJobsThatWouldReplaceTheirPodsAreSuspended(t *testing.T) {
	left := func(name string, annotations map[string]string) *batchv1.Job {
		job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name),
			Labels: map[string]string{"job": "u"}, Annotations: annotations}}
		job.Spec.Template.Labels = map[string]string{"job": "u"}
		return job
	}
	mark := map[string]string{muster.QueuedAnnotation: muster.QueuedByOwner}
	unlabelled := left("unlabelled", mark)
	unlabelled.Labels = nil
	another := left("another", mark)
	another.Labels, another.Spec.Template.Labels = map[string]string{"job": "v"}, map[string]string{"job": "v"}
	for _, tc := range []struct {
		job       *batchv1.Job
		suspended bool
	}{
		{left("left", nil), true},
		{left("marked", mark), true},
		{unlabelled, true},
		{controlled(left("adopted", mark), "ConfigMap", "c"), true},
		{controlled(left("of-another", nil), "CronJob", "c"), false},
		{another, false},
	} {
		w, pod := evictedOrphan(), controlled(abandonedPod(), "Job", tc.job.Name)
		o := orphanWorld(t, w, tc.job, pod)
		got, _ := o.reconcile(t, client.ObjectKeyFromObject(w))
		if got == nil || !workload.HoldsQuota(got) || workload.IsFinished(got) {
			t.Errorf("%s: Workload %+v, want it to hold its quota", tc.job.Name, got)
		}
		if err := o.client.Get(t.Context(), client.ObjectKeyFromObject(tc.job), tc.job); err != nil {
			t.Fatal(err)
		}
		if got := ptr.Deref(tc.job.Spec.Suspend, false); got != tc.suspended ||
			got && tc.job.Annotations[muster.QueuedAnnotation] != muster.QueuedByOwner {
			t.Errorf("%s: suspended %v, marked %q; want %v", tc.job.Name, got,
				tc.job.Annotations[muster.QueuedAnnotation], tc.suspended)
		}
		switch err := o.client.Get(t.Context(), client.ObjectKeyFromObject(pod), pod); {
		case tc.suspended && err != nil:
			t.Errorf("%s: its pod is deleted before it is suspended: %v", tc.job.Name, err)
		case !tc.suspended && !apierrors.IsNotFound(err):
			t.Errorf("%s: its pod is there (%v), want it deleted", tc.job.Name, err)
		}
		o.reconcile(t, client.ObjectKeyFromObject(w))
		if err := o.client.Get(t.Context(), client.ObjectKeyFromObject(pod), pod); !apierrors.IsNotFound(err) {
			t.Errorf("%s: its pod is there once it is suspended (%v), want it deleted", tc.job.Name, err)
		}
	}
}

// TestAnEvictedOrphanWithoutPodsWaitsForItsJobs: one that is not suspended may create pods at any time.
func TestAnEvictedOrphanWithoutPodsWaitsForItsJobs(t *testing.T) {
	w := evictedOrphan()
	o := orphanWorld(t, w, &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "left", UID: "left",
		Labels: map[string]string{"job": "u"}}})
	for _, finished := range []bool{false, true} {
		if got, _ := o.reconcile(t, client.ObjectKeyFromObject(w)); workload.IsFinished(got) != finished {
			t.Errorf("finished %v, want %v", !finished, finished)
		}
	}
}

// TestAnOrphanWithoutPodsKeepsItsQuotaForJobsThatMayCreateSome: a pod has failed, and the Job controller waits before
// it creates another one. A Job that has ended, or that somebody has suspended, creates none.
func TestAnOrphanWithoutPodsKeepsItsQuotaForJobsThatMayCreateSome(t *testing.T) {
	for name, tc := range map[string]struct {
		change   func(*batchv1.Job)
		finished bool
	}{
		"running": {func(*batchv1.Job) {}, false},
		"complete": {func(job *batchv1.Job) {
			job.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}
		}, true},
		"failed": {func(job *batchv1.Job) {
			job.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue}}
		}, true},
		"suspended":  {func(job *batchv1.Job) { job.Spec.Suspend = ptr.To(true) }, true},
		"of another": {func(job *batchv1.Job) { job.Labels["job"] = "v" }, true},
	} {
		w := orphanedWorkload(func(*kueue.Workload) {})
		job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "left", UID: "left",
			Labels: map[string]string{"job": "u"}}}
		tc.change(job)
		o := orphanWorld(t, w, job)
		if got, again := o.reconcile(t,
			client.ObjectKeyFromObject(w)); workload.IsFinished(got) != tc.finished || again == 0 {
			t.Errorf("%s: the Workload is finished: %v, want %v; it is looked at again after %s", name, !tc.finished,
				tc.finished, again)
		}
		if err := o.client.Get(t.Context(), client.ObjectKeyFromObject(job), job); err != nil ||
			ptr.Deref(job.Spec.Suspend, false) != (name == "suspended") {
			t.Errorf("%s: the Job was stopped, or is gone: %v", name, err)
		}
	}
}

// TestPodsOfAnEvictedOrphanAreDeletedWhateverControlsThem: a user can make anything the controller of a pod. What a
// ReplicaSet creates anew, with the same labels, keeps no quota.
func TestPodsOfAnEvictedOrphanAreDeletedWhateverControlsThem(t *testing.T) {
	w := evictedOrphan()
	adopted := controlled(abandonedPod(), "ReplicaSet", "r")
	adopted.CreationTimestamp = metav1.NewTime(noon.Add(-time.Minute))
	o := orphanWorld(t, w, adopted)
	if got, _ := o.reconcile(t, client.ObjectKeyFromObject(w)); workload.IsFinished(got) {
		t.Error("finished while the pod was there")
	}
	if err := o.client.Get(t.Context(), client.ObjectKeyFromObject(adopted), adopted); !apierrors.IsNotFound(err) {
		t.Errorf("the pod is there (%v), want it deleted", err)
	}
	anew := controlled(abandonedPod(), "ReplicaSet", "r")
	anew.Name, anew.CreationTimestamp = "anew", metav1.NewTime(noon.Add(time.Minute))
	if err := o.client.Create(t.Context(), anew); err != nil {
		t.Fatal(err)
	}
	if got, _ := o.reconcile(t, client.ObjectKeyFromObject(w)); !workload.IsFinished(got) {
		t.Errorf("Workload %+v, want it finished", got)
	}
}
