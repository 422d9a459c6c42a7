package jobset

import (
	"time"

	"k8s.io/utils/ptr"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/write"
	"github.com/musterhq/muster/internal/workload"
)

// describe returns what a JobSet asks for: one pod set for each replicated job.
func describe(js *jobset.JobSet, facts jobs.Facts) jobs.Description {
	d := jobs.Description{
		Foreign: isForeign(js),
		Queue:   js.Annotations[kueue.QueueAnnotation],
	}
	if tooLarge(js) != "" {
		return d // it queues for nothing: a condition says why
	}
	for i := range js.Spec.ReplicatedJobs {
		rj := &js.Spec.ReplicatedJobs[i]
		d.PodSets = append(d.PodSets, kueue.PodSet{
			Name:     kueue.PodSetReference(rj.Name),
			Count:    podCount(rj),
			Template: podTemplate(rj),
		})
		boundsOf(js, rj).Ask(&d.PodSets[i])
	}
	d.Limit = limitOf(js)
	d.Mistake = jobs.RequestTopology(d.PodSets, func(i int) jobs.Ranks { return ranksOf(&js.Spec.ReplicatedJobs[i]) })
	for i := range js.Spec.ReplicatedJobs {
		rj := &js.Spec.ReplicatedJobs[i]
		if problem := exclusionOf(js, rj).request(&d.PodSets[i], js, rj); problem != "" {
			d.Mistake = jobs.BadTopology(&d.PodSets[i], problem)
		}
	}
	if why := noAgent(js, facts.Agent); why != "" {
		d.Mistake = ptr.To(write.Obstacle(jobs.InvalidJob, why))
	}
	return d
}

// limitOf returns after how long the JobSet has ended at the latest: the longest deadline of its Jobs, zero if one has
// none, or if Jobs start one after another or anew.
func limitOf(js *jobset.JobSet) (limit time.Duration) {
	if policy := js.Spec.FailurePolicy; policy != nil && (policy.MaxRestarts > 0 || len(policy.Rules) > 0) || inOrder(js) {
		return 0
	}
	for i := range js.Spec.ReplicatedJobs {
		rj := &js.Spec.ReplicatedJobs[i]
		own := workload.Seconds(ptr.Deref(rj.Template.Spec.ActiveDeadlineSeconds, 0))
		if own == 0 || len(rj.DependsOn) > 0 {
			return 0
		}
		limit = max(limit, own)
	}
	return limit
}

// isForeign reports whether another controller runs the JobSet.
func isForeign(js *jobset.JobSet) bool {
	return js.Spec.ManagedBy != nil && *js.Spec.ManagedBy != jobset.JobSetControllerName
}
