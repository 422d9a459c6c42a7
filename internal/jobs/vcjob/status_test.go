package vcjob

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"

	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/jobstest"
)

// A job runs though its priority class does not exist, as in Volcano, but it says so until it has ended.
func TestMissingPriorityClassesAreReported(t *testing.T) {
	for name, c := range map[string]struct {
		class string
		phase volcano.JobPhase
		want  []string
	}{
		"misspelled":   {"hihg", volcano.Pending, []string{"PriorityClassNotFound PriorityClass hihg, which spec.priorityClassName names, does not exist: it has no effect on the job's place in the queue and on its pods"}},
		"there":        {"high", volcano.Pending, nil},
		"none":         {"", volcano.Pending, nil},
		"of the ended": {"hihg", volcano.Completed, nil},
	} {
		job := newJob().with("worker", 1).is(c.phase)
		job.Spec.PriorityClassName = c.class
		got := plan(jobs.Seen[*volcano.Job]{Job: job.Job, Admission: waiting, Now: jobstest.Now, Facts: jobs.Facts{
			Priorities: jobs.PriorityFacts{Pod: map[string]*schedulingv1.PriorityClass{"high": {Value: 7}}}}})
		same(t, name, c.want, told(got))
	}
}

// A pod whose container ends again and again is in the phase Running. The status says how many of the running pods are
// ready, as `muster jobs` counts them.
func TestTheStatusSaysHowManyRunningPodsAreReady(t *testing.T) {
	unready := func(p podBuilder) podBuilder {
		p.Status.Conditions[0].Status = corev1.ConditionFalse
		return p
	}
	crashing := unready(pod("job-worker-0").running())
	for name, c := range map[string]struct {
		pods []any
		want string
	}{
		"none runs":               {[]any{pod("job-worker-0"), pod("job-worker-1").ended(0)}, ""},
		"one of two is ready":     {[]any{crashing, pod("job-worker-1").running()}, "1"},
		"none of two is ready":    {[]any{crashing, unready(pod("job-worker-1").running())}, "0"},
		"one that is terminating": {[]any{crashing, pod("job-worker-1").running().going()}, "0"},
	} {
		job := newJob().with("worker", 2).is(volcano.Running)
		if got := then(see(t, job.Job, all, of(c.pods...)), job).Status.ControlledResources[volcano.ReadyKey]; got != c.want {
			t.Errorf("%s: ready is %q, want %q", name, got, c.want)
		}
	}
}
