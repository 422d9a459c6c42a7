package jobs_test

import (
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
)

// statuses are the writes of the JobSet's status so far.
func (w *world) statuses() int {
	n := 0
	for _, write := range w.writes {
		if len(write) > 6 && write[:6] == "status" && write[7:13] == "JobSet" {
			n++
		}
	}
	return n
}

// TestCountsAreToldOnceASecond: however often the Jobs of a JobSet change meanwhile.
func TestCountsAreToldOnceASecond(t *testing.T) {
	w := newWorld(t, fault{}, newJobSet(""))
	w.fate = running
	w.reconcile()
	if w.statuses() != 1 {
		t.Fatalf("the first status is not written at once: %v", w.writes)
	}
	w.runJobs()
	first := w.reconcile().RequeueAfter
	w.clock.SetTime(epoch.Add(400 * time.Millisecond))
	w.runJobs()
	then := w.reconcile().RequeueAfter
	if w.statuses() != 1 || first != time.Second || then != 600*time.Millisecond {
		t.Fatalf("%d statuses, due after %s and then %s", w.statuses(), first, then)
	}
	w.clock.SetTime(epoch.Add(time.Second))
	w.reconcile()
	if got := w.jobSet().Status.ReplicatedJobsStatus; w.statuses() != 2 || got[0].Ready != 2 || got[1].Ready != 1 {
		t.Fatalf("%d statuses, %+v", w.statuses(), got)
	}
	if result := w.reconcile(); result.RequeueAfter != 0 || w.statuses() != 2 {
		t.Errorf("at rest: due after %s, %d statuses", result.RequeueAfter, w.statuses())
	}
}

// TestWhatTellsMoreThanCountsIsWrittenAtOnce: and the counts with it.
func TestWhatTellsMoreThanCountsIsWrittenAtOnce(t *testing.T) {
	w := newWorld(t, fault{}, newJobSet(""))
	w.reconcile()
	for range 3 { // pods, ready pods, the end
		w.runJobs()
	}
	w.reconcile()
	if w.outcome() != "Completed" || w.jobSet().Status.ReplicatedJobsStatus[0].Succeeded != 2 {
		t.Errorf("status %+v", w.jobSet().Status)
	}
	if w.statuses() != 2 {
		t.Errorf("%d statuses: %v", w.statuses(), w.writes)
	}
}

func TestCountsOfAJobThatGoesAreForgotten(t *testing.T) {
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
		t.Errorf("a new JobSet of the name is due after %s; writes %v", result.RequeueAfter, w.writes[len(before):])
	}
}
