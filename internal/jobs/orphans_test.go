package jobs

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/workload"
)

// orphanedWorkload returns an admitted Workload as it is after its job was deleted without what it owned.
func orphanedWorkload(edit func(*kueue.Workload)) *kueue.Workload {
	return abandonedWorkload("ConfigMap", func(w *kueue.Workload) {
		w.OwnerReferences, w.Labels = nil, map[string]string{kueue.JobUIDLabel: "u"}
		w.Status = waiting().admitted().w.Status
		edit(w)
	})
}

// orphanWorld returns the controller and an API server with the objects.
func orphanWorld(t *testing.T, objects ...client.Object) *orphans {
	t.Helper()
	a := abandonedWorld(t, clocktesting.NewFakePassiveClock(now), objects...)
	return &orphans{client: a.client, live: a.live, executor: a.executor, clock: a.clock, apis: []Served{abandonedAPI()}}
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
			workload.Evict(w, workload.Eviction{Reason: kueue.WorkloadEvictedByPreemption}, now)
		},
		"deleted": func(w *kueue.Workload) { w.DeletionTimestamp = ptr.To(metav1.NewTime(now)) },
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
				meta.FindStatusCondition(got.Status.Conditions, kueue.WorkloadFinished).Reason != kueue.WorkloadFinishedReasonOwnerNotFound:
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
		"with quota":           {orphanedWorkload(func(*kueue.Workload) {}), true},
		"without quota":        {orphanedWorkload(func(w *kueue.Workload) { w.Status = kueue.WorkloadStatus{} }), false},
		"finished":             {orphanedWorkload(func(w *kueue.Workload) { finish(w, "Succeeded", "", now) }), false},
		"with a job":           {abandonedWorkload("ConfigMap", func(w *kueue.Workload) { w.Labels = map[string]string{kueue.JobUIDLabel: "u"} }), false},
		"that never had a job": {orphanedWorkload(func(w *kueue.Workload) { w.Labels = nil }), false},
	} {
		if got := isOrphanInUse(tc.w); got != tc.want {
			t.Errorf("%s: %t, want %t", name, got, tc.want)
		}
	}
}

// TestJobsThatWouldReplaceTheirPodsAreSuspended when an orphaned Workload is evicted: those of a JobSet that was deleted
// without them. A Job that somebody controls is not stopped, whatever its labels say.
func TestJobsThatWouldReplaceTheirPodsAreSuspended(t *testing.T) {
	left := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "left", UID: "left", Labels: map[string]string{"job": "u"}}}
	others := left.DeepCopy()
	others.Name, others.UID = "others", "others"
	others.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "CronJob", Name: "c", UID: "c", Controller: ptr.To(true)}}
	w := orphanedWorkload(func(w *kueue.Workload) {
		workload.Evict(w, workload.Eviction{Reason: kueue.WorkloadEvictedByPreemption}, now)
	})
	o := orphanWorld(t, w, left, others, abandonedPod())
	o.reconcile(t, client.ObjectKeyFromObject(w))
	for _, job := range []*batchv1.Job{left, others} {
		if err := o.client.Get(t.Context(), client.ObjectKeyFromObject(job), job); err != nil {
			t.Fatal(err)
		}
	}
	if !ptr.Deref(left.Spec.Suspend, false) || left.Annotations[muster.QueuedAnnotation] != muster.QueuedByOwner || ptr.Deref(others.Spec.Suspend, false) {
		t.Errorf("suspended: the Job that was left: %v (marked %q), another's: %v; want the first alone", left.Spec.Suspend, left.Annotations[muster.QueuedAnnotation], others.Spec.Suspend)
	}
	if err := o.client.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "pod"}, &corev1.Pod{}); err != nil {
		t.Errorf("the pod is deleted before the Job that would replace it is suspended: %v", err)
	}
}
