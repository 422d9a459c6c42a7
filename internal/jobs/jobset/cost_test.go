package jobset

import (
	"fmt"
	"runtime"
	"testing"

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
		b := newSet().restarts(1<<30, jobset.Recreate)
		b.js.Spec.ReplicatedJobs = nil
		b.js.Spec.FailurePolicy.Rules = []jobset.FailurePolicyRule{{Name: "alone", Action: jobset.RestartJob}}
		var list []jobBuilder
		for i := range failures {
			list = append(list, job("r", i).failed())
		}
		return allocatedBy(b.with("r", int32(failures)), list)
	}
	few, many := allocated(250), allocated(1000)
	if many > 6*few {
		t.Errorf("a plan for 1000 failures allocates %d bytes and one for 250 %d, want at most six times as many", many, few)
	}
}

// TestTimeOfManyFailures: a plan that restarts single Jobs which failed together judges each once, not again for each of
// them.
func TestTimeOfManyFailures(t *testing.T) {
	jobstest.CheckAboutLinear(t, 2000, func(failures int) func() {
		b := newSet().restarts(1<<30, jobset.Recreate)
		b.js.Spec.ReplicatedJobs = nil
		b.js.Spec.FailurePolicy.Rules = []jobset.FailurePolicyRule{{Name: "alone", Action: jobset.RestartJob}}
		var list []jobBuilder
		for i := range failures {
			list = append(list, job("r", i).failed())
		}
		seen := jobs.Seen[*jobset.JobSet]{Job: b.with("r", int32(failures)).js, Admission: unqueued, Children: of(list...), Now: now}
		return func() {
			p := plan(seen)
			if restarts := restartsSpent(&p.Status.(*jobset.JobSet).Status); restarts != int32(failures) {
				t.Errorf("%d restarts are counted, want %d", restarts, failures)
			}
		}
	})
}

// allocatedBy returns how many bytes a plan for the JobSet with these Jobs allocates.
func allocatedBy(b setBuilder, list []jobBuilder) uint64 {
	seen := jobs.Seen[*jobset.JobSet]{Job: b.js, Admission: jobs.Admission{Grant: jobs.Unqueued}, Children: of(list...), Now: now}
	plan(seen)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	plan(seen)
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}
