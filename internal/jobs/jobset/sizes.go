package jobset

import (
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/pointers"
)

// sizes knows how many pods Jobs may run, and for which of them quota is left.
type sizes struct {
	*view
	// usages caches usageOf by replicated job, short caches shortOfQuota.
	usages map[string]*usage
	short  map[string]map[string]bool
	// firstShort is the first Job that must not start for want of quota, nil if there is none. starts says that the plan
	// starts another one.
	firstShort *shortJob
	starts     bool
}

// mostJobs is how many Jobs a JobSet may have. The API refuses larger ones, but not JobSets that were stored before it
// did.
const mostJobs = 10000

// tooLarge returns why the JobSet has too many Jobs, "" if it has not. None of them is created then: a plan takes
// memory for each.
func tooLarge(js *jobset.JobSet) string {
	total := int64(0)
	for rj := range pointers.To(js.Spec.ReplicatedJobs) {
		total += int64(max(0, rj.Replicas)) // a negative number must not make up for others
	}
	if total <= mostJobs {
		return ""
	}
	return fmt.Sprintf("replicas of all replicatedJobs must be at most %d together, and are %d: no pods are started. Delete the JobSet and create another", mostJobs, total)
}

// podCount returns how many pods all Jobs of a replicated job run at a time. The API rejects numbers that would
// overflow an int32.
func podCount(rj *jobset.ReplicatedJob) int32 {
	return rj.Replicas * jobs.PodsAtATime(&rj.Template.Spec)
}

// elastic reports whether Jobs with this spec may change their size: Indexed Jobs that run all their pods at once.
func elastic(spec *batchv1.JobSpec) bool {
	return ptr.Deref(spec.CompletionMode, batchv1.IndexedCompletion) == batchv1.IndexedCompletion &&
		spec.Parallelism != nil && spec.Completions != nil && *spec.Parallelism == *spec.Completions
}

// of returns how many pods each Job of the replicated job may run: as many as the spec says, within the quota left
// for its remaining Jobs, or as many as the queue chose if it is elastic.
func (s *sizes) of(rj *jobset.ReplicatedJob) int32 {
	wanted := jobs.PodsAtATime(&rj.Template.Spec)
	granted, ok := s.seen.Admission.PodSets[rj.Name]
	if b := boundsOf(s.js, rj); ok && b.Elastic {
		return s.elasticSize(rj, b, granted)
	}
	left := s.jobsLeft(rj)
	if !ok || !elastic(&rj.Template.Spec) || left == 0 {
		return wanted
	}
	// If several Jobs share the remaining quota, each gets at least one pod, as the API requires, unless it wants none.
	size := min(wanted, max(1, granted.Left/left))
	if u := s.usageOf(rj); size < min(wanted, u.size) {
		// A Job that is missing takes no quota from the Jobs that run with it.
		return min(wanted, max(1, granted.Left/u.unfinished))
	}
	return size
}

// jobsLeft counts the Jobs that may still need quota.
func (v *view) jobsLeft(rj *jobset.ReplicatedJob) int32 {
	if successMayBeUndone(v.js) {
		return rj.Replicas
	}
	return max(0, rj.Replicas-v.counts(rj.Name).Succeeded)
}

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
func (s *sizes) elasticSize(rj *jobset.ReplicatedJob, b jobs.Bounds, granted jobs.PodSetAdmission) int32 {
	size := b.Size(granted.Count)
	if job := s.elasticJob(rj); job != nil && s.isSettled(rj, job) {
		return min(size, jobs.PodsAtATime(&job.Spec))
	}
	return size
}

// isSettled reports whether completions of a Job of an elastic replicated job no longer change, since one of its
// indexes is final: with fewer the Job could be complete although pods that run have work left. If the queue takes pods
// of the Job nevertheless, fewer of the remaining ones run at once.
func (v *view) isSettled(rj *jobset.ReplicatedJob, job *batchv1.Job) bool {
	return jobs.FinalCompletions(job) > 0 && boundsOf(v.js, rj).Elastic
}

// elasticJob returns the running Job of an elastic replicated job, nil if it does not run.
func (v *view) elasticJob(rj *jobset.ReplicatedJob) *batchv1.Job {
	for _, job := range v.children.active {
		if job.Name == jobName(v.js, rj.Name, 0) && !suspended(job) {
			return job
		}
	}
	return nil
}

// podsInUse counts, by elastic replicated job, the pods that may still use quota. A replicated job is omitted while its
// Job has not been resized yet, or has not reported yet which pods it has.
func (s *sizes) podsInUse() map[string]int32 {
	var out map[string]int32
	for rj := range pointers.To(s.js.Spec.ReplicatedJobs) {
		if !boundsOf(s.js, rj).Elastic {
			continue
		}
		its := func(job *batchv1.Job) bool { return isOf(job, rj.Name) }
		size := s.of(rj)
		if slices.ContainsFunc(s.children.active, func(job *batchv1.Job) bool {
			return its(job) && !suspended(job) && (job.Status.StartTime == nil || jobs.PodsAtATime(&job.Spec) > size)
		}) {
			continue
		}
		if out == nil {
			out = map[string]int32{}
		}
		out[rj.Name] = 0
		for _, job := range s.children.all() {
			if its(job) {
				out[rj.Name] += job.Status.Active + ptr.Deref(job.Status.Terminating, 0)
			}
		}
	}
	return out
}

// reclaimable counts the pods with quota that are not needed any more and are gone, because their Jobs have succeeded
// or are smaller now. Jobs that a restart could run again keep their quota, because it could not be taken back from
// others.
func (s *sizes) reclaimable() map[string]int32 {
	out := map[string]int32{}
	if s.held() && s.restartsWhole() {
		return out
	}
	for rj := range pointers.To(s.js.Spec.ReplicatedJobs) {
		asked := podCount(rj)
		if granted, ok := s.seen.Admission.PodSets[rj.Name]; ok {
			asked = granted.Asked
		}
		if boundsOf(s.js, rj).Elastic && s.jobsLeft(rj) > 0 {
			// The queue decides how many pods there are. Only of a Job that is about to end, and must not grow any more, are
			// ended pods reported, and no more than the pods that were not granted, so that no granted quota is given away.
			if job := s.elasticJob(rj); job != nil {
				if n := min(job.Status.Succeeded, asked-s.seen.Admission.PodSets[rj.Name].Count); n > 0 {
					out[rj.Name] = n
				}
			}
			continue
		}
		if unneeded := asked - max(s.jobsLeft(rj)*s.of(rj), s.usageOf(rj).pods); unneeded > 0 {
			out[rj.Name] = unneeded
		}
	}
	return out
}
