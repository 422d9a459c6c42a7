package controller_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/jobs/controller"
	"github.com/musterhq/muster/internal/workload"
)

// TestJobWaitsForItsPrebuiltWorkloadAndAdoptsIt: no Workload is created for a job that names one.
func TestJobWaitsForItsPrebuiltWorkloadAndAdoptsIt(t *testing.T) {
	job := newBatchJob("cq", true)
	job.Labels[kueue.PrebuiltWorkloadLabel] = "prebuilt"
	w := newBatchWorld(t, fault{}, job, 0)
	w.settle()
	if got := list[kueue.WorkloadList](w.world).Items; len(got) != 0 {
		t.Fatalf("Workloads were created for a job that names one: %v", got)
	}
	prebuilt := &kueue.Workload{ObjectMeta: metav1.ObjectMeta{Name: "prebuilt", Namespace: "ns"}, Spec: kueue.WorkloadSpec{
		PodSets: []kueue.PodSet{{Name: "main", Count: 2, Template: newBatchJob("", true).Spec.Template}}}}
	w.put(prebuilt)
	w.settle()
	if got := list[kueue.WorkloadList](w.world).Items; len(got) != 1 || !metav1.IsControlledBy(&got[0], job) ||
		got[0].Spec.QueueName != "cq" {
		t.Errorf("Workloads = %+v, want the prebuilt one in queue cq, controlled by the job", got)
	}
	if len(w.batchJob().Status.Conditions) != 1 {
		t.Error("the Job did not run to its end")
	}
}

// TestRequeuedJobKeepsItsQuotaUntilItsPodsAreGone checks a job that its user suspends and changes to larger pods in one
// update.
func TestRequeuedJobKeepsItsQuotaUntilItsPodsAreGone(t *testing.T) {
	for _, name := range []string{"", "prebuilt"} {
		t.Run(fmt.Sprintf("Workload named %q", name), func(t *testing.T) {
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
				t.Fatalf("the Job does not run: %+v", changed.Status)
			}
			changed.Spec.Suspend = ptr.To(true)
			changed.Spec.Template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse("1")}
			if err := w.api.Update(t.Context(), changed); err != nil {
				t.Fatal(err)
			}
			holdsQuota := func() bool {
				w.reconcile()
				return slices.ContainsFunc(list[kueue.WorkloadList](w.world).Items, func(wl kueue.Workload) bool {
					return workload.HoldsQuota(&wl) && !workload.IsFinished(&wl)
				})
			}
			for step := range 2 {
				for range 2 { // however often it is reconciled
					if !holdsQuota() {
						t.Fatalf("step %d: the quota is released while the Job has pods: %+v", step, w.batchJob().Status)
					}
				}
				w.runJob()
			}
			for range 10 {
				if !holdsQuota() {
					return
				}
				w.runJob()
			}
			t.Error("the Job's pods are gone, and it still holds their quota")
		})
	}
}

// TestJobIsReconciledForTheWorkloadThatItNames, even before it controls the Workload: the engine may admit it just
// before the job adopts it, which makes the adoption fail with a conflict.
func TestJobIsReconciledForTheWorkloadThatItNames(t *testing.T) {
	job := newBatchJob("cq", true)
	job.Labels[kueue.PrebuiltWorkloadLabel] = "prebuilt"
	conflict := apierrors.NewConflict(schema.GroupResource{Group: kueue.GroupVersion.Group, Resource: "workloads"},
		"prebuilt", errors.New("changed since"))
	w := newBatchWorld(t, fault{write: "change Workload prebuilt #1", err: conflict}, job, 0)
	prebuilt := &kueue.Workload{ObjectMeta: metav1.ObjectMeta{Name: "prebuilt", Namespace: "ns"}, Spec: kueue.WorkloadSpec{
		PodSets: []kueue.PodSet{{Name: "main", Count: 2, Template: newBatchJob("", true).Spec.Template}}}}
	w.put(prebuilt)
	reconcile := func() {
		t.Helper()
		if _, err := w.reconciler.Reconcile(t.Context(),
			ctrl.Request{NamespacedName: client.ObjectKeyFromObject(job)}); err != nil {
			t.Fatal(err)
		}
	}
	isReconciledFor := func(w2 *kueue.Workload) bool {
		return slices.Equal(controller.JobsOfWorkload(w.reconciler, w2),
			[]ctrl.Request{{NamespacedName: client.ObjectKeyFromObject(job)}})
	}
	reconcile()
	if !w.faultFired {
		t.Fatalf("the faulty write did not occur: %v", w.writes)
	}
	other := prebuilt.DeepCopy()
	other.Name = "other"
	if !isReconciledFor(prebuilt) || isReconciledFor(other) {
		t.Errorf("reconciled for the Workload that the job names: %t, for another: %t, want true and false",
			isReconciledFor(prebuilt), isReconciledFor(other))
	}
	taken := prebuilt.DeepCopy()
	taken.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(job,
		batchv1.SchemeGroupVersion.WithKind("CronJob"))}
	if !isReconciledFor(taken) {
		t.Error("a job is not reconciled for the Workload that it names and that belongs to another: it is not told when that is gone")
	}
	owned := other.DeepCopy()
	owned.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(job,
		batchv1.SchemeGroupVersion.WithKind("Job"))}
	foreign := other.DeepCopy()
	foreign.OwnerReferences =
		[]metav1.OwnerReference{*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("CronJob"))}
	if !isReconciledFor(owned) || isReconciledFor(foreign) {
		t.Errorf("reconciled for the job's own Workload: %t, for that of a CronJob of its name: %t, want true and false",
			isReconciledFor(owned), isReconciledFor(foreign))
	}
	if err := w.api.Delete(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	reconcile()
	if isReconciledFor(prebuilt) {
		t.Error("a deleted job is still reconciled for the Workload that it named")
	}
}

// TestJobWithAMistakeDoesNotAdoptAWorkload: the event says that the job is not queued, which must hold for a job with a
// prebuilt Workload as well.
func TestJobWithAMistakeDoesNotAdoptAWorkload(t *testing.T) {
	job := newBatchJob("cq", true)
	job.Labels[kueue.PrebuiltWorkloadLabel], job.Labels[kueue.MaxExecTimeSecondsLabel] = "prebuilt", "1h"
	w := newBatchWorld(t, fault{}, job, 0)
	w.put(&kueue.Workload{ObjectMeta: metav1.ObjectMeta{Name: "prebuilt", Namespace: "ns"}, Spec: kueue.WorkloadSpec{
		PodSets: []kueue.PodSet{{Name: "main", Count: 2, Template: newBatchJob("", true).Spec.Template}}}})
	relabel := func(seconds string) *kueue.Workload {
		changed := w.batchJob()
		changed.Labels[kueue.MaxExecTimeSecondsLabel] = seconds
		if err := w.api.Update(t.Context(), changed); err != nil {
			t.Fatal(err)
		}
		w.reconcile()
		return &list[kueue.WorkloadList](w.world).Items[0]
	}
	if found := relabel("1h"); metav1.IsControlledBy(found, job) || len(w.events.events) != 1 ||
		!strings.HasSuffix(w.events.events[0], ". The job is not queued until this is corrected") {
		t.Errorf("with a mistake: events %q, Workload adopted: %t, want one event and no adoption", w.events.events,
			metav1.IsControlledBy(found, job))
	}
	if !metav1.IsControlledBy(relabel("60"), job) {
		t.Error("the corrected job has not adopted its Workload")
	}
	relabel("1h")
	if last := w.events.events[len(w.events.events)-1]; !strings.HasSuffix(last,
		". Until this is corrected the job keeps its previous settings") {
		t.Errorf("the last event of a job that has its Workload is %q, want that it keeps its settings", last)
	}
}

// TestJobWithAMistakeGetsNoNewWorkload once the Workload that it had, which no longer matches it, is gone.
func TestJobWithAMistakeGetsNoNewWorkload(t *testing.T) {
	w := newBatchWorld(t, fault{}, newBatchJob("cq", true), 0)
	w.reconcile() // the Workload is created
	w.admit()
	changed := w.batchJob()
	changed.Labels[kueue.MaxExecTimeSecondsLabel] = "1h"
	changed.Spec.Template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse("1")}
	if err := w.api.Update(t.Context(), changed); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		w.reconcile()
	}
	if left := list[kueue.WorkloadList](w.world).Items; len(left) != 0 {
		t.Fatalf("Workloads = %+v, want none", left)
	}
	reported := 0
	for _, event := range w.events.events {
		if strings.Contains(event, "keeps its previous settings") {
			t.Errorf("unexpected event %q", event)
		}
		if strings.HasSuffix(event, ". The job is not queued until this is corrected") {
			reported++
		}
	}
	if reported != 1 {
		t.Errorf("reported %d times that the job is not queued, want once: %q", reported, w.events.events)
	}
}
