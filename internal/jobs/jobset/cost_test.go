package jobset

import (
	"fmt"
	"runtime"
	"testing"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	"github.com/musterhq/muster/internal/jobs"
)

// TestALookCostsAsMuchHoweverJobsAreGrouped: what a look at 1,024 Jobs allocates does not grow with the number of
// replicated jobs that they are of, as it would if each of these had all Jobs looked through.
func TestALookCostsAsMuchHoweverJobsAreGrouped(t *testing.T) {
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
		t.Errorf("a look at %d Jobs of 128 replicated jobs allocates %d bytes, of one %d: it is to be about the same", total, many, one)
	}
}

// TestFailuresTogetherCostNoMoreThanTheirNumber: what it allocates to make anew Jobs that fail together, each alone,
// grows with their number and no faster.
func TestFailuresTogetherCostNoMoreThanTheirNumber(t *testing.T) {
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
		t.Errorf("1000 failures allocate %d bytes, 250 %d: four times as many are to cost about four times as much", many, few)
	}
}

// allocatedBy is how many bytes a look at the JobSet with these Jobs allocates.
func allocatedBy(b setBuilder, list []jobBuilder) uint64 {
	seen := jobs.Seen[*jobset.JobSet]{Job: b.js, Admission: jobs.Admission{Grant: jobs.Unqueued}, Children: of(list...), Now: now}
	plan(seen)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	plan(seen)
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}
