package jobset

import (
	"testing"

	"github.com/musterhq/muster/internal/jobs"
)

// TestMissingJobsStartOnlyWithQuota: a Job that succeeded and was deleted is run again, but its quota was returned.
func TestMissingJobsStartOnlyWithQuota(t *testing.T) {
	const (
		waits  = "Warning QuotaReturned: Job js-workers-0 is missing or stopped, and the quota that is left is used by other Jobs of workers: it waits until one of them ends, or until the JobSet is queued again"
		queues = "Warning QuotaReturned: Job js-workers-0 is missing or stopped, and its quota was returned: the JobSet is queued again for all Jobs that have not succeeded"
	)
	for name, tc := range map[string]struct {
		js        setBuilder
		admission jobs.Admission
		jobs      []jobBuilder
		writes    []string
		events    []string
		requeues  bool
	}{
		"quota for the other Job only": {newSet(), quota(2, 1),
			[]jobBuilder{job("leader", 0).ready(), job("workers", 1).ready()}, nil, []string{waits}, false},
		"larger Jobs, of which the one that runs stays as large": {newSet().workersOf(4), quota(8, 4),
			[]jobBuilder{job("leader", 0).ready(), job("workers", 1).of(4).ready()}, nil, []string{waits}, false},
		"the other one has succeeded": {newSet(), quota(2, 1), []jobBuilder{job("leader", 0).ready(),
			job("workers", 1).succeeded()}, []string{"create Job js-workers-0"}, nil, false},
		"none for a Job": {newSet(), quota(2, 0),
			[]jobBuilder{job("leader", 0).ready(), job("workers", 1).succeeded()}, nil, []string{waits}, false},
		"none for a Job, none runs": {newSet(), quota(2, 0),
			[]jobBuilder{job("leader", 0).succeeded(), job("workers", 1).succeeded()}, nil, []string{queues}, true},
		"none for a stopped Job": {newSet(), quota(2, 0),
			[]jobBuilder{job("leader", 0).succeeded(), job("workers", 0).suspended(), job("workers", 1).succeeded()}, nil,
			[]string{queues}, true},
		"one of two that are stopped or missing": {newSet(), quota(2, 1), []jobBuilder{job("leader", 0).ready(),
			job("workers", 1).suspended()}, []string{"change Job js-workers-1"}, []string{waits}, false},
		"pods of a stopped Job that terminate": {newSet(), quota(2, 2), []jobBuilder{job("leader", 0).ready(),
			job("workers", 0).suspended().active(), job("workers", 1).ready()}, nil, nil, false},
		"a Job of an earlier attempt that terminates": {newSet().restarted(1), quota(2, 2),
			[]jobBuilder{job("leader", 0).attempt("1").ready(), job("workers", 0).deleting(),
				job("workers", 1).attempt("1").ready()}, nil, nil, false},
		"without a queue": {newSet(), unqueued, []jobBuilder{job("leader", 0).ready(), job("workers", 1).ready()},
			[]string{"create Job js-workers-0"}, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := checkedPlan(t, tc.js.js, tc.admission, of(tc.jobs...))
			same(t, "writes", tc.writes, writes(p))
			same(t, "events", tc.events, events(p))
			if p.Progress.Requeue != tc.requeues || tc.requeues && p.Progress.Active {
				t.Errorf("requeue = %t, active = %t, want %t, and no pods if so", p.Progress.Requeue,
					p.Progress.Active, tc.requeues)
			}
		})
	}
}

// TestGangsDoNotWaitForJobsWithoutQuota: the pods of such a Job do not come.
func TestGangsDoNotWaitForJobsWithoutQuota(t *testing.T) {
	seen := seenOf(newSet().workersOf(4).js, quota(8, 4), of(job("leader", 0).ready(), job("workers", 1).of(4).ready()))
	p := newPlanner(seen)
	p.status.countJobs()
	if pods, _ := p.sizes.podsToRun(&p.js.Spec.ReplicatedJobs[1]); pods != 4 {
		t.Errorf("the gang has %d pods, want the 4 of the Job that runs", pods)
	}
}
