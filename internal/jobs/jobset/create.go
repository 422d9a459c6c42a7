package jobset

import (
	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	"github.com/musterhq/muster/internal/jobs"
)

// createJobs creates missing Jobs in the order of the spec, as far as dependencies and the startup policy allow. A Job
// is not created while one of an earlier attempt still has its name; under BlockingRecreate, none is created while any
// such Job exists.
func (a *planner) createJobs() {
	if blocking(a.js) && len(a.children.previous) > 0 {
		return
	}
	for i := range a.js.Spec.ReplicatedJobs {
		rj := &a.js.Spec.ReplicatedJobs[i]
		if !a.dependenciesMet(rj) {
			continue
		}
		for index := range rj.Replicas {
			if a.children.byName[jobName(a.js, rj.Name, index)] == nil {
				a.plan.Writes = append(a.plan.Writes, jobs.Create(a.newJob(rj, index)).OrWarn(jobset.JobCreationFailedReason))
			}
		}
		if a.waitsInOrder(rj) {
			return
		}
	}
	a.endStartup()
}

func blocking(js *jobset.JobSet) bool {
	policy := js.Spec.FailurePolicy
	return policy != nil && policy.RestartStrategy == jobset.BlockingRecreate
}
