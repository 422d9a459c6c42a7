package controller_test

import (
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	tensorstack "github.com/musterhq/muster/api/tensorstack/v1beta1"
)

// statuses returns how often the JobSet's status has been written.
func (w *world) statuses() int {
	n := 0
	for _, write := range w.writes {
		if len(write) > 6 && write[:6] == "status" && write[7:13] == "JobSet" {
			n++
		}
	}
	return n
}

// TestCountsAreWrittenOnceASecond, however often the Jobs of a JobSet change meanwhile.
func TestCountsAreWrittenOnceASecond(t *testing.T) {
	w := newWorld(t, fault{}, newJobSet(""))
	w.fate = running
	first := w.reconcile().RequeueAfter
	w.clock.SetTime(epoch.Add(400 * time.Millisecond))
	w.runJobs()
	then := w.reconcile().RequeueAfter
	w.runJobs()
	w.reconcile()
	if w.statuses() != 0 || first != time.Second || then != 600*time.Millisecond {
		t.Fatalf("%d status writes, due after %s and then %s; want none, due after 1s and then 600ms", w.statuses(), first, then)
	}
	w.clock.SetTime(epoch.Add(time.Second))
	w.reconcile()
	if got := w.jobSet().Status.ReplicatedJobsStatus; w.statuses() != 1 || got[0].Ready != 2 || got[1].Ready != 1 {
		t.Fatalf("%d status writes, the last %+v; want one with 2 and 1 ready", w.statuses(), got)
	}
	if result := w.reconcile(); result.RequeueAfter != 0 || w.statuses() != 1 {
		t.Errorf("without a change: requeued after %s, %d status writes in all; want no requeue and 1",
			result.RequeueAfter, w.statuses())
	}
}

// TestReclaimsAreWrittenTogether: the reclaimable pods of Jobs that end within a second are written at once.
func TestReclaimsAreWrittenTogether(t *testing.T) {
	w := newWorld(t, fault{}, newJobSet("cq"), clusterQueue("cq"), flavor())
	ended := map[string]bool{}
	w.fate = func(job *batchv1.Job) batchv1.JobConditionType {
		if ended[job.Name] {
			return batchv1.JobComplete
		}
		return ""
	}
	w.settle()
	reclaimed := func() int {
		n := 0
		for _, r := range list[kueue.WorkloadList](w).Items[0].Status.ReclaimablePods {
			n += int(r.Count)
		}
		return n
	}
	ended["js-leader-0"] = true
	w.runJobs()
	if due := w.reconcile().RequeueAfter; due != time.Second || reclaimed() != 0 {
		t.Fatalf("due after %s, %d pods reclaimable; want 1s and 0", due, reclaimed())
	}
	ended["js-workers-0"] = true
	w.runJobs()
	w.reconcile()
	before := len(w.writes)
	w.clock.SetTime(w.clock.Now().Add(time.Second))
	w.reconcile()
	if reclaimed() != 2 {
		t.Errorf("%d pods reclaimable, want 2; writes %v", reclaimed(), w.writes[before:])
	}
}

// TestStatusWithMoreThanCountsIsWrittenAtOnce, together with the counts.
func TestStatusWithMoreThanCountsIsWrittenAtOnce(t *testing.T) {
	w := newWorld(t, fault{}, newJobSet(""))
	w.reconcile()
	for range 3 { // pods, ready pods, the end
		w.runJobs()
	}
	w.reconcile()
	if w.outcome() != "Completed" || w.jobSet().Status.ReplicatedJobsStatus[0].Succeeded != 2 {
		t.Errorf("status = %+v, want Completed with 2 succeeded workers' Jobs", w.jobSet().Status)
	}
	if w.statuses() != 1 {
		t.Errorf("%d status writes, want 1: %v", w.statuses(), w.writes)
	}
}

// TestDeferralsOfADeletedJobAreForgotten: a new JobSet of the same name does not inherit their due time.
func TestDeferralsOfADeletedJobAreForgotten(t *testing.T) {
	w := newWorld(t, fault{}, newJobSet(""))
	w.fate = func(*batchv1.Job) batchv1.JobConditionType { return "" }
	w.reconcile()
	w.runJobs()
	w.reconcile()
	if err := w.api.Delete(t.Context(), w.jobSet()); err != nil {
		t.Fatal(err)
	}
	w.reconcile()
	w.clock.SetTime(epoch.Add(time.Minute))
	before := slices.Clone(w.writes)
	w.put(newJobSet(""))
	w.reconcile()
	w.runJobs()
	if result := w.reconcile(); result.RequeueAfter != time.Second {
		t.Errorf("the new JobSet of the name is due after %s, want 1s; writes %v", result.RequeueAfter,
			w.writes[len(before):])
	}
}

// TestStatusIsWrittenBeforeReclaims: the status of a GenericJob may be deferred for longer than the reclaimable pods,
// but is the only record of how a deleted pod ended.
func TestStatusIsWrittenBeforeReclaims(t *testing.T) {
	w := genericLives["succeeded, other pods keep running"].begin(t, fault{})
	w.mayEnd = func(pod *corev1.Pod) bool {
		return pod.Name == "job-worker-0" && w.genericJob().Status.Phase == tensorstack.JobPhaseRunning
	}
	for turns := 0; len(list[kueue.WorkloadList](w.world).Items) == 0 ||
		w.workload().Status.ReclaimablePods == nil; turns++ {
		if turns > 50 {
			t.Fatalf("no pods became reclaimable in 50 turns; writes %v", w.writes)
		}
		due := w.reconcile().RequeueAfter
		w.admit()
		w.kubelet()
		w.clock.SetTime(w.clock.Now().Add(due))
	}
	for _, pod := range list[corev1.PodList](w.world).Items {
		if pod.Name == "job-worker-0" {
			if err := w.api.Delete(t.Context(), &pod); err != nil {
				t.Fatal(err)
			}
		}
	}
	w.kubelet()
	w.reconcile()
	if times := w.created["Pod job-worker-0"]; times != 1 {
		t.Errorf("the pod that had succeeded was created %d times, want once; writes %v", times, w.writes)
	}
}
