package jobset

import (
	"fmt"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/jobs"
)

// TestJobsThatHadSucceededBeforeTheAdmissionHoldNoPlaces: the places and ranks of an admission are those of the other
// Jobs. Jobs that succeed later keep theirs.
func TestJobsThatHadSucceededBeforeTheAdmissionHoldNoPlaces(t *testing.T) {
	js := twoByFour()
	js.Spec.ReplicatedJobs[0].Replicas = 4
	js.Spec.ReplicatedJobs[0].Template.Spec.Parallelism, js.Spec.ReplicatedJobs[0].Template.Spec.Completions =
		ptr.To[int32](2), ptr.To[int32](2)
	grant := grantPlaces(on("a", 2), on("b", 1), on("c", 1))
	workers := grant.PodSets["workers"]
	workers.Count, workers.Left = 4, 4
	grant.PodSets["workers"] = workers
	succeeded := []jobBuilder{job("workers", 2).of(2).ended(batchv1.JobComplete, now.Add(-2*time.Minute)),
		job("workers", 0).of(2).ended(batchv1.JobComplete, now.Add(-time.Minute))}
	p := checkedPlan(t, js, grant, of(succeeded...))
	second, last := createdJob(t, p, "js-workers-1").Spec.Template, createdJob(t, p, "js-workers-3").Spec.Template
	same(t, "nodes of the first Job that has not succeeded", []string{"a"}, hostNames(second.Spec))
	same(t, "gates of the last Job", []corev1.PodSchedulingGate{{Name: kueue.TopologyGate}}, last.Spec.SchedulingGates)
	if got := second.Annotations[muster.RanksAnnotation] + " " +
		last.Annotations[muster.RanksAnnotation]; got != "0-1 2-3" {
		t.Errorf("the Jobs' ranks are %q, want 0-1 2-3", got)
	}

	// A Job that succeeds after the admission keeps its ranks, so those of the others stay the same.
	running := createdJob(t, p, "js-workers-3")
	running.Status.Active = 2
	later := of(append(succeeded, job("workers", 1).of(2).ended(batchv1.JobComplete, now))...)
	same(t, "writes once another Job has succeeded", nil, writes(checkedPlan(t, js, grant, append(later, running))))
}

// TestWhichJobsWereAdmitted checks the ranks of each Job, as "first+count", by the counts of the admission and the Jobs
// that have succeeded, the earliest first.
func TestWhichJobsWereAdmitted(t *testing.T) {
	for name, tc := range map[string]struct {
		jobs, asked, count int32
		succeeded          []int32
		want               string
	}{
		"all":                                   {3, 6, 6, nil, "0+2 2+2 4+2"},
		"all, one succeeded since":              {3, 6, 6, []int32{0}, "0+2 2+2 4+2"},
		"one succeeded before":                  {3, 6, 4, []int32{1}, "0+2 2+0 2+2"},
		"two succeeded, the earlier one before": {3, 6, 4, []int32{1, 0}, "0+2 2+0 2+2"},
		"two succeeded before":                  {4, 8, 4, []int32{3, 0}, "0+0 0+2 2+2 4+0"},
		"all, with half of their pods":          {3, 6, 3, nil, "0+1 1+1 2+1"},
		"one succeeded before, the others with half of their pods":  {3, 6, 2, []int32{0}, "0+0 0+1 1+1"},
		"count that is no multiple of a Job's pods, treated as all": {3, 6, 5, nil, "0+2 2+2 4+2"},
		"all succeeded before": {2, 4, 0, []int32{0, 1}, "0+0 0+0"},
		"no pods":              {2, 0, 0, nil, "0+0 0+0"},
		"no Jobs":              {0, 0, 0, nil, ""},
	} {
		rj := setBuilder{twoByFour()}.with("w", tc.jobs).js.Spec.ReplicatedJobs[1]
		r := newRankLayout(&rj, jobs.PodSetAdmission{Asked: tc.asked, Count: tc.count}, tc.succeeded)
		got := ""
		for index := range tc.jobs {
			from, to := r.ranks(index)
			got += fmt.Sprintf(" %d+%d", from, to-from)
		}
		if got != "" {
			got = got[1:]
		}
		if got != tc.want {
			t.Errorf("%s: ranks = %q, want %q", name, got, tc.want)
		}
	}
}

// TestPlacesOfExclusiveJobs checks that each Job selects the domain of its own places, whichever Jobs had succeeded
// before the admission.
func TestPlacesOfExclusiveJobs(t *testing.T) {
	js := twoByFour()
	js.Annotations = map[string]string{"alpha.jobset.sigs.k8s.io/exclusive-topology": "rack"}
	grant := grantPlaces(on("c", 2), on("d", 2))
	workers := grant.PodSets["workers"]
	workers.Count, workers.Left, workers.SliceSize = 4, 4, 4
	grant.PodSets["workers"] = workers
	p := checkedPlan(t, js, grant, of(job("workers", 0).of(4).succeeded()))
	if got := createdJob(t, p, "js-workers-1").Spec.Template.Spec.NodeSelector["rack"]; got != "r2" {
		t.Errorf("the Job selects the rack %q, want r2", got)
	}
}
