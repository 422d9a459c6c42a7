package jobset

import (
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	"github.com/musterhq/muster/internal/jobs"
)

// A Job that is missing is created again, though it may have succeeded before someone, or its own time to live, deleted
// it, and its quota is returned. Such a Job starts only with quota that the other Jobs leave. If there is none, it waits
// until one of them ends; once none runs any more, the JobSet is queued again for what it needs now.

// The events for a user whose JobSet runs a Job again that has no quota any more.
const (
	quotaReturnedReason  = "QuotaReturned"
	waitsForRoomMessage  = "Job %s is missing or stopped, and the quota that is left is used by other Jobs of %s: it waits until one of them ends, or until the JobSet is queued again"
	queuedForRoomMessage = "Job %s is missing or stopped, and its quota was returned: the JobSet is queued again for all Jobs that have not succeeded"
)

// usage is what the Jobs of a replicated job use.
type usage struct {
	// pods counts the pods that may use quota, those of earlier attempts included.
	pods int32
	// unfinished counts the Jobs of the current attempt that have not ended, ended those that have.
	unfinished, ended int32
	// running counts the unfinished Jobs that are not suspended; size is the number of pods of the largest of them.
	running, size int32
}

// usageOf returns what the Jobs of the replicated job use.
func (p *planner) usageOf(rj *jobset.ReplicatedJob) usage {
	if p.usages == nil {
		p.usages = make(map[string]*usage, len(p.js.Spec.ReplicatedJobs))
		for i := range p.js.Spec.ReplicatedJobs {
			p.usages[p.js.Spec.ReplicatedJobs[i].Name] = &usage{}
		}
		for _, job := range p.children.previous {
			name, _, _ := splitJobName(p.js, job.Name)
			p.usages[name].pods += podsUsing(job)
		}
		for _, job := range p.children.current() {
			name, _, _ := splitJobName(p.js, job.Name)
			p.usages[name].add(job)
		}
	}
	return *p.usages[rj.Name]
}

// add counts a Job of the current attempt.
func (u *usage) add(job *batchv1.Job) {
	u.pods += podsUsing(job)
	switch {
	case ended(job):
		u.ended++
		return
	case !suspended(job):
		u.running++
		u.size = max(u.size, jobs.PodsAtATime(&job.Spec))
	}
	u.unfinished++
}

// podsUsing returns how many pods of the Job may use quota: those that it has, and those that it may create.
func podsUsing(job *batchv1.Job) int32 {
	pods := job.Status.Active + ptr.Deref(job.Status.Terminating, 0)
	if suspended(job) || ended(job) {
		return pods
	}
	return max(pods, jobs.PodsAtATime(&job.Spec))
}

// withoutRoom returns the names of those Jobs of the replicated job that must not start now, because the quota that is
// left is not enough for them. Jobs that are suspended come before those that are missing.
func (p *planner) withoutRoom(rj *jobset.ReplicatedJob) map[string]bool {
	granted, ok := p.seen.Admission.PodSets[rj.Name]
	if !ok {
		return nil
	}
	if names, known := p.roomless[rj.Name]; known {
		return names
	}
	u, size := p.usageOf(rj), p.sizeOf(rj)
	room := granted.Left - u.pods
	var names map[string]bool
	if toStart := rj.Replicas - u.running - u.ended; toStart > 0 && room < toStart*size {
		names = map[string]bool{}
		for _, missing := range []bool{false, true} {
			for index := range rj.Replicas {
				name := jobName(p.js, rj.Name, index)
				job := p.children.byName[name]
				if (job == nil) != missing || job != nil && (p.children.activeJob(name) == nil || !suspended(job)) {
					continue
				}
				need := size
				if job != nil {
					need -= min(need, podsUsing(job)) // these are counted already
				}
				if need > room {
					names[name] = true
				} else {
					room -= need
				}
			}
		}
	}
	if p.roomless == nil {
		p.roomless = map[string]map[string]bool{}
	}
	p.roomless[rj.Name] = names
	return names
}

// hasRoom reports whether the Job may start with the quota that is left, and notes it if it may not.
func (p *planner) hasRoom(rj *jobset.ReplicatedJob, name string) bool {
	if !p.withoutRoom(rj)[name] {
		p.starts = true
		return true
	}
	if p.firstRoomless == nil {
		p.firstRoomless = &roomless{name, rj.Name}
	}
	return false
}

// roomless is a Job that must not start for want of quota.
type roomless struct{ job, replicatedJob string }

// awaitRoom queues the JobSet again if a Job has no quota and none of its Jobs runs or starts, and otherwise says that
// the Job waits. While Jobs of an earlier attempt still terminate, their quota is about to be free.
func (p *planner) awaitRoom(progress *jobs.Progress) {
	if p.firstRoomless == nil || len(p.children.previous) > 0 {
		return
	}
	if progress.Active || p.starts {
		p.plan.Events = append(p.plan.Events, jobs.Obstacle(quotaReturnedReason, fmt.Sprintf(waitsForRoomMessage, p.firstRoomless.job, p.firstRoomless.replicatedJob)))
		return
	}
	progress.Requeue = true
	p.plan.Events = append(p.plan.Events, jobs.Warning(quotaReturnedReason, fmt.Sprintf(queuedForRoomMessage, p.firstRoomless.job)))
}
