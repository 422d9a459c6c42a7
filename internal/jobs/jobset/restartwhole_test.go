package jobset

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/jobs"
)

func (s setBuilder) whole() setBuilder {
	metav1.SetMetaDataAnnotation(&s.js.ObjectMeta, muster.RestartWholeAnnotation, "true")
	return s
}

// partly makes the Job one of two pods, one of which has succeeded.
func (j jobBuilder) partly() jobBuilder {
	j.job.Spec.CompletionMode = ptr.To(batchv1.IndexedCompletion)
	j.job.Spec.Parallelism, j.job.Spec.Completions = ptr.To[int32](2), ptr.To[int32](2)
	j.job.Status.Succeeded, j.job.Status.CompletedIndexes = 1, "0"
	return j
}

// TestAPartlyDoneJobSetRestartsAsAWhole: the Jobs of which pods have succeeded are deleted once all have stopped, and
// the JobSet queues for all of its pods.
func TestAPartlyDoneJobSetRestartsAsAWhole(t *testing.T) {
	stopped := func(name string, index int) jobBuilder {
		return job(name, index).suspended().acknowledged().generation(2)
	}
	const one = "Warning RestartsWhole: The JobSet was stopped when pods of 1 of its Jobs had succeeded, such as js-workers-0: all pods are run again"
	for name, tc := range map[string]struct {
		set      setBuilder
		grant    jobs.Admission
		mustGoOn bool
		jobs     []jobBuilder
		writes   []string
		events   []string
		active   bool  // whether the quota is kept
		unneeded int32 // pods of the workers that it does not need at its next admission
	}{
		"a Job is done": {newSet().whole(), stopping, false,
			[]jobBuilder{stopped("leader", 0), job("workers", 0).succeeded(), stopped("workers", 1)},
			[]string{"delete Job js-workers-0"}, []string{one}, true, 0},
		"a Job is partly done": {newSet().whole(), stopping, false,
			[]jobBuilder{stopped("leader", 0), stopped("workers", 0).partly(), stopped("workers", 1)},
			[]string{"delete Job js-workers-0"}, []string{one}, true, 0},
		"a Job still runs": {newSet().whole(), stopping, false,
			[]jobBuilder{job("leader", 0).ready(), job("workers", 0).succeeded(), stopped("workers", 1)},
			[]string{"change Job js-leader-0, suspended"}, nil, true, 0},
		"pods of a Job terminate": {newSet().whole(), stopping, false,
			[]jobBuilder{stopped("leader", 0).active(), job("workers", 0).succeeded(), stopped("workers", 1)},
			nil, nil, true, 0},
		"it is being deleted": {newSet().whole(), stopping, false,
			[]jobBuilder{stopped("leader", 0), job("workers", 0).succeeded().deleting(), stopped("workers", 1)},
			nil, nil, false, 0},
		"it is gone": {newSet().whole(), stopping, false, []jobBuilder{stopped("leader", 0), stopped("workers", 1)},
			nil, nil, false, 0},
		"none is done": {newSet().whole(), stopping, false,
			[]jobBuilder{stopped("leader", 0), stopped("workers", 0), stopped("workers", 1)}, nil, nil, false, 0},
		"it does not ask": {newSet(), stopping, false,
			[]jobBuilder{stopped("leader", 0), job("workers", 0).succeeded(), stopped("workers", 1)}, nil, nil, false, 1},
		"the deletion is refused": {newSet().whole(), stopping, true,
			[]jobBuilder{stopped("leader", 0), job("workers", 0).succeeded(), stopped("workers", 1)},
			[]string{"delete Job js-workers-0"}, []string{one}, false, 1},
		"the annotation is set while it waits": {newSet().whole(), waiting, false,
			[]jobBuilder{stopped("leader", 0), job("workers", 0).succeeded(), stopped("workers", 1)},
			[]string{"delete Job js-workers-0"}, []string{one}, false, 0},
		"all are done": {newSet().whole(), stopping, false,
			[]jobBuilder{job("leader", 0).succeeded(), job("workers", 0).succeeded(), job("workers", 1).succeeded()}, nil,
			[]string{"Normal AllJobsCompleted: jobset completed successfully"}, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			seen := seenOf(tc.set.js, tc.grant, of(tc.jobs...))
			seen.MustGoOn = tc.mustGoOn
			p := plan(seen)
			same(t, "writes", tc.writes, writes(p))
			var told []string
			for _, e := range events(p) {
				if e != "Normal SuspendedJobs: jobset is suspended" {
					told = append(told, e)
				}
			}
			same(t, "events", tc.events, told)
			same(t, "quota kept", tc.active, p.Progress.Active)
			same(t, "pods not needed", tc.unneeded, p.Progress.Reclaimable["workers"])
		})
	}
}

// TestADeletedJobOfAnEarlierAdmissionDoesNotCount: the JobSet is admitted again before the Job that was done is gone.
// Its quota must not be returned, and a new Job follows.
func TestADeletedJobOfAnEarlierAdmissionDoesNotCount(t *testing.T) {
	left := []jobBuilder{job("leader", 0).ready(), job("workers", 1).ready()}
	b := newSet().whole()
	p := checkedPlan(t, b.js, admitted, of(append(left, job("workers", 0).succeeded().deleting())...))
	same(t, "writes while it is being deleted", nil, writes(p))
	same(t, "pods not needed", 0, p.Progress.Reclaimable["workers"])
	if status := statusOf(p).ReplicatedJobsStatus; status[0].Succeeded != 0 {
		t.Errorf("%d workers count as succeeded, want none", status[0].Succeeded)
	}
	p = checkedPlan(t, b.js, admitted, of(left...))
	same(t, "writes once it is gone", []string{"create Job js-workers-0"}, writes(p))
}
