package jobset

import (
	"fmt"
	"runtime"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/jobstest"
)

// TestPlanAllocationsDoNotDependOnTheNumberOfReplicatedJobs: planning 1,024 Jobs must not scan all Jobs for each
// replicated job.
func TestPlanAllocationsDoNotDependOnTheNumberOfReplicatedJobs(t *testing.T) {
	const total = 1024
	allocated := func(groups int) uint64 {
		b := newSet()
		b.js.Spec.ReplicatedJobs = nil
		var running []jobBuilder
		for g := range groups {
			name := fmt.Sprintf("r%d", g)
			b = b.with(name, int32(total/groups))
			for i := range total / groups {
				running = append(running, job(name, i).ready())
			}
		}
		return allocatedBy(b, running)
	}
	one, many := allocated(1), allocated(128)
	if many > 3*one {
		t.Errorf("a plan for %d Jobs allocates %d bytes with 128 replicated jobs and %d with one, want at most three times as many", total, many, one)
	}
}

// TestAllocationsOfRestartsAreLinear: a plan that restarts single Jobs which failed together allocates in proportion to
// their number.
func TestAllocationsOfRestartsAreLinear(t *testing.T) {
	allocated := func(failures int) uint64 {
		return allocatedBy(failedTogether(failures))
	}
	few, many := allocated(250), allocated(1000)
	if many > 6*few {
		t.Errorf("a plan for 1000 failures allocates %d bytes and one for 250 %d, want at most six times as many", many, few)
	}
}

// TestTimeOfManyFailures: a plan that restarts single Jobs which failed together judges each once, not again for each
// of them.
func TestTimeOfManyFailures(t *testing.T) {
	jobstest.CheckAboutLinear(t, 2000, func(failures int) func() {
		b, list := failedTogether(failures)
		seen := jobs.Seen[*jobset.JobSet]{Job: b.js, Admission: unqueued, Children: of(list...), Now: now}
		return func() {
			p := plan(seen)
			if restarts := restartsSpent(&p.Status.(*jobset.JobSet).Status); restarts != int32(failures) {
				t.Errorf("%d restarts are counted, want %d", restarts, failures)
			}
		}
	})
}

// TestTimeOfPlaces: the places of a Job are found without looking at those of all Jobs before it.
func TestTimeOfPlaces(t *testing.T) {
	jobstest.CheckAboutLinear(t, 5000, func(size int) func() {
		b := newSet()
		b.js.Spec.ReplicatedJobs = nil
		b.with("r", int32(size))
		granted := jobs.PodSetAdmission{Count: int32(size), Asked: int32(size), Left: int32(size)}
		var running []*batchv1.Job
		for i := range size {
			node := fmt.Sprint("node-", i)
			granted.Places = append(granted.Places, on(node, 1))
			job := job("r", i).ready().job
			job.Spec.Template.Spec.NodeSelector = map[string]string{corev1.LabelHostname: node}
			running = append(running, job)
		}
		p := newPlanner(jobs.Seen[*jobset.JobSet]{Job: b.js,
			Admission: jobs.Admission{Grant: jobs.Admitted, PodSets: map[string]jobs.PodSetAdmission{"r": granted}}, Now: now})
		return func() {
			for i, job := range running {
				p.move(&b.js.Spec.ReplicatedJobs[0], int32(i), job)
			}
			if len(p.plan.Writes) > 0 {
				t.Errorf("%d Jobs at their places are stopped", len(p.plan.Writes))
			}
		}
	})
}

// failedTogether returns a JobSet whose Jobs are restarted alone, and its Jobs, all failed.
func failedTogether(failures int) (setBuilder, []jobBuilder) {
	b := newSet().restarts(1<<30, jobset.Recreate)
	b.js.Spec.ReplicatedJobs = nil
	b.js.Spec.FailurePolicy.Rules = []jobset.FailurePolicyRule{{Name: "alone", Action: jobset.RestartJob}}
	var list []jobBuilder
	for i := range failures {
		list = append(list, job("r", i).failed())
	}
	return b.with("r", int32(failures)), list
}

// allocatedBy returns how many bytes a plan for the JobSet with these Jobs allocates.
func allocatedBy(b setBuilder, list []jobBuilder) uint64 {
	seen := jobs.Seen[*jobset.JobSet]{Job: b.js, Admission: jobs.Admission{Grant: jobs.Unqueued},
		Children: of(list...), Now: now}
	plan(seen)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	plan(seen)
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}
