package batchjob

import (
	"testing"
	"time"

	"k8s.io/utils/ptr"

	"github.com/musterhq/muster/internal/jobs"
)

func TestTheDeadlineOfAJobIsItsLimit(t *testing.T) {
	job := newJob(1).job
	if got := describe(job, jobs.Facts{}).Limit; got != 0 {
		t.Errorf("without a deadline the limit is %s, want none", got)
	}
	job.Spec.ActiveDeadlineSeconds = ptr.To[int64](90)
	if got := describe(job, jobs.Facts{}).Limit; got != 90*time.Second {
		t.Errorf("the limit is %s, want the deadline of 90s", got)
	}
}
