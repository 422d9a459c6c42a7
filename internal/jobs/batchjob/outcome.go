package batchjob

import (
	batchv1 "k8s.io/api/batch/v1"

	"github.com/musterhq/muster/internal/jobs"
)

// outcomeOf returns how the Job ended, nil if it has not.
func outcomeOf(job *batchv1.Job) *jobs.Outcome {
	for _, kind := range []batchv1.JobConditionType{batchv1.JobComplete, batchv1.JobFailed} {
		if c := jobs.TrueCondition(job, kind); c != nil {
			return &jobs.Outcome{Succeeded: kind == batchv1.JobComplete, Message: c.Message}
		}
	}
	return nil
}
