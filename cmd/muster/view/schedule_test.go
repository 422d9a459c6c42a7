package view

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	lattice "github.com/musterhq/muster/api/lattice/v1alpha1"
)

// TestFindSchedule finds a schedule by every form of its name, and its runs, the latest first. A schedule that cannot
// have runs is a job itself.
func TestFindSchedule(t *testing.T) {
	of := func(namespace, name, schedule string, phase lattice.JobPhase) lattice.LatticeJob {
		job := lattice.LatticeJob{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: "nightly"}}
		job.Spec.Schedule, job.Status.Phase, job.Status.Message = schedule, phase, "Cron active: 2 job(s)"
		return job
	}
	run := func(name string, at time.Time) lattice.LatticeJob {
		job := of("ml", name, "", lattice.Running)
		owner := of("ml", "nightly", "@daily", lattice.Running)
		job.UID = "another"
		job.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(&owner,
			lattice.GroupVersion.WithKind("LatticeJob"))}
		job.CreationTimestamp = metav1.NewTime(at)
		return job
	}
	day := time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
	snapshot := &Snapshot{LatticeJobs: []lattice.LatticeJob{
		run("nightly-1", day), of("ml", "nightly", "@daily", lattice.Running), run("nightly-2", day.Add(24*time.Hour)),
		of("ml", "wrong", "@daily", lattice.Failed), of("ml", "once", "", lattice.Running),
	}}
	want := &Schedule{Namespace: "ml", Name: "nightly", Times: "@daily", Message: "Cron active: 2 job(s)",
		Runs: []string{"nightly-2", "nightly-1"}}
	for name, want := range map[Name]*Schedule{
		{Name: "nightly"}: want,
		{Namespace: "ml", Kind: "latticejob", Name: "nightly"}: want,
		{Namespace: "ml", Kind: "job", Name: "nightly"}:        want,
		{Namespace: "ml", Kind: "jobset", Name: "nightly"}:     nil,
		{Namespace: "other", Name: "nightly"}:                  nil,
		{Name: "nightly-1"}:                                    nil,
		{Name: "wrong"}:                                        nil,
		{Name: "once"}:                                         nil,
	} {
		if diff := cmp.Diff(want, FindSchedule(snapshot, name)); diff != "" {
			t.Errorf("schedule %v (-want +got):\n%s", name, diff)
		}
	}
}
