package batchjob

import (
	"fmt"
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/workload"
)

// podSet is the name of a Job's only pod set.
const podSet = kueue.DefaultPodSetName

// describe returns what a Job asks for, whether or not it currently runs with what an admission added.
func describe(job *batchv1.Job, _ jobs.Facts) jobs.Description {
	original := restored(job)
	d := jobs.Description{
		Foreign: job.Spec.ManagedBy != nil && *job.Spec.ManagedBy != batchv1.JobControllerName,
		Queue:   job.Annotations[kueue.QueueAnnotation],
		Running: !suspended(job) || job.Status.Active > 0,
		PodSets: []kueue.PodSet{{Name: podSet, Count: jobs.PodsAtATime(&original.Spec), Template: original.Spec.Template}},
	}
	if seconds := job.Spec.ActiveDeadlineSeconds; seconds != nil {
		d.Limit = workload.Seconds(*seconds)
	}
	bounds := boundsOf(original)
	bounds.Ask(&d.PodSets[0])
	if d.Mistake = jobs.RequestTopology(d.PodSets, func(int) jobs.Ranks { return ranksOf(original) }); d.Mistake != nil {
		return d
	}
	least, problem := leastPods(original)
	if problem != "" {
		d.Mistake = jobs.Mistake(problem)
		return d
	}
	if !bounds.Elastic {
		d.PodSets[0].MinCount = least
	}
	return d
}

// ranksOf returns how pods are ordered: by their index if the Job is Indexed.
func ranksOf(job *batchv1.Job) jobs.Ranks {
	if !jobs.Indexed(job) {
		return jobs.Ranks{}
	}
	return jobs.Ranks{IndexLabel: batchv1.JobCompletionIndexAnnotation}
}

// leastPods returns the fewest pods with which the Job can run, nil if it needs all, or what is wrong with its
// annotations. The annotations are about the pods that a Job runs: if a Job is to run none, they are ignored.
func leastPods(job *batchv1.Job) (*int32, string) {
	if paused(job) {
		return nil, ""
	}
	if syncsCompletions(job) && !hasElasticShape(job) {
		return nil, fmt.Sprintf("The annotation %s is true: the Job must be Indexed and have as many completions as parallelism",
			kueue.JobCompletionsEqualParallelismAnnotation)
	}
	text, ok := job.Annotations[kueue.JobMinParallelismAnnotation]
	if !ok {
		return nil, ""
	}
	least, err := strconv.ParseInt(text, 10, 32)
	if pods := jobs.PodsAtATime(&job.Spec); err != nil || least < 1 || least > int64(pods) {
		return nil, fmt.Sprintf("The annotation %s is %q: it must be a number from 1 to %d, the pods that the Job runs at once",
			kueue.JobMinParallelismAnnotation, text, pods)
	}
	return ptr.To(int32(least)), ""
}
