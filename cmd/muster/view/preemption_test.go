package view

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/workload"
)

// TestThePreemptionOfAWaitingJobStaysKnown, as far as the reader sees who preempted it: the job of another namespace is
// named only if it is read too, one of the same namespace also once it is gone.
func TestThePreemptionOfAWaitingJobStaysKnown(t *testing.T) {
	const byUID = "Preempted to accommodate a workload (UID: uid-of-it, JobUID: uid-other) due to reclamation within the cohort; preemptor path: /lab/a; preemptee path: /lab/b"
	preempted := func(message string) kueue.Workload {
		return aWorkload("train",
			with(kueue.WorkloadQuotaReserved, metav1.ConditionFalse, "WaitingForQuota", "1 more needed", 50),
			with(kueue.WorkloadEvicted, metav1.ConditionTrue, "Preempted", message, 40),
			with(kueue.WorkloadPreempted, metav1.ConditionTrue, kueue.InCohortReclamationReason, message, 40))
	}
	other := aJobSet("other", inQueue("gpu"))
	other.UID, other.Namespace = "uid-other", "red"
	for name, tc := range map[string]struct {
		workload kueue.Workload
		others   []jobset.JobSet
		want     *Preemption
	}{
		"by a job that is seen": {preempted(byUID), []jobset.JobSet{other},
			&Preemption{By: "red/jobset/other", Right: "InCohortReclamation", At: at(40)}},
		"by a job that is not seen": {preempted(byUID), nil, &Preemption{Right: "InCohortReclamation", At: at(40)}},
		"by a job of its namespace, now gone": {preempted(byUID + "; preemptor: jobset/gone"), nil,
			&Preemption{By: "ml/jobset/gone", Right: "InCohortReclamation", At: at(40)}},
		"not preempted": {aWorkload("train",
			with(kueue.WorkloadQuotaReserved, metav1.ConditionFalse, "WaitingForQuota", "1 more needed", 50)), nil, nil},
		"admitted again since": {aWorkload("train", admitted(60),
			with(kueue.WorkloadPreempted, metav1.ConditionFalse, "QuotaReserved", "Previously: "+byUID, 60)), nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			snapshot := &Snapshot{JobSets: append(tc.others, aJobSet("train", inQueue("gpu"))),
				Workloads: []kueue.Workload{tc.workload}}
			for _, job := range Jobs(snapshot, at(60).Time) {
				if job.Name != "train" {
					continue
				}
				if diff := cmp.Diff(tc.want, job.Preempted); diff != "" {
					t.Errorf("preemption differs (-want +got):\n%s", diff)
				}
			}
		})
	}
}

// TestARejectionDuringAnEvictionIsShown: the job does not come back to its queue, as the eviction alone would let
// expect.
func TestARejectionDuringAnEvictionIsShown(t *testing.T) {
	w := aWorkload("train", admitted(20),
		with(kueue.WorkloadEvicted, metav1.ConditionTrue, "AdmissionCheck", `AdmissionCheck in Retry state: "d1"`, 40),
		with(kueue.WorkloadDeactivationTarget, metav1.ConditionTrue, "AdmissionCheck",
			`AdmissionCheck in Rejected state: "d2"`, 45))
	jobs := Jobs(&Snapshot{JobSets: []jobset.JobSet{aJobSet("train", inQueue("gpu"))},
		Workloads: []kueue.Workload{w}}, at(60).Time)
	want := `it does not return to its queue: AdmissionCheck in Rejected state: "d2"; it is being evicted for: AdmissionCheck in Retry state: "d1"`
	if jobs[0].State != Evicting || jobs[0].Message != want {
		t.Errorf("the job is %s: %s\nwant: %s", jobs[0].State, jobs[0].Message, want)
	}

	w.Spec.Active = ptr.To(false)
	meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadEvicted).Message =
		`AdmissionCheck in Retry state: "d1"` + workload.ForGood + `AdmissionCheck in Rejected state: "d2"`
	jobs = Jobs(&Snapshot{JobSets: []jobset.JobSet{aJobSet("train", inQueue("gpu"))},
		Workloads: []kueue.Workload{w}}, at(60).Time)
	if jobs[0].Message != want {
		t.Errorf("message of a deactivated job = %s\nwant: %s", jobs[0].Message, want)
	}
}

// TestAListSaysWhatIsWrongWithAJob that got no Workload, by the last warning about it.
func TestAListSaysWhatIsWrongWithAJob(t *testing.T) {
	warning := func(of, message string, seconds int) corev1.Event {
		return corev1.Event{Reason: "InvalidJob", Message: message,
			InvolvedObject: corev1.ObjectReference{UID: types.UID(of)}, LastTimestamp: at(seconds)}
	}
	jobs := Jobs(&Snapshot{JobSets: []jobset.JobSet{aJobSet("bad", inQueue("gpu")), aJobSet("new", inQueue("gpu")),
		aJobSet("queued", inQueue("gpu"))},
		Workloads: []kueue.Workload{aWorkload("queued", waitingForQuota)}}, at(60).Time)
	NoteMistakes(jobs, []corev1.Event{warning("uid-bad", "an older one", 1),
		warning("uid-bad", "slice-size 8 is more than 4 pods", 9), warning("uid-queued", "of before", 9)})
	for i, want := range []string{"InvalidJob: no Workload yet: slice-size 8 is more than 4 pods", noWorkloadYet,
		"WaitingForQuota: 32 more needed"} {
		if got := jobs[i].Why(); got != want {
			t.Errorf("%s: got %q, want %q", jobs[i].Name, got, want)
		}
	}
}
