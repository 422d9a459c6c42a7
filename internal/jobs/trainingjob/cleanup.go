package trainingjob

import (
	"math"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	breezeml "github.com/musterhq/muster/api/breezeml/v1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/write"
	"github.com/musterhq/muster/internal/replicas"
)

// cleanUp deletes the pods that the policy selects, with their Services, and pods that must stop because the queue
// wants their quota back. It stops all pods of a job that has reached its deadline or its backoffLimit. Finally it
// deletes the job.
func (p *planner) cleanUp(outcome *jobs.Outcome) {
	policy := p.job.Spec.RunPolicy.CleanPodPolicy
	runsOn, stopsAll := p.withQuota(), p.reachedItsLimit(outcome)
	stays := map[int32]bool{}
	for _, pod := range p.pods {
		if policy == breezeml.CleanPodNone && stopsAll {
			if index, ok := replicas.IndexOf(p.job.Name, worker, pod.Name); ok && p.stop(pod) {
				stays[index] = true
			}
			continue
		}
		if policy == breezeml.CleanPodNone && runsOn[pod.Name] ||
			policy != breezeml.CleanPodAll && policy != "" && replicas.IsFinished(pod) {
			if index, ok := replicas.IndexOf(p.job.Name, worker, pod.Name); ok {
				stays[index] = true
			}
			continue
		}
		p.plan.DeletePods([]*corev1.Pod{pod})
	}
	gone := func(index int32) bool { return !stays[index] }
	p.plan.Add(p.deleteServices(gone)...)
	if ended := p.job.Status.CompletionTime; ended != nil {
		ttl := p.job.Spec.RunPolicy.TTLSecondsAfterFinished
		p.plan.Expire(write.Delete(p.seen.Job), ended.Time, ttl, p.seen.Now)
	}
}

// withQuota returns the names of the unfinished pods that the job, which has ended, has quota for. The queue may have
// given some of the quota to other jobs since the end, as it does with an elastic job that runs.
func (v *view) withQuota() map[string]bool {
	out := map[string]bool{}
	if !v.seen.Admission.MayRun() {
		return out
	}
	live := slices.DeleteFunc(slices.Clone(v.pods), func(pod *corev1.Pod) bool { return !replicas.IsLive(pod) })
	count := int32(len(live))
	granted, queued := v.seen.Admission.PodSets[worker]
	if queued {
		count = min(count, granted.Count)
	}
	for _, index := range replicas.KeepIndices(v.job.Name, worker, count, live, granted.Places) {
		out[replicas.Name(v.job.Name, worker, index)] = true
	}
	return out
}

// stopTime is how long, beyond its grace period, a pod may take to end after it was given a deadline, before it is
// deleted.
const stopTime = time.Minute

// reachedItsLimit reports whether the job has failed because of its deadline or its backoffLimit.
func (v *view) reachedItsLimit(outcome *jobs.Outcome) bool {
	backoff, _, _ := strings.Cut(breezeml.BackoffMessage, ": ")
	return !outcome.Succeeded &&
		(outcome.Message == v.message(breezeml.DeadlineMessage) ||
			strings.HasPrefix(outcome.Message, v.message(backoff)+": "))
}

// stop ends a pod that is to be kept, and reports whether it stays. A running pod gets a deadline that has passed: its
// node ends it, and the pod and its logs remain. One that has never started, or whose node does not end it in time, is
// deleted.
func (p *planner) stop(pod *corev1.Pod) (stays bool) {
	switch {
	case replicas.IsFinished(pod):
		return true
	case replicas.IsTerminating(pod):
		return false
	case pod.Status.StartTime == nil, p.job.Status.CompletionTime == nil:
		p.plan.DeletePods([]*corev1.Pod{pod})
		return false
	}
	due := p.job.Status.CompletionTime.Add(stopTime)
	if grace := pod.Spec.TerminationGracePeriodSeconds; grace != nil {
		due = due.Add(time.Duration(min(*grace, math.MaxInt32)) * time.Second)
	}
	if !p.seen.Now.Before(due) {
		p.plan.DeletePods([]*corev1.Pod{pod})
		return false
	}
	p.plan.DueBy(due)
	if seconds := pod.Spec.ActiveDeadlineSeconds; seconds == nil || *seconds > 1 {
		stopped := pod.DeepCopy()
		stopped.Spec.ActiveDeadlineSeconds = ptr.To[int64](1)
		p.plan.Add(write.Change(pod, stopped))
	}
	return true
}
