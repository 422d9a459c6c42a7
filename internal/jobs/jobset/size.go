package jobset

import (
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	"github.com/musterhq/muster/internal/jobs"
)

// The event for a user whose Jobs can only grow once they get more quota.
const (
	growthWaitsReason  = "ResizeWaitsForQuota"
	growthWaitsMessage = "Jobs of %s have quota for %d pods each, not %d: they grow at the next admission;" +
		" to grow them now, set spec.active of the JobSet's Workload to false and then to true"
)

// mostJobs is how many Jobs a JobSet may have. The API refuses larger ones, but not those that were stored before it did.
const mostJobs = 10000

// tooLarge returns why the JobSet has too many Jobs, "" if it has not. None of them is created then: a plan takes memory
// for each.
func tooLarge(js *jobset.JobSet) string {
	total := int64(0)
	for i := range js.Spec.ReplicatedJobs {
		total += int64(max(0, js.Spec.ReplicatedJobs[i].Replicas)) // a negative number must not make up for others
	}
	if total <= mostJobs {
		return ""
	}
	return fmt.Sprintf("replicas of all replicatedJobs must be at most %d together, and are %d: no pods are started. Delete the JobSet and create another", mostJobs, total)
}

// elastic reports whether Jobs with this spec may change their size: Indexed Jobs that run all their pods at once.
func elastic(spec *batchv1.JobSpec) bool {
	return ptr.Deref(spec.CompletionMode, batchv1.IndexedCompletion) == batchv1.IndexedCompletion &&
		spec.Parallelism != nil && spec.Completions != nil && *spec.Parallelism == *spec.Completions
}

// sizeOf returns how many pods each Job of the replicated job may run: as many as the spec says, within the quota left
// for its remaining Jobs, or as many as the queue chose if it is elastic.
func (p *planner) sizeOf(rj *jobset.ReplicatedJob) int32 {
	wanted := jobs.PodsAtATime(&rj.Template.Spec)
	granted, ok := p.seen.Admission.PodSets[rj.Name]
	if b := boundsOf(p.js, rj); ok && b.Elastic {
		return p.elasticSize(rj, b, granted)
	}
	left := p.jobsLeft(rj)
	if !ok || !elastic(&rj.Template.Spec) || left == 0 {
		return wanted
	}
	// If several Jobs share the remaining quota, each gets at least one pod, as the API requires, unless it wants none.
	size := min(wanted, max(1, granted.Left/left))
	if u := p.usageOf(rj); size < min(wanted, u.size) {
		// A Job that is missing takes no quota from those that run with it.
		return min(wanted, max(1, granted.Left/u.unfinished))
	}
	return size
}

// jobsLeft counts the Jobs that may still need quota.
func (p *planner) jobsLeft(rj *jobset.ReplicatedJob) int32 {
	if successMayBeUndone(p.js) {
		return rj.Replicas
	}
	return max(0, rj.Replicas-p.counts(rj.Name).Succeeded)
}

// resizeJobs resizes running Jobs to the size that the spec asks for now; suspended Jobs are resized when they are
// resumed. A Job of a fixed size is limited to the parallelism that it has quota for, whatever was set on the Job
// itself.
func (p *planner) resizeJobs() {
	sizes, most, resizable := map[string]int32{}, map[string]int32{}, map[string]*jobset.ReplicatedJob{}
	for i := range p.js.Spec.ReplicatedJobs {
		rj := &p.js.Spec.ReplicatedJobs[i]
		if !elastic(&rj.Template.Spec) {
			if p.seen.Admission.Grant == jobs.Admitted {
				most[rj.Name] = ptr.Deref(rj.Template.Spec.Parallelism, 1)
			}
			continue
		}
		size, wanted := p.sizeOf(rj), jobs.PodsAtATime(&rj.Template.Spec)
		sizes[rj.Name], resizable[rj.Name] = size, rj
		if size < wanted && !boundsOf(p.js, rj).Elastic {
			p.plan.Events = append(p.plan.Events, jobs.Obstacle(growthWaitsReason, fmt.Sprintf(growthWaitsMessage, rj.Name, size, wanted)))
		}
	}
	for _, job := range p.children.active {
		if p.moved[job.Name] || suspended(job) || !job.DeletionTimestamp.IsZero() {
			continue
		}
		name := job.Labels[jobset.ReplicatedJobNameKey]
		if parallelism, isFixed := most[name]; isFixed && ptr.Deref(job.Spec.Parallelism, parallelism) > parallelism {
			fewer := job.DeepCopy()
			fewer.Spec.Parallelism = ptr.To(parallelism)
			p.plan.Writes = append(p.plan.Writes, jobs.Change(job, fewer))
		}
		size, ok := sizes[name]
		if !ok || ptr.Deref(job.Spec.Parallelism, size) == size {
			continue
		}
		resized := job.DeepCopy()
		resized.Spec.Parallelism = ptr.To(size)
		if !p.isSettled(resizable[name], job) {
			resized.Spec.Completions = ptr.To(size)
		}
		change := jobs.Change(job, resized)
		if p.seen.Admission.HoldsQuota() && size < jobs.PodsAtATime(&job.Spec) {
			change = jobs.Shrink(job, resized, nil)
		}
		p.plan.Writes = append(p.plan.Writes, change)
	}
}
