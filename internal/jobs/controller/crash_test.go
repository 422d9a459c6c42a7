package controller_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
)

// life describes what happens to a JobSet from its creation to its end.
type life struct {
	jobSet func() *jobset.JobSet
	fate   func(*batchv1.Job) batchv1.JobConditionType
	// created is how often each Job is created, ends how the JobSet ends.
	created int
	ends    string
}

// lives are the lives of JobSets that the tests of this file go through.
var lives = map[string]life{
	"queued, admitted, run, succeeded": {
		jobSet: func() *jobset.JobSet { return newJobSet("cq") }, created: 1, ends: "Completed",
	},
	"created suspended": {
		jobSet: func() *jobset.JobSet { js := newJobSet("cq"); js.Spec.Suspend = ptr.To(true); return js }, created: 1,
		ends: "Completed",
	},
	"started in order, without a queue": {
		jobSet: func() *jobset.JobSet {
			js := newJobSet("")
			js.Spec.StartupPolicy = &jobset.StartupPolicy{StartupPolicyOrder: jobset.InOrder}
			return js
		},
		created: 1, ends: "Completed",
	},
	"restarted once": {
		jobSet: func() *jobset.JobSet {
			js := newJobSet("cq")
			js.Spec.FailurePolicy = &jobset.FailurePolicy{MaxRestarts: 1}
			return js
		},
		fate: firstAttemptFails, created: 2, ends: "Completed",
	},
	"restarted once, all Jobs recreated together": {
		jobSet: func() *jobset.JobSet {
			js := newJobSet("")
			js.Spec.FailurePolicy = &jobset.FailurePolicy{MaxRestarts: 1, RestartStrategy: jobset.BlockingRecreate}
			return js
		},
		fate: firstAttemptFails, created: 2, ends: "Completed",
	},
	"failed while other Jobs run": {
		jobSet: func() *jobset.JobSet { return newJobSet("cq") },
		fate:   firstAttemptFails, created: 1, ends: "Failed",
	},
}

// firstAttemptFails makes the leader of the first attempt fail while the workers run.
func firstAttemptFails(job *batchv1.Job) batchv1.JobConditionType {
	switch {
	case job.Labels[jobset.RestartAttemptKey] != "0":
		return batchv1.JobComplete
	case job.Labels[jobset.ReplicatedJobNameKey] == "leader":
		return batchv1.JobFailed
	}
	return ""
}

// run goes through the life with the fault, and returns the world after it.
func (l life) run(t *testing.T, f fault) *world {
	t.Helper()
	w := newWorld(t, f, l.jobSet(), clusterQueue("cq"), flavor())
	if l.fate != nil {
		w.fate = l.fate
	}
	w.settle()
	return w
}

// TestFailedWritesDoNotChangeTheOutcome: each write of each JobSet's life fails in turn, with each error, before or
// after it takes effect. The JobSet ends in the same way, and each child is created as often as without the fault.
func TestFailedWritesDoNotChangeTheOutcome(t *testing.T) {
	for name, l := range lives {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			good := l.run(t, fault{})
			if got := good.outcome(); got != l.ends {
				t.Fatalf("without a fault it ends %q, want %q", got, l.ends)
			}
			want := good.state()
			if len(good.writes) < 6 {
				t.Fatalf("only %d writes, want at least 6: %v", len(good.writes), good.writes)
			}
			for _, f := range faults(good.writes) {
				t.Run(f.String(), func(t *testing.T) {
					w := l.run(t, f)
					if diff := cmp.Diff(want, w.state()); diff != "" {
						t.Errorf("the final state differs (-fault-free +got):\n%s", diff)
					}
					for name, times := range w.created {
						want := 1
						if strings.HasPrefix(name, "Job ") {
							want = l.created
						}
						if times != want {
							t.Errorf("%s was created %d times, want %d", name, times, want)
						}
					}
				})
			}
		})
	}
}

// faults returns all faults of the writes.
func faults(writes []string) []fault {
	unavailable := apierrors.NewServiceUnavailable("the API server restarts")
	var out []fault
	for _, write := range writes {
		out = append(out, fault{write, false, unavailable}, fault{write, true, apierrors.NewTimeoutError("no answer", 1)})
		if !strings.HasPrefix(write, "delete") {
			// A patch conflicts with that of another client, a create with another one that the same ResourceQuota counts.
			out = append(out, fault{write, false,
				apierrors.NewConflict(jobset.Resource("jobsets"), "js", errors.New("changed since"))})
		}
	}
	return out
}

// TestSteadyStateWritesNothing checks that reconciling a job with nothing to do writes nothing.
func TestSteadyStateWritesNothing(t *testing.T) {
	for name, l := range lives {
		t.Run(name, func(t *testing.T) {
			w := l.run(t, fault{})
			w.checkNoMoreWrites(t)
		})
	}
}
