package jobset

import (
	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
)

// createJobs creates missing Jobs in the order of the spec, as far as dependencies and the startup policy allow. A Job
// is not created while one of an earlier attempt still has its name; under BlockingRecreate, none is created while any
// such Job exists.
func (p *planner) createJobs() {
	if blocking(p.js) && len(p.children.previous) > 0 {
		return
	}
	for i := range p.js.Spec.ReplicatedJobs {
		rj := &p.js.Spec.ReplicatedJobs[i]
		if !p.dependenciesMet(rj) {
			continue
		}
		for index := range rj.Replicas {
			name := jobName(p.js, rj.Name, index)
			if p.children.byName[name] == nil && p.hasRoom(rj, name) && !p.plan.CreateChild(p.newJob(rj, index), jobset.JobCreationFailedReason) {
				return
			}
		}
		if p.waitsInOrder(rj) {
			return
		}
	}
	p.endStartup()
}

func blocking(js *jobset.JobSet) bool {
	policy := js.Spec.FailurePolicy
	return policy != nil && policy.RestartStrategy == jobset.BlockingRecreate
}
