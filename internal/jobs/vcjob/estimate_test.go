package vcjob

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/musterhq/muster/internal/jobs"
)

func TestTheRunningEstimateOfAVCJobIsAnEstimate(t *testing.T) {
	job := newJob().with("main", 1)
	job.Spec.RunningEstimate = &metav1.Duration{Duration: time.Hour}
	if d := describe(job.Job, jobs.Facts{}); d.Estimate != time.Hour || d.Limit != 0 {
		t.Errorf("it expects to take %s, and its limit is %s; want an hour, and none", d.Estimate, d.Limit)
	}
}
