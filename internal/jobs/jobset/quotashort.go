package jobset

import (
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/write"
	"github.com/musterhq/muster/internal/pointers"
)

// A Job that is missing is created again, though it may have succeeded before someone, or its own time to live, deleted
// it, and its quota is returned. A Job created again starts only with quota that the rest of the Jobs leave. If there
// is none, it waits until one of them ends; once none runs any more, the JobSet is queued again for the pods that it
// needs now.

// The events for a user whose JobSet runs a Job again that has no quota any more.
const (
	quotaReturnedReason   = "QuotaReturned"
	waitsForQuotaMessage  = "Job %s is missing or stopped, and the quota that is left is used by other Jobs of %s: it waits until one of them ends, or until the JobSet is queued again"
	queuedForQuotaMessage = "Job %s is missing or stopped, and its quota was returned: the JobSet is queued again for all Jobs that have not succeeded"
)

// usage is what the Jobs of a replicated job use.
type usage struct {
	// pods counts the pods that may use quota, of earlier attempts too.
	pods int32
	// unfinished counts the Jobs of the current attempt that have not ended, ended the Jobs that have.
	unfinished, ended int32
	// running counts the unfinished Jobs that are not suspended; size is the number of pods of the largest of them.
	running, size int32
}

// usageOf returns what the Jobs of the replicated job use.
func (s *sizes) usageOf(rj *jobset.ReplicatedJob) usage {
	if s.usages == nil {
		s.usages = make(map[string]*usage, len(s.js.Spec.ReplicatedJobs))
		for rj := range pointers.To(s.js.Spec.ReplicatedJobs) {
			s.usages[rj.Name] = &usage{}
		}
		for _, job := range s.children.previous {
			name, _, _ := splitJobName(s.js, job.Name)
			s.usages[name].pods += podsUsing(job)
		}
		for _, job := range s.children.current() {
			name, _, _ := splitJobName(s.js, job.Name)
			s.usages[name].add(job)
		}
	}
	return *s.usages[rj.Name]
}

// add counts a Job of the current attempt.
func (u *usage) add(job *batchv1.Job) {
	u.pods += podsUsing(job)
	switch {
	case jobs.HasEnded(job):
		u.ended++
		return
	case !suspended(job):
		u.running++
		u.size = max(u.size, jobs.PodsAtATime(&job.Spec))
	}
	u.unfinished++
}

// podsUsing returns how many pods of the Job may use quota: the pods that it has, and the pods that it may create.
func podsUsing(job *batchv1.Job) int32 {
	pods := job.Status.Active + ptr.Deref(job.Status.Terminating, 0)
	if suspended(job) || jobs.HasEnded(job) {
		return pods
	}
	return max(pods, jobs.PodsAtATime(&job.Spec))
}

// shortOfQuota returns the names of the replicated job's Jobs that must not start now, because the quota that is left
// is not enough for them. Suspended Jobs come before missing ones.
func (s *sizes) shortOfQuota(rj *jobset.ReplicatedJob) map[string]bool {
	granted, ok := s.seen.Admission.PodSets[rj.Name]
	if !ok {
		return nil
	}
	if names, known := s.short[rj.Name]; known {
		return names
	}
	u, size := s.usageOf(rj), s.of(rj)
	left := granted.Left - u.pods
	var names map[string]bool
	if toStart := rj.Replicas - u.running - u.ended; toStart > 0 && left < toStart*size {
		names = map[string]bool{}
		for _, missing := range []bool{false, true} {
			for index := range rj.Replicas {
				name := jobName(s.js, rj.Name, index)
				job := s.children.byName[name]
				if (job == nil) != missing || job != nil && (s.children.activeJob(name) == nil || !suspended(job)) {
					continue
				}
				need := size
				if job != nil {
					need -= min(need, podsUsing(job)) // these are counted already
				}
				if need > left {
					names[name] = true
				} else {
					left -= need
				}
			}
		}
	}
	if s.short == nil {
		s.short = map[string]map[string]bool{}
	}
	s.short[rj.Name] = names
	return names
}

// hasQuota reports whether the Job may start with the quota that is left, and notes it if it may not.
func (s *sizes) hasQuota(rj *jobset.ReplicatedJob, name string) bool {
	if !s.shortOfQuota(rj)[name] {
		s.starts = true
		return true
	}
	if s.firstShort == nil {
		s.firstShort = &shortJob{name, rj.Name}
	}
	return false
}

// shortJob is a Job that must not start for want of quota.
type shortJob struct{ job, replicatedJob string }

// awaitQuota requeues the JobSet if a Job has no quota and no other Job runs or starts. The events say so, or that the
// Job waits. While Jobs of an earlier attempt still terminate, their quota is about to be free.
func (s *sizes) awaitQuota(active bool) (requeue bool, events []write.Event) {
	short := s.firstShort
	switch {
	case short == nil || len(s.children.previous) > 0:
		return false, nil
	case active || s.starts:
		message := fmt.Sprintf(waitsForQuotaMessage, short.job, short.replicatedJob)
		return false, []write.Event{write.Obstacle(quotaReturnedReason, message)}
	}
	return true, []write.Event{write.Warning(quotaReturnedReason, fmt.Sprintf(queuedForQuotaMessage, short.job))}
}

// podsToRun returns how many pods of the replicated job run or still have to run, and whether some of them are not
// ready yet.
func (s *sizes) podsToRun(rj *jobset.ReplicatedJob) (pods int32, waiting bool) {
	for index := range rj.Replicas {
		name := jobName(s.js, rj.Name, index)
		job := s.children.currentJob(name)
		switch {
		case s.shortOfQuota(rj)[name]: // the rest would wait for it
		case job != nil && jobs.HasEnded(job): // it may have been suspended before its end was observed
		case job == nil || suspended(job):
			pods += s.of(rj)
			waiting = true
		default:
			pods += jobs.PodsLeft(job)
			waiting = waiting || job.Status.Active > ptr.Deref(job.Status.Ready, 0)
		}
	}
	return pods, waiting
}
