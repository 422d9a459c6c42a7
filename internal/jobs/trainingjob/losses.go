package trainingjob

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	breezeml "github.com/musterhq/muster/api/breezeml/v1"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/replicas"
)

// A worker is lost if its pod has failed through no fault of its program, as far as can be told: its node was shut
// down, or, with the agent, its container was killed. Under the policy Never, which does not restart workers whose
// programs have failed, lost workers are replaced, at most three times an hour: a program that needs too much memory
// looks the same. Workers that are lost together, with a node for instance, count once. A job that has used this up
// goes on with the workers that are left, if these are as many as its minimum; otherwise it fails. Where the job has a
// backoffLimit, that is its budget instead, and counts every pod.

const (
	lossesAnHour = 3
	lossWindow   = time.Hour
	// sameLoss is how long after a loss the loss of another pod, which had been there before, belongs to it.
	sameLoss = time.Minute
)

// isLost reports whether the pod has failed through no fault of its program.
func (v *view) isLost(pod *corev1.Pod) bool {
	if replicas.LostByNode(pod) {
		return true
	}
	code, ended := exitCodeOf(pod)
	return ended && (code == 128+9 || code == 128+15) && v.lattice().injected && !reportsFailure(pod)
}

// reportsFailure reports whether the agent has left word that the command itself has failed. A container that was
// killed says nothing.
func reportsFailure(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.ContainerStatuses, func(c corev1.ContainerStatus) bool {
		return c.State.Terminated != nil && strings.Contains(c.State.Terminated.Message, muster.AgentReport)
	})
}

// isReplaced reports whether the failed pod is a lost one that is replaced.
func (v *view) isReplaced(pod *corev1.Pod) bool {
	return v.isLost(pod) && (v.job.Spec.RunPolicy.BackoffLimit != nil || v.sameLossAsBefore(pod) ||
		len(v.recentLosses()) < lossesAnHour)
}

// recentLosses returns the losses within the last hour.
func (v *view) recentLosses() (out []time.Time) {
	for _, at := range v.job.Status.Losses {
		if v.seen.Now.Sub(at.Time) < lossWindow {
			out = append(out, at.Time)
		}
	}
	return out
}

// sameLossAsBefore reports whether the pod was lost together with others that were counted already.
func (v *view) sameLossAsBefore(pod *corev1.Pod) bool {
	losses := v.job.Status.Losses
	if len(losses) == 0 {
		return false
	}
	last := losses[len(losses)-1].Time
	return pod.CreationTimestamp.Time.Before(last) && replicas.EndOf(pod).Before(last.Add(sameLoss))
}

// countLosses counts the lost workers among the restarted ones of this plan, all together once.
func (rep *reporter) countLosses() {
	s := &rep.job.Status
	s.Losses = slices.DeleteFunc(s.Losses, func(at metav1.Time) bool { return rep.seen.Now.Sub(at.Time) >= lossWindow })
	policy := restartPolicyOf(rep.job, rep.lattice())
	if rep.job.Spec.RunPolicy.BackoffLimit == nil && slices.ContainsFunc(rep.restarting, func(r replicas.Replica) bool {
		return r.Pod != nil && !isRetried(policy, r.Pod) && !rep.sameLossAsBefore(r.Pod)
	}) {
		s.Losses = append(s.Losses, rep.now)
	}
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
