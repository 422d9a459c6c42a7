package controller_test

import (
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/workload"
)

// nameWorkload sets the label by which the JobSet names a Workload made for it; "" removes it.
func (w *world) nameWorkload(name string) {
	w.t.Helper()
	js := w.jobSet()
	js.Labels[kueue.PrebuiltWorkloadLabel] = name
	if name == "" {
		delete(js.Labels, kueue.PrebuiltWorkloadLabel)
	}
	if err := w.api.Update(w.t.Context(), js); err != nil {
		w.t.Fatal(err)
	}
}

// holders returns the names of the Workloads that hold quota.
func (w *world) holders() (names []string) {
	for _, wl := range list[kueue.WorkloadList](w).Items {
		if workload.HoldsQuota(&wl) && !workload.IsFinished(&wl) {
			names = append(names, wl.Name)
		}
	}
	return names
}

// runningJobs counts the Jobs that are not suspended.
func (w *world) runningJobs() (count int) {
	for _, job := range list[batchv1.JobList](w).Items {
		if !*job.Spec.Suspend {
			count++
		}
	}
	return count
}

// prebuiltFor returns a Workload that asks for the pods of newJobSet.
func prebuiltFor(name string) *kueue.Workload {
	w := &kueue.Workload{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns"},
		Spec: kueue.WorkloadSpec{QueueName: "cq"}}
	for _, rj := range newJobSet("").Spec.ReplicatedJobs {
		w.Spec.PodSets = append(w.Spec.PodSets,
			kueue.PodSet{Name: kueue.PodSetReference(rj.Name), Count: rj.Replicas, Template: rj.Template.Spec.Template})
	}
	return w
}

// TestJobFollowsTheWorkloadWhoseQuotaItHolds: the label that names another one, or none any more, takes effect only
// once that quota is given back. At no time do two Workloads hold quota for one job.
func TestJobFollowsTheWorkloadWhoseQuotaItHolds(t *testing.T) {
	const generated = "jobset-js-"
	for name, tc := range map[string]struct {
		before, after string // the value of the label
		first, second string // the name of the Workload, or how it begins
	}{
		"label added":   {"", "two", generated, "two"},
		"label removed": {"one", "", "one", generated},
		"label changed": {"one", "two", "one", "two"},
	} {
		t.Run(name, func(t *testing.T) {
			js := newJobSet("cq")
			w := newWorld(t, fault{}, js, clusterQueue("cq"), flavor())
			w.fate = running
			w.nameWorkload(tc.before)
			if tc.before != "" {
				w.put(prebuiltFor(tc.before))
			}
			w.settle()
			first := w.holders()
			if len(first) != 1 || !strings.HasPrefix(first[0], tc.first) {
				t.Fatalf("Workloads %v hold quota, want %s", first, tc.first)
			}
			w.nameWorkload(tc.after)
			if tc.after != "" {
				w.put(prebuiltFor(tc.after))
			}
			for range 5 { // however often it is reconciled
				w.reconcile()
			}
			if got := w.runningJobs(); got != 3 {
				t.Errorf("%d Jobs run after the change, want all 3", got)
			}
			if !slices.ContainsFunc(w.events.events, func(e string) bool {
				return strings.HasPrefix(e, "LabelsCountLater: ") && strings.Contains(e, first[0])
			}) {
				t.Errorf("events = %q, want one that says that the label takes effect later", w.events.events)
			}
			for _, wl := range list[kueue.WorkloadList](w).Items {
				if wl.Name == first[0] {
					w.evictWorkload(&wl)
				}
			}
			for range 30 {
				w.reconcile()
				if owned := w.controlled(js); len(owned) > 1 {
					t.Fatalf("the job controls the Workloads %v at once", owned)
				}
				w.admit()
				w.runJobs()
			}
			if got := w.controlled(js); len(got) != 1 || !strings.HasPrefix(got[0], tc.second) || w.runningJobs() != 3 {
				t.Errorf("the job controls %v, and %d of its Jobs run, want %s and 3", got, w.runningJobs(), tc.second)
			}
			for _, wl := range list[kueue.WorkloadList](w).Items {
				if wl.Name == first[0] {
					t.Errorf("Workload %s was not given back", wl.Name)
				}
			}
		})
	}
}

// controlled returns the names of the Workloads that the job controls.
func (w *world) controlled(job metav1.Object) (names []string) {
	for _, wl := range list[kueue.WorkloadList](w).Items {
		if metav1.IsControlledBy(&wl, job) {
			names = append(names, wl.Name)
		}
	}
	return names
}

// TestWaitingJobGivesBackTheWorkloadThatItNamedBefore: while it has no quota, the label takes effect at once.
func TestWaitingJobGivesBackTheWorkloadThatItNamedBefore(t *testing.T) {
	js := newJobSet("cq")
	w := newWorld(t, fault{}, js, clusterQueue("cq"), flavor())
	w.nameWorkload("one")
	w.put(prebuiltFor("one"))
	w.reconcile()
	w.nameWorkload("")
	for range 5 {
		w.reconcile()
	}
	if got := list[kueue.WorkloadList](w).Items; len(got) != 1 || !strings.HasPrefix(got[0].Name, "jobset-js-") {
		t.Errorf("there are %d Workloads, want the generated one alone", len(got))
	}
	if !slices.ContainsFunc(w.events.events, func(e string) bool { return strings.HasPrefix(e, "WorkloadReplaced: ") }) {
		t.Errorf("events = %q, want one about the deletion", w.events.events)
	}
}

// TestJobWhoseWorkloadIsDisownedIsQueuedAgain: a Workload without an owner is finished by admission, or held its quota
// for ever. The job must neither run on without quota nor fail to be reconciled.
func TestJobWhoseWorkloadIsDisownedIsQueuedAgain(t *testing.T) {
	for name, change := range map[string]func(*kueue.Workload){
		"owner removed":                func(*kueue.Workload) {},
		"owner and label removed":      func(wl *kueue.Workload) { wl.Labels = nil },
		"owner removed, and finished":  func(wl *kueue.Workload) { finishOwnerless(wl) },
		"owner and finalizer removed":  func(wl *kueue.Workload) { wl.Finalizers = nil },
		"owner removed, without quota": func(wl *kueue.Workload) { wl.Status = kueue.WorkloadStatus{} },
		"controller made a plain owner": func(wl *kueue.Workload) {
			wl.OwnerReferences = []metav1.OwnerReference{plainOwner()}
		},
	} {
		t.Run(name, func(t *testing.T) {
			js := newJobSet("cq")
			w := newWorld(t, fault{}, js, clusterQueue("cq"), flavor())
			w.fate = running
			w.settle()
			status := list[kueue.WorkloadList](w).Items[0]
			change(&status)
			w.updateStatus(&status)
			before := list[kueue.WorkloadList](w).Items[0]
			before.OwnerReferences = nil
			change(&before)
			if err := w.api.Update(t.Context(), &before); err != nil {
				t.Fatal(err)
			}
			w.settle()
			if owned, left := w.controlled(js), len(list[kueue.WorkloadList](w).Items); len(owned) != 1 ||
				owned[0] != before.Name || left != 1 {
				t.Errorf("the job controls %v of %d Workloads, want a new %s alone", owned, left, before.Name)
			}
			if got := w.holders(); len(got) != 1 || w.runningJobs() != 3 {
				t.Errorf("%d Jobs run and Workloads %v hold quota, want all 3 with quota", w.runningJobs(), got)
			}
			if !slices.ContainsFunc(w.events.events, func(e string) bool {
				return strings.HasPrefix(e, "WorkloadDisowned: Workload "+before.Name+" is deleted")
			}) {
				t.Errorf("events = %q, want one that says why the job was stopped", w.events.events)
			}
		})
	}
}

// TestWaitingJobWhoseWorkloadIsDisownedIsReconciledUntilItHasANewOne: no event tells of the deletion, as the Workload
// names the job no longer, and a job that waits has no children whose events would.
func TestWaitingJobWhoseWorkloadIsDisownedIsReconciledUntilItHasANewOne(t *testing.T) {
	w := newBatchWorld(t, fault{}, newBatchJob("cq", true), 0)
	w.reconcile()
	disowned := list[kueue.WorkloadList](w.world).Items[0]
	disowned.OwnerReferences = nil
	if err := w.api.Update(t.Context(), &disowned); err != nil {
		t.Fatal(err)
	}
	for again := w.reconcile().RequeueAfter; again > 0; again = w.reconcile().RequeueAfter {
		w.clock.SetTime(w.clock.Now().Add(again))
	}
	left := list[kueue.WorkloadList](w.world).Items
	if owned := w.controlled(w.batchJob()); len(left) != 1 || len(owned) != 1 {
		t.Errorf("the job controls %v of %d Workloads once it is reconciled no more, want a new one", owned, len(left))
	}
}

// finishOwnerless finishes the Workload as admission does if it has no owner.
func finishOwnerless(wl *kueue.Workload) {
	workload.SetCondition(wl, kueue.WorkloadFinished, metav1.ConditionTrue, kueue.WorkloadFinishedReasonOwnerNotFound,
		"gone", metav1.Now().Time)
}

// plainOwner returns a reference to an owner that does not control.
func plainOwner() metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "c", UID: "c"}
}
