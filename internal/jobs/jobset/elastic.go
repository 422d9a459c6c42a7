package jobset

import (
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	"github.com/musterhq/muster/internal/jobs"
)

// boundsOf returns between which numbers of pods the queue may resize the replicated job while the JobSet runs, by the
// parallelism and completions of its only Job. The bounds are fixed for replicated jobs with several Jobs, whose number
// never changes while quota comes and goes pod by pod; for JobSets that restart in place, where a new pod restarts all;
// and for Jobs that need a domain each. The API rejects elastic bounds for these.
func boundsOf(js *jobset.JobSet, rj *jobset.ReplicatedJob) jobs.Bounds {
	if rj.Replicas != 1 || !elastic(&rj.Template.Spec) || inPlace(js) || exclusionOf(js, rj).level != "" {
		return jobs.BoundsOf(nil, podCount(rj))
	}
	return jobs.BoundsOf(rj.Template.Spec.Template.Annotations, podCount(rj))
}

// elasticSize returns how many pods the Job of an elastic replicated job may run: as many as were granted. Once a pod
// has succeeded the Job is about to end, and does not grow any more.
func (p *planner) elasticSize(rj *jobset.ReplicatedJob, b jobs.Bounds, granted jobs.PodSetAdmission) int32 {
	size := b.Size(granted.Count)
	if job := p.elasticJob(rj); job != nil && p.isSettled(rj, job) {
		return min(size, jobs.PodsAtATime(&job.Spec))
	}
	return size
}

// isSettled reports whether completions of a Job of an elastic replicated job no longer change, since one of its indexes
// is final: with fewer the Job could be complete although pods that run have work left. If the queue takes pods of it
// nevertheless, fewer of the remaining ones run at once.
func (p *planner) isSettled(rj *jobset.ReplicatedJob, job *batchv1.Job) bool {
	return jobs.FinalCompletions(job) > 0 && boundsOf(p.js, rj).Elastic
}

// elasticJob returns the running Job of an elastic replicated job, nil if it does not run.
func (p *planner) elasticJob(rj *jobset.ReplicatedJob) *batchv1.Job {
	for _, job := range p.children.active {
		if job.Name == jobName(p.js, rj.Name, 0) && !suspended(job) {
			return job
		}
	}
	return nil
}

// podsInUse counts, by elastic replicated job, the pods that may still use quota. A replicated job is omitted while its
// Job has not been resized yet, or has not reported yet which pods it has.
func (p *planner) podsInUse() map[string]int32 {
	var out map[string]int32
	for i := range p.js.Spec.ReplicatedJobs {
		rj := &p.js.Spec.ReplicatedJobs[i]
		if !boundsOf(p.js, rj).Elastic {
			continue
		}
		its := func(job *batchv1.Job) bool { return job.Labels[jobset.ReplicatedJobNameKey] == rj.Name }
		size := p.sizeOf(rj)
		if slices.ContainsFunc(p.children.active, func(job *batchv1.Job) bool {
			return its(job) && !suspended(job) && (job.Status.StartTime == nil || jobs.PodsAtATime(&job.Spec) > size)
		}) {
			continue
		}
		if out == nil {
			out = map[string]int32{}
		}
		out[rj.Name] = 0
		for _, job := range p.children.all() {
			if its(job) {
				out[rj.Name] += job.Status.Active + ptr.Deref(job.Status.Terminating, 0)
			}
		}
	}
	return out
}

// isEnoughReady reports whether every Job of the replicated job has succeeded or has all pods ready that it still runs.
// For an elastic Job, the minimum of pods is enough, so that growing does not make it unready.
func (p *planner) isEnoughReady(rj *jobset.ReplicatedJob) bool {
	if c := p.counts(rj.Name); c.Ready+c.Succeeded >= rj.Replicas || p.readyJobs(rj)+c.Succeeded >= rj.Replicas {
		return true
	}
	b := boundsOf(p.js, rj)
	return b.Elastic && p.readyPods(rj) >= b.Least
}

// readyJobs counts the Jobs of the replicated job whose pods are all ready or have succeeded, or, if some indexes have
// finally failed, whose remaining pods are all ready.
func (p *planner) readyJobs(rj *jobset.ReplicatedJob) int32 {
	var n int32
	for _, job := range p.children.active {
		if job.Labels[jobset.ReplicatedJobNameKey] == rj.Name && (isReady(job) || isRunning(job) && ptr.Deref(job.Status.Ready, 0) >= jobs.PodsLeft(job)) {
			n++
		}
	}
	return n
}

// readyPods counts the pods of the replicated job's running Jobs that are ready or have succeeded.
func (p *planner) readyPods(rj *jobset.ReplicatedJob) int32 {
	var pods int32
	for _, job := range p.children.active {
		if job.Labels[jobset.ReplicatedJobNameKey] == rj.Name {
			pods += ptr.Deref(job.Status.Ready, 0) + job.Status.Succeeded
		}
	}
	return pods
}
