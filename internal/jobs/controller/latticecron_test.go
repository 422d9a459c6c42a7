package controller_test

import (
	"slices"
	"testing"
	"time"

	lattice "github.com/musterhq/muster/api/lattice/v1alpha1"
	"github.com/musterhq/muster/internal/jobs/controller"
	"github.com/musterhq/muster/internal/jobs/latticejob"
)

// runOnSchedule returns a world whose LatticeJob has run once, at the first time of its schedule, with the fault.
func runOnSchedule(t *testing.T, f fault) *latticeWorld {
	t.Helper()
	w := newLatticeWorld(t, f, nil)
	w.reconciler = controller.NewReconciler(latticejob.New(latticejob.Settings{}), w.recordingClient(), w.events, w.clock)
	w.edit(func(job *lattice.LatticeJob) { job.Spec.Schedule = "*/5 * * * *" })
	w.settle()
	w.clock.SetTime(epoch.Add(5*time.Minute + time.Second))
	w.settle()
	return w
}

// TestScheduledRunIsCreatedOnceWhateverFails: no run is omitted because it could not be created in time, and none is
// created twice.
func TestScheduledRunIsCreatedOnceWhateverFails(t *testing.T) {
	names := func(w *latticeWorld) (out []string) {
		for _, job := range list[lattice.LatticeJobList](w.world).Items {
			out = append(out, job.Name)
		}
		return out
	}
	good := runOnSchedule(t, fault{})
	want := names(good)
	if len(want) != 2 {
		t.Fatalf("LatticeJobs = %v, want job and its first run", want)
	}
	for _, f := range faults(good.writes) {
		t.Run(f.String(), func(t *testing.T) {
			w := runOnSchedule(t, f)
			if got := names(w); !slices.Equal(got, want) {
				t.Errorf("LatticeJobs = %v, want %v", got, want)
			}
			for _, job := range list[lattice.LatticeJobList](w.world).Items {
				if at := job.Status.LastScheduleTime; job.Name == "job" &&
					(at == nil || !at.Equal(good.latticeJob().Status.LastScheduleTime)) {
					t.Errorf("status = %+v, want lastScheduleTime %v", job.Status, good.latticeJob().Status.LastScheduleTime)
				}
			}
		})
	}
}
