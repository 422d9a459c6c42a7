package latticejob

import (
	"strings"
	"testing"

	lattice "github.com/musterhq/muster/api/lattice/v1alpha1"
	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/latticejob/compile"
)

// TestAWaitingJobRequestsTheGPUsThatNodesOffer: nodes may come to share theirs after its VCJob was made. What is not
// offered just now may be again.
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
		"nothing changes": {whole, features(hasWholeGPUs), features(hasWholeGPUs), "", false},
		"nodes share theirs by now": {whole, features(hasWholeGPUs),
			features(hasWholeGPUs, sharesGPUs), "", true},
		"the first nodes come, and share theirs":   {whole, nil, features(sharesGPUs), "", true},
		"no node shares any just now":              {whole, features(sharesGPUs), features(hasWholeGPUs), "", false},
		"no node offers any just now":              {whole, features(sharesGPUs), nil, "", false},
		"it would not be compiled with whole ones": {parts, features(sharesGPUs), features(hasWholeGPUs), "", false},
		"nodes tell their memory by now": {whole, features(hasWholeGPUs),
			features(hasWholeGPUs, labelsGPUMemory), "", true},
		"no node tells its memory just now": {whole, features(hasWholeGPUs, labelsGPUMemory),
			features(hasWholeGPUs), "", false},
		"the configuration says so by now": {whole, features(sharesGPUs), nil, compile.WholeGPUs, true},
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

// TestAJobAwaitsNodesThatShareTheirGPUs if it has waited before: they may be away just now, as when its VCJob is
// replaced. A new job fails, with the reason.
func TestAJobAwaitsNodesThatShareTheirGPUs(t *testing.T) {
	for before, after := range map[lattice.JobPhase]lattice.JobPhase{"": lattice.Failed,
		lattice.Pending: lattice.Pending} {
		for _, external := range []bool{false, true} {
			s := newScene()
			if external {
				s.external(jobs.Admission{Grant: jobs.Waiting})
			}
			s.with(func(s *scene) { resource(s, lattice.GPUResource, `{"count": 1, "compute": 50}`) }).stands(before, "m", 0)
			plan := s.plan(t)
			if got := plan.Status.(*lattice.LatticeJob).Status; got.Phase != after ||
				!strings.Contains(got.Message, "no node shares its GPUs") {
				t.Errorf("from %q it is %s: %s", before, got.Phase, got.Message)
			}
			if waits := after == lattice.Pending; plan.Due.IsZero() == waits ||
				external && New(s.settings).Describe(s.seen.Job, s.seen.Facts).Paused != waits {
				t.Errorf("from %q it is due at %v, and takes part in its queue or not", before, plan.Due)
			}
			s.seen.Facts.NodeFeatures = map[jobs.NodeFeature]bool{sharesGPUs: true}
			if got := s.plan(t).Status.(*lattice.LatticeJob).Status; got.Phase == lattice.Failed {
				t.Errorf("nodes share their GPUs, and it has failed: %s", got.Message)
			}
		}
	}
}

// TestAQueuedJobRequestsGPUsAsItsWorkloadDoes, unless the configuration says otherwise by now.
func TestAQueuedJobRequestsGPUsAsItsWorkloadDoes(t *testing.T) {
	request := func(s *scene) (compile.GPUs, bool) {
		podSets := New(s.settings).Describe(s.seen.Job, s.seen.Facts).PodSets
		s.seen.Facts.Queued = podSets
		template := &podSets[0].Template
		if _, shares := template.Spec.Containers[0].Resources.Limits[compile.VGPUNumber]; shares {
			return compile.SharedGPUs, false
		}
		return compile.WholeGPUs, template.Spec.Affinity != nil
	}
	s := newScene().external(jobs.Admission{Grant: jobs.Waiting}).
		with(func(s *scene) { resource(s, lattice.GPUResource, `{"count": 1, "memory": "40Gi"}`) })
	for _, step := range []struct {
		nodes      map[jobs.NodeFeature]bool
		configured compile.GPUs
		gpus       compile.GPUs
		memory     bool
	}{
		{nil, "", compile.WholeGPUs, false},
		{map[jobs.NodeFeature]bool{labelsGPUMemory: true}, "", compile.WholeGPUs, true},
		{nil, "", compile.WholeGPUs, true},
		{map[jobs.NodeFeature]bool{sharesGPUs: true}, "", compile.SharedGPUs, false},
		{map[jobs.NodeFeature]bool{labelsGPUMemory: true}, "", compile.SharedGPUs, false},
		{map[jobs.NodeFeature]bool{labelsGPUMemory: true}, compile.WholeGPUs, compile.WholeGPUs, true},
	} {
		s.seen.Facts.NodeFeatures, s.settings.GPUs = step.nodes, step.configured
		if gpus, memory := request(s); gpus != step.gpus || memory != step.memory {
			t.Errorf("where nodes have %v, with %q configured, it requests %s GPUs, with a minimum of memory: %v", step.nodes,
				step.configured, gpus, memory)
		}
	}
}
