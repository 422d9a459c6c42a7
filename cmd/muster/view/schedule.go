package view

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	lattice "github.com/musterhq/muster/api/lattice/v1alpha1"
)

// Schedule is a LatticeJob with a schedule: its runs are jobs, while it never queues itself.
type Schedule struct {
	Namespace, Name string
	// Times is the schedule as its author wrote it, Message the status message about its runs.
	Times, Message string
	// Runs are the names of the existing runs, the latest first.
	Runs []string
}

// FindSchedule returns the schedule of that name, nil if there is none.
func FindSchedule(snapshot *Snapshot, name Name) *Schedule {
	at := slices.IndexFunc(snapshot.LatticeJobs, func(job lattice.LatticeJob) bool {
		return hasRuns(&job) && job.Name == name.Name && (name.Namespace == "" || job.Namespace == name.Namespace) &&
			(name.Kind == "" || name.Kind == "latticejob" || name.Kind == "job")
	})
	if at < 0 {
		return nil
	}
	job := &snapshot.LatticeJobs[at]
	var runs []*lattice.LatticeJob
	for i := range snapshot.LatticeJobs {
		if metav1.IsControlledBy(&snapshot.LatticeJobs[i], job) {
			runs = append(runs, &snapshot.LatticeJobs[i])
		}
	}
	slices.SortStableFunc(runs,
		func(a, b *lattice.LatticeJob) int { return b.CreationTimestamp.Compare(a.CreationTimestamp.Time) })
	out := &Schedule{Namespace: job.Namespace, Name: job.Name, Times: job.Spec.Schedule, Message: job.Status.Message}
	for _, run := range runs {
		out.Runs = append(out.Runs, run.Name)
	}
	return out
}

// hasRuns reports whether the job is represented by its runs. A failed schedule has none and is listed itself.
func hasRuns(job *lattice.LatticeJob) bool {
	return job.Spec.Schedule != "" && job.Status.Phase != lattice.Failed
}
