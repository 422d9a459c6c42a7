package vcjob

import (
	"testing"

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
