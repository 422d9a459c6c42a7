package view

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	lattice "github.com/musterhq/muster/api/lattice/v1alpha1"
)

// Schedule is a LatticeJob that runs again and again: its runs are jobs, and itself it waits for nothing.
type Schedule struct {
	Namespace, Name string
	// Times are when it runs, as its author wrote them; Message is what it says of its runs.
	Times, Message string
	// Runs are the names of those that are there, the last first.
	Runs []string
}

// FindSchedule gives the schedule of that name, nil if there is none.
func FindSchedule(seen *Seen, name Name) *Schedule {
	at := slices.IndexFunc(seen.LatticeJobs, func(job lattice.LatticeJob) bool {
		return hasRuns(&job) && job.Name == name.Name && (name.Namespace == "" || job.Namespace == name.Namespace) &&
			(name.Kind == "" || name.Kind == "latticejob" || name.Kind == "job")
	})
	if at < 0 {
		return nil
	}
	job := &seen.LatticeJobs[at]
	var runs []*lattice.LatticeJob
	for i := range seen.LatticeJobs {
		if metav1.IsControlledBy(&seen.LatticeJobs[i], job) {
			runs = append(runs, &seen.LatticeJobs[i])
		}
	}
	slices.SortStableFunc(runs, func(a, b *lattice.LatticeJob) int { return b.CreationTimestamp.Compare(a.CreationTimestamp.Time) })
	out := &Schedule{Namespace: job.Namespace, Name: job.Name, Times: job.Spec.Schedule, Message: job.Status.Message}
	for _, run := range runs {
		out.Runs = append(out.Runs, run.Name)
	}
	return out
}

// hasRuns reports whether the job is seen as its runs. One that can have none is seen itself.
func hasRuns(job *lattice.LatticeJob) bool {
	return job.Spec.Schedule != "" && job.Status.Phase != lattice.Failed
}
