package latticejob

import (
	"testing"

	lattice "github.com/musterhq/muster/api/lattice/v1alpha1"
	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/latticejob/compile"
)

// TestAWaitingJobRequestsTheGPUsThatNodesOffer: nodes may come to share theirs after its VCJob was made. What is not offered
// just now may be again.
func TestAWaitingJobRequestsTheGPUsThatNodesOffer(t *testing.T) {
	const whole, parts = `{"count": 1, "memory": "40Gi"}`, `{"count": 1, "compute": 50}`
	hasWholeGPUs := jobs.NodeFeature{Resource: compile.WholeGPU}
	features := func(list ...jobs.NodeFeature) map[jobs.NodeFeature]bool {
		out := map[jobs.NodeFeature]bool{}
		for _, f := range list {
			out[f] = true
		}
		return out
	}
	for name, test := range map[string]struct {
		params        string
		before, after map[jobs.NodeFeature]bool
		configured    compile.GPUs
		anew          bool
	}{
		"nothing changes":                          {whole, features(hasWholeGPUs), features(hasWholeGPUs), "", false},
		"nodes share theirs by now":                {whole, features(hasWholeGPUs), features(hasWholeGPUs, sharesGPUs), "", true},
		"the first nodes come, and share theirs":   {whole, nil, features(sharesGPUs), "", true},
		"no node shares any just now":              {whole, features(sharesGPUs), features(hasWholeGPUs), "", false},
		"no node offers any just now":              {whole, features(sharesGPUs), nil, "", false},
		"it would not be compiled with whole ones": {parts, features(sharesGPUs), features(hasWholeGPUs), "", false},
		"nodes tell their memory by now":           {whole, features(hasWholeGPUs), features(hasWholeGPUs, labelsGPUMemory), "", true},
		"no node tells its memory just now":        {whole, features(hasWholeGPUs, labelsGPUMemory), features(hasWholeGPUs), "", false},
		"the configuration says so by now":         {whole, features(sharesGPUs), nil, compile.WholeGPUs, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene().with(func(s *scene) { resource(s, lattice.GPUResource, test.params) })
			s.seen.Facts.NodeFeatures = test.before
			vcjob := s.plan(t).Writes[0].Object().(*volcano.Job)
			vcjob.Status.State = volcano.JobState{Phase: volcano.Pending, Reason: volcano.WaitingForQuota}
			s.stands(lattice.Pending, "Waiting for quota", 0).vcjob("", "", "")
			s.seen.Children[0] = vcjob
			s.settings.GPUs, s.seen.Facts.NodeFeatures = test.configured, test.after
			plan := s.plan(t)
			if anew := len(plan.Writes) > 0; anew != test.anew {
				t.Errorf("its VCJob is made anew: %v", anew)
			}
			if plan.Due.IsZero() != test.anew {
				t.Errorf("the next look is at %v", plan.Due)
			}
			vcjob.Status.State = volcano.JobState{Phase: volcano.Running}
			if plan := s.plan(t); len(plan.Writes) > 0 {
				t.Errorf("it runs, and is stopped for other GPUs: %s", writes(plan))
			}
		})
	}
}
