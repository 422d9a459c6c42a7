package jobset

import (
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/podspec"
)

// rankLayout says which of the admitted ranks the Jobs of a replicated job have: they follow one another in the order
// of job indexes.
type rankLayout struct {
	// pods is the number of pods of each Job.
	pods int32
	// notAdmitted lists, in order, the indexes of Jobs that had succeeded before and were not admitted. They have no
	// ranks.
	notAdmitted []int32
	// places are those of all admitted ranks.
	places podspec.Ranking
}

// ranks returns the admitted ranks, from (inclusive) to to (exclusive), of the pods of the Job with this index. A Job
// that was not admitted has none.
func (r rankLayout) ranks(index int32) (from, to int32) {
	before, over := slices.BinarySearch(r.notAdmitted, index)
	from = (index - int32(before)) * r.pods
	if over {
		return from, from
	}
	return from, from + r.pods
}

// part returns the admitted ranks and places of the Job with this index.
func (r rankLayout) part(index int32) jobs.Part {
	from, to := r.ranks(index)
	return jobs.Part{From: from, To: to, Places: r.places.Ranks(from, to)}
}

// annotation returns the value of the annotation that tells pods the ranks of their Job, as in 4-7, if these do not
// follow from its index; otherwise "".
func (r rankLayout) annotation(index int32) string {
	from, to := r.ranks(index)
	if len(r.notAdmitted) == 0 || from >= to {
		return ""
	}
	return fmt.Sprintf("%d-%d", from, to-1)
}

// layoutOf returns the rank layout of a replicated job.
func (p *planner) layoutOf(rj *jobset.ReplicatedJob, granted jobs.PodSetAdmission) rankLayout {
	if r, known := p.layouts[rj.Name]; known {
		return r
	}
	r := rankLayout{pods: granted.Count}
	if !boundsOf(p.js, rj).Elastic {
		r = newRankLayout(rj, granted, p.succeededOf(rj.Name))
	}
	r.places = granted.Places.Ranking()
	p.layouts[rj.Name] = r
	return r
}

// newRankLayout derives from the number of admitted pods, and of those asked for, which Jobs were admitted. A JobSet
// that is queued again asks for no quota for Jobs that have succeeded; success is final, so the Jobs that were left out
// are those that succeeded first, as many as there are pods missing. Others may have succeeded shortly before the
// admission, which did not know it: these have ranks that nothing uses. If pods are missing because the Jobs were made
// smaller before the Workload said so, each Job has fewer pods. succeeded lists the indexes of succeeded Jobs in the
// order in which they succeeded.
func newRankLayout(rj *jobset.ReplicatedJob, granted jobs.PodSetAdmission, succeeded []int32) rankLayout {
	whole := granted.Asked / max(1, rj.Replicas)
	for pods := whole; pods > 0; pods-- {
		if left := rj.Replicas - granted.Count/pods; granted.Count%pods == 0 && left >= 0 && int(left) <= len(succeeded) {
			over := slices.Clone(succeeded[:left])
			slices.Sort(over)
			return rankLayout{pods: pods, notAdmitted: over}
		}
	}
	return rankLayout{pods: whole}
}

// succeededOf returns the indexes of the succeeded Jobs of a replicated job, in the order in which they succeeded.
func (p *planner) succeededOf(replicatedJob string) []int32 {
	var ended []*batchv1.Job
	for _, job := range p.children.succeeded {
		if job.Labels[jobset.ReplicatedJobNameKey] == replicatedJob {
			ended = append(ended, job)
		}
	}
	slices.SortStableFunc(ended, func(x, y *batchv1.Job) int {
		return jobs.TrueCondition(x, batchv1.JobComplete).LastTransitionTime.Compare(jobs.TrueCondition(y, batchv1.JobComplete).LastTransitionTime.Time)
	})
	var out []int32
	for _, job := range ended {
		if index, ok := attemptOf(job, jobset.JobIndexKey); ok {
			out = append(out, index)
		}
	}
	return out
}
