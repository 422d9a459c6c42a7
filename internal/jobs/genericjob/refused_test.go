package genericjob

import (
	"testing"

	tensorstack "github.com/musterhq/muster/api/tensorstack/v1beta1"
	"github.com/musterhq/muster/internal/jobs"
)

// TestStatusSaysWhatIsRefused: the condition Running says why the job does not run.
func TestStatusSaysWhatIsRefused(t *testing.T) {
	job := newJob().with("worker", 2)
	job = then(see(t, job.GenericJob, admitted, nil), job)
	p := plan(jobs.Seen[*tensorstack.GenericJob]{Job: job.GenericJob, Admission: admitted, Now: now,
		RefusedObjects: jobs.RefusedObjects{Objects: 1, Since: now, What: "Its Services cannot be created",
			Why: "exceeded quota"}})
	if c := condition(then(p, job).GenericJob, tensorstack.JobRunning); c == nil || c.Reason != "ObjectsRefused" ||
		c.Message != "Its Services cannot be created: exceeded quota" {
		t.Errorf("condition Running = %+v, want what is refused", c)
	}
}
