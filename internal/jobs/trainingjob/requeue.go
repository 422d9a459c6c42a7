package trainingjob

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	breezeml "github.com/musterhq/muster/api/breezeml/v1"
	"github.com/musterhq/muster/internal/jobs/write"
	"github.com/musterhq/muster/internal/replicas"
)

// requeueStuck acts on pods that have been pending for too long. If enough others run, the job goes on with these.
// Otherwise it leaves the queue for the cooldown, which requeueStuck reports: others can use its quota, and waiting
// does not solve the problem. While pods are missing, it is not known yet whether they would run.
func (p *planner) requeueStuck() bool {
	s := &p.job.Status
	stuck := p.roster.First(isPending)
	switch {
	case stuck == nil:
		s.RequeueTime = nil
		p.status.forgetLimit()
		return false
	case s.RequeueTime == nil:
		until := metav1.NewTime(p.now.Add(p.settings.PendingTimeout))
		s.RequeueTime = &until
	}
	if p.seen.Now.Before(s.RequeueTime.Time) {
		p.plan.DueBy(s.RequeueTime.Time)
		return false
	}
	if len(p.roster.Missing()) > 0 {
		return false
	}
	why := fmt.Sprintf("Pods have been pending for more than %s, %s among them: %s", p.settings.PendingTimeout, stuck.Name,
		whyPending(stuck.Pod))
	if p.goOnWith(func(r *replicas.Replica) bool { return !isPending(r) }, why, time.Time{}) {
		return false
	}
	until := metav1.NewTime(p.now.Add(p.settings.Cooldown))
	p.status.addEvent(write.Warning(breezeml.RequeueCooldownReason, fmt.Sprintf(
		"%s. The job gives up its quota and is queued again at %s", strings.TrimSuffix(why, "."),
		until.UTC().Format(timeFormat))))
	p.status.setStage(breezeml.StageRequeueCooldown, 0)
	// The pods are deleted, and events expire before the cooldown ends.
	p.status.setCondition(breezeml.JobRunning, false, breezeml.StoppedByCooldownReason, why)
	s.CooldownTime = &until
	p.plan.StatusFirst = true
	p.plan.DueBy(until.Time)
	p.plan.DeletePods(p.pods)
	return true
}

// whyPending returns why the pod does not run, as far as its status says it.
func whyPending(pod *corev1.Pod) string {
	scheduled := replicas.Condition(pod, corev1.PodScheduled)
	if scheduled != nil && scheduled.Status == corev1.ConditionFalse && scheduled.Message != "" {
		return scheduled.Message
	}
	switch {
	case replicas.IsTerminating(pod):
		return "it is being deleted"
	case pod.Spec.NodeName != "":
		return fmt.Sprintf("it has not started on node %s, and its events say why", pod.Spec.NodeName)
	}
	return "it is not scheduled, and its events say why"
}

// isPending reports whether the worker's pod exists and does not run, because it has not started or is terminating.
func isPending(r *replicas.Replica) bool {
	return r.Pod != nil && (r.Phase == replicas.Creating || r.Phase == replicas.Pending || replicas.IsTerminating(r.Pod))
}

// goOnWith makes the job go on with only the workers for which keeps is true, because the rest failed for the reason
// given, at least until the time given if that is not zero. It reports whether they are as many as the minimum.
func (p *planner) goOnWith(keeps func(*replicas.Replica) bool, why string, atLeast time.Time) bool {
	s := &p.job.Status
	indices := []int32{}
	for i := range p.roster.Replicas {
		if r := &p.roster.Replicas[i]; keeps(r) {
			indices = append(indices, r.Index)
		}
	}
	size := int32(len(indices))
	if size < sizesOf(p.job).least || size == s.CurrentSize {
		return false
	}
	limit := &breezeml.SizeLimit{Workers: size, Failures: 1, Since: p.now, Message: why}
	if was := s.SizeLimit; was != nil && size <= was.Workers {
		limit.Failures = was.Failures + 1
	}
	until := p.seen.Now.Add(p.pause(limit.Failures))
	if until.Before(atLeast) {
		until = atLeast
	}
	limit.Until = ptr.To(metav1.NewTime(until).Rfc3339Copy())
	p.status.addEvent(write.Warning(breezeml.SizeLimitedReason,
		fmt.Sprintf("The job goes on with %d workers instead of %d: %s. More are tried again at %s, or when nodes can take more pods",
			size, s.CurrentSize, strings.TrimSuffix(why, "."), limit.Until.UTC().Format(timeFormat))))
	s.CurrentSize, s.RequeueTime, s.SizeLimit = size, nil, limit
	p.plan.StatusFirst = true // otherwise the pods that are deleted could be created again
	p.plan.DueBy(limit.Until.Time)
	p.observeWorkers(indices)
	return true
}

// goOnWithoutLost makes the job go on without lost workers that are not replaced any more, if enough others are left.
func (p *planner) goOnWithoutLost() {
	if p.job.Status.Stage != breezeml.StageRunning {
		return
	}
	isGivenUp := func(r *replicas.Replica) bool {
		return r.Phase == replicas.Failed && !r.NeedsRestart && r.UID() != "" && p.isLost(r.Pod)
	}
	first, losses := p.roster.First(isGivenUp), p.recentLosses()
	if first == nil || len(losses) == 0 {
		return
	}
	why := fmt.Sprintf("workers were lost %d times within an hour, the last with %s", len(losses)+1, failureOf(first.Pod))
	p.goOnWith(func(r *replicas.Replica) bool { return !isGivenUp(r) }, why, losses[0].Add(lossWindow))
}
