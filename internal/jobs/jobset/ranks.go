package jobset

import (
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	"github.com/musterhq/muster/internal/jobs"
)

// row is how the pods of a replicated job lie in the ranks that were admitted: Job after
// Job in the order of indices.
type row struct {
	// pods of each Job.
	pods int32
	// over are the indices of Jobs that had succeeded before and were not admitted, in
	// order: nobody has their ranks.
	over []int32
}

// ranks are those of the pods of the Job with the index among all that were admitted: from,
// and up to but not including to. A Job that was not admitted has none.
func (r row) ranks(index int32) (from, to int32) {
	before, over := slices.BinarySearch(r.over, index)
	from = (index - int32(before)) * r.pods
	if over {
		return from, from
	}
	return from, from + r.pods
}

// said is how pods are told the ranks of their Job where these do not follow from its index,
// as 4-7; "" where they do.
func (r row) said(index int32) string {
	from, to := r.ranks(index)
	if len(r.over) == 0 || from >= to {
		return ""
	}
	return fmt.Sprintf("%d-%d", from, to-1)
}

// rowOf is the row of a replicated job.
func (a *attempt) rowOf(rj *jobset.ReplicatedJob, granted jobs.PodSetAdmission) row {
	if r, known := a.rows[rj.Name]; known {
		return r
	}
	r := row{pods: granted.Count}
	if !boundsOf(a.js, rj).Elastic {
		r = rowOf(rj, granted, a.succeededOf(rj.Name))
	}
	a.rows[rj.Name] = r
	return r
}

// rowOf tells from how many pods were admitted of those that were asked for which Jobs these
// are, of those that have succeeded by now. Quota is asked for again without Jobs that have
// succeeded, so as many of these are left out as pods are missing, and since success is for
// good those that had it first. It may be that others succeeded before the admission that it
// did not hear of: these have ranks, which nobody uses. Where pods are missing because the
// Jobs were made smaller, and the Workload did not say so yet, each Job has fewer.
func rowOf(rj *jobset.ReplicatedJob, granted jobs.PodSetAdmission, succeeded []int32) row {
	whole := granted.Asked / max(1, rj.Replicas)
	for pods := whole; pods > 0; pods-- {
		if left := rj.Replicas - granted.Count/pods; granted.Count%pods == 0 && left >= 0 && int(left) <= len(succeeded) {
			over := slices.Clone(succeeded[:left])
			slices.Sort(over)
			return row{pods: pods, over: over}
		}
	}
	return row{pods: whole}
}

// succeededOf are the indices of the Jobs of a replicated job that have succeeded, in the
// order in which they did.
func (a *attempt) succeededOf(replicatedJob string) []int32 {
	var ended []*batchv1.Job
	for _, job := range a.children.succeeded {
		if job.Labels[jobset.ReplicatedJobNameKey] == replicatedJob {
			ended = append(ended, job)
		}
	}
	slices.SortStableFunc(ended, func(x, y *batchv1.Job) int {
		return condition(x, batchv1.JobComplete).LastTransitionTime.Compare(condition(y, batchv1.JobComplete).LastTransitionTime.Time)
	})
	var out []int32
	for _, job := range ended {
		if index, ok := attemptOf(job, jobset.JobIndexKey); ok {
			out = append(out, index)
		}
	}
	return out
}
