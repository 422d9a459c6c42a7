package controller_test

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/workload"
)

// TestDeletedJobThatSucceededRunsAgainOnlyWithQuota: its quota was returned. It waits for the other Jobs, and the
// JobSet is queued again once none runs.
func TestDeletedJobThatSucceededRunsAgainOnlyWithQuota(t *testing.T) {
	w := newWorld(t, fault{}, newJobSet("cq"), clusterQueue("cq"), flavor())
	ends := map[string]bool{"js-workers-0": true, "js-workers-1": true}
	w.fate = func(job *batchv1.Job) batchv1.JobConditionType {
		if ends[job.Name] {
			return batchv1.JobComplete
		}
		return ""
	}
	w.settle()
	w.remove("js-workers-0")
	w.settle()
	if got := w.jobSet().Status; w.podsBeyondQuota() > 0 || got.TerminalState != "" || w.created["Job js-workers-0"] != 1 {
		t.Fatalf("%d pods run without quota, and js-workers-0 was created %d times, want none and once", w.podsBeyondQuota(),
			w.created["Job js-workers-0"])
	}
	ends["js-leader-0"] = true
	w.fate = func(job *batchv1.Job) batchv1.JobConditionType {
		if beyond := w.podsBeyondQuota(); beyond > 0 {
			t.Errorf("%d pods run without quota", beyond)
		}
		return batchv1.JobComplete
	}
	w.settle()
	if got := w.outcome(); got != "Completed" || w.created["Job js-workers-0"] != 2 {
		t.Errorf("the JobSet ended as %q, and js-workers-0 was created %d times, want Completed and twice", got,
			w.created["Job js-workers-0"])
	}
}

// remove deletes the Job as a user would.
func (w *world) remove(name string) {
	w.t.Helper()
	if err := w.api.Delete(w.t.Context(),
		&batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}); err != nil {
		w.t.Fatal(err)
	}
}

// podsBeyondQuota returns how many more pods run, each of one Job, than the Workload holds quota for.
func (w *world) podsBeyondQuota() int32 {
	var held, run int32
	for _, wl := range list[kueue.WorkloadList](w).Items {
		if !workload.HoldsQuota(&wl) || workload.IsFinished(&wl) {
			continue
		}
		for i := range wl.Status.Admission.PodSetAssignments {
			left, _ := workload.PodsHoldingQuota(&wl, &wl.Status.Admission.PodSetAssignments[i])
			held += left
		}
	}
	for _, job := range list[batchv1.JobList](w).Items {
		run += job.Status.Active
	}
	return run - held
}
