package jobset

import (
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/jobs"
)

// boundsOf are between how many pods of the replicated job the queue may choose while the
// JobSet runs: pods of its one Job, whose parallelism and completions follow. Of more Jobs
// none is resized: how many there are never changes, and what is free comes pod by pod. Nor
// are those of JobSets that restart in place, where a pod that comes is a restart of all, or
// that each need a domain for themselves. The API refuses what asks for that.
func boundsOf(js *jobset.JobSet, rj *jobset.ReplicatedJob) jobs.Bounds {
	if rj.Replicas != 1 || !elastic(&rj.Template.Spec) || inPlace(js) || exclusionOf(js, rj).level != "" {
		return jobs.BoundsOf(nil, podCount(rj))
	}
	return jobs.BoundsOf(rj.Template.Spec.Template.Annotations, podCount(rj))
}

// askFor has the pod set ask for as many pods as the queue may choose, or for one number.
func askFor(podSet *kueue.PodSet, b jobs.Bounds) {
	if !b.Elastic {
		delete(podSet.Template.Annotations, muster.MinReplicasAnnotation)
	}
	b.Ask(podSet)
}

// elasticSize is how many pods the Job of an elastic replicated job may run: as many as were
// granted. Once a pod has succeeded the Job comes to its end, and nobody joins it any more.
func (a *attempt) elasticSize(rj *jobset.ReplicatedJob, b jobs.Bounds, granted jobs.PodSetAdmission) int32 {
	size := b.Size(granted.Count)
	if job := a.elasticJob(rj); job != nil && job.Status.Succeeded > 0 {
		return min(size, podsOf(&job.Spec))
	}
	return size
}

// elasticJob is the Job of an elastic replicated job that runs, nil if it does not.
func (a *attempt) elasticJob(rj *jobset.ReplicatedJob) *batchv1.Job {
	for _, job := range a.children.active {
		if job.Name == jobName(a.js, rj.Name, 0) && !suspended(job) {
			return job
		}
	}
	return nil
}

// podsInUse counts, by elastic replicated job, the pods that may still use quota. Of one
// whose Job has not been told its size, or has not said yet which pods it has made, nothing
// is known.
func (a *attempt) podsInUse() map[string]int32 {
	var out map[string]int32
	for i := range a.js.Spec.ReplicatedJobs {
		rj := &a.js.Spec.ReplicatedJobs[i]
		if !boundsOf(a.js, rj).Elastic {
			continue
		}
		its := func(job *batchv1.Job) bool { return job.Labels[jobset.ReplicatedJobNameKey] == rj.Name }
		size := a.sizeOf(rj)
		if slices.ContainsFunc(a.children.active, func(job *batchv1.Job) bool {
			return its(job) && !suspended(job) && (job.Status.StartTime == nil || podsOf(&job.Spec) > size)
		}) {
			continue
		}
		if out == nil {
			out = map[string]int32{}
		}
		out[rj.Name] = 0
		for _, job := range a.children.all() {
			if its(job) {
				out[rj.Name] += job.Status.Active + ptr.Deref(job.Status.Terminating, 0)
			}
		}
	}
	return out
}

// enoughReady reports whether every Job of the spec is ready, as far as it still runs pods, or
// has succeeded; of an elastic one the fewest pods will do, so that growing takes nothing from
// it.
func (a *attempt) enoughReady() bool {
	for i := range a.js.Spec.ReplicatedJobs {
		rj := &a.js.Spec.ReplicatedJobs[i]
		if c := a.counts(rj.Name); c.Ready+c.Succeeded >= rj.Replicas || a.readyJobs(rj)+c.Succeeded >= rj.Replicas {
			continue
		}
		if b := boundsOf(a.js, rj); !b.Elastic || a.readyPods(rj) < b.Least {
			return false
		}
	}
	return true
}

// readyJobs counts those of the replicated job's Jobs of which all pods are ready or have
// succeeded, or as many are ready as are left, since some indexes have failed for good.
func (a *attempt) readyJobs(rj *jobset.ReplicatedJob) int32 {
	var n int32
	for _, job := range a.children.active {
		if job.Labels[jobset.ReplicatedJobNameKey] == rj.Name && (ready(job) || runs(job) && ptr.Deref(job.Status.Ready, 0) >= podsLeft(job)) {
			n++
		}
	}
	return n
}

// readyPods counts those of the replicated job's Jobs that run which are ready or have
// succeeded.
func (a *attempt) readyPods(rj *jobset.ReplicatedJob) int32 {
	var pods int32
	for _, job := range a.children.active {
		if job.Labels[jobset.ReplicatedJobNameKey] == rj.Name {
			pods += ptr.Deref(job.Status.Ready, 0) + job.Status.Succeeded
		}
	}
	return pods
}
