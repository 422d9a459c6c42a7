package jobset

import (
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	"github.com/musterhq/muster/internal/jobs"
)

// row says which of the admitted ranks the Jobs of a replicated job have: they follow one another in the order of job
// indexes.
type row struct {
	// pods is the number of pods of each Job.
	pods int32
	// over lists, in order, the indexes of Jobs that had succeeded before and were not admitted. They have no ranks.
	over []int32
}

// ranks returns the admitted ranks, from (inclusive) to to (exclusive), of the pods of the Job with this index. A Job
// that was not admitted has none.
func (r row) ranks(index int32) (from, to int32) {
	before, over := slices.BinarySearch(r.over, index)
	from = (index - int32(before)) * r.pods
	if over {
		return from, from
	}
	return from, from + r.pods
}

// said returns the value of the annotation that tells pods the ranks of their Job, as in 4-7, if these do not follow
// from its index; otherwise "".
func (r row) said(index int32) string {
	from, to := r.ranks(index)
	if len(r.over) == 0 || from >= to {
		return ""
	}
	return fmt.Sprintf("%d-%d", from, to-1)
}

// rowOf returns the row of a replicated job.
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

// rowOf derives from the number of admitted pods, and of those asked for, which Jobs were admitted. A JobSet that is
// queued again asks for no quota for Jobs that have succeeded; success is final, so the Jobs that were left out are
// those that succeeded first, as many as there are pods missing. Others may have succeeded shortly before the
// admission, which did not know it: these have ranks that nothing uses. If pods are missing because the Jobs were made
// smaller before the Workload said so, each Job has fewer pods. succeeded lists the indexes of succeeded Jobs in the
// order in which they succeeded.
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

// succeededOf returns the indexes of the succeeded Jobs of a replicated job, in the order in which they succeeded.
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
