package batchjob

import (
	"cmp"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/jobs"
)

// Summary returns what lists of jobs say of a Job.
func Summary(job *batchv1.Job) jobs.Summary {
	s := jobs.Summary{
		Queue:     cmp.Or(job.Labels[kueue.QueueLabel], job.Annotations[kueue.QueueAnnotation]),
		Suspended: suspended(job), SizeFromSpec: true,
	}
	if ptr.Deref(job.Spec.Parallelism, 1) == 0 {
		s.Stopped = "spec.parallelism is 0: it runs no pods"
	}
	s.Ask(jobs.PodsAtATime(&job.Spec), &job.Spec.Template)
	s.CountPodsOf(job)
	if c := jobs.EndCondition(job); c != nil {
		s.End(c.Type == batchv1.JobComplete, c.Reason, c.Message, c.LastTransitionTime)
	}
	s.NoteManager(job.Spec.ManagedBy, batchv1.JobControllerName)
	return s
}
