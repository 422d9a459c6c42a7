package batchjob

import (
	batchv1 "k8s.io/api/batch/v1"

	"github.com/musterhq/muster/internal/jobs"
)

// outcomeOf returns how the Job ended, nil if it has not.
func outcomeOf(job *batchv1.Job) *jobs.Outcome {
	if c := jobs.EndCondition(job); c != nil {
		return &jobs.Outcome{Succeeded: c.Type == batchv1.JobComplete, Message: c.Message}
	}
	return nil
}
