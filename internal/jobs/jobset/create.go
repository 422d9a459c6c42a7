package jobset

import (
	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	"github.com/musterhq/muster/internal/jobs"
)

// createJobs creates the Jobs that are missing, in the order of the spec, as far as
// the policies of start let it. A name that a Job of an earlier attempt still has
// is left until that Job is gone, and under BlockingRecreate all names are.
func (a *attempt) createJobs() {
	if blocking(a.js) && len(a.children.previous) > 0 {
		return
	}
	for i := range a.js.Spec.ReplicatedJobs {
		rj := &a.js.Spec.ReplicatedJobs[i]
		if !a.dependenciesMet(rj) {
			continue
		}
		for index := range rj.Replicas {
			if a.children.named[jobName(a.js, rj.Name, index)] == nil {
				a.plan.Writes = append(a.plan.Writes, jobs.Create(a.newJob(rj, index)).OrWarn(jobset.JobCreationFailedReason))
			}
		}
		if a.waitsInOrder(rj) {
			return
		}
	}
	a.noteAllStarted()
}

func blocking(js *jobset.JobSet) bool {
	policy := js.Spec.FailurePolicy
	return policy != nil && policy.RestartStrategy == jobset.BlockingRecreate
}
