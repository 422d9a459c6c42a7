package execnode

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// action is what a pod's worker does next.
type action int

const (
	// toRun lets the runtime manager start, restart and kill what it sees fit.
	toRun action = iota
	// toRefuse reports why the pod cannot run, and leaves it waiting.
	toRefuse
	// toKill stops all that runs, with the grace period of the decision.
	toKill
	// toFinish reports the last status of a pod of which nothing runs any more.
	toFinish
	// toForget removes all that is kept of a pod that is gone from the API server.
	toForget
	// toRest waits for something to change.
	toRest
)

func (a action) String() string {
	return [...]string{"run", "refuse", "kill", "finish", "forget", "rest"}[a]
}

// view is a pod as its worker sees it.
type view struct {
	pod *corev1.Pod
	// gone: the pod is no longer on the API server.
	gone bool
	// phase is the one that follows from the containers as they are.
	phase corev1.PodPhase
	// alive: a container or the pod's network still exists.
	alive bool
	// finished: the last status was reported.
	finished bool
	// refusal is why the pod cannot run, if so.
	refusal *refusal
	// deadline is when the pod's time is over, zero if it has no limit or has not started.
	deadline time.Time
	now      time.Time
}

// decision is an action with what it needs.
type decision struct {
	action action
	// grace is for toKill, in seconds; nil is what the pod's spec says.
	grace *int64
	// refused says that the pod ends or waits because it cannot run here.
	refused bool
	// pastDeadline says that the pod fails because its time is over.
	pastDeadline bool
	// wake is when the worker has to look again even if nothing happens; zero is never.
	wake time.Time
}

// decide is the whole life of a pod on this node, from most to least urgent.
func decide(v view) decision {
	pastDeadline := !v.deadline.IsZero() && !v.now.Before(v.deadline)
	over := v.phase == corev1.PodSucceeded || v.phase == corev1.PodFailed
	switch {
	case v.gone && v.alive:
		return decision{action: toKill, grace: ptr.To[int64](0)}
	case v.gone:
		return decision{action: toForget}
	case v.finished:
		return decision{action: toRest}
	case v.pod.DeletionTimestamp != nil && v.alive:
		return decision{action: toKill, grace: v.pod.DeletionGracePeriodSeconds}
	case v.pod.DeletionTimestamp != nil:
		return decision{action: toFinish}
	case over && v.alive:
		return decision{action: toKill}
	case over:
		return decision{action: toFinish}
	case pastDeadline && v.alive:
		return decision{action: toKill, pastDeadline: true}
	case pastDeadline:
		return decision{action: toFinish, pastDeadline: true}
	case v.refusal != nil && v.refusal.final:
		return decision{action: toFinish, refused: true}
	case v.refusal != nil:
		return decision{action: toRefuse, refused: true}
	default:
		return decision{action: toRun, wake: v.deadline}
	}
}

// deadlineOf is when a pod with activeDeadlineSeconds must have ended.
func deadlineOf(pod *corev1.Pod, status corev1.PodStatus) time.Time {
	if pod.Spec.ActiveDeadlineSeconds == nil || status.StartTime.IsZero() {
		return time.Time{}
	}
	return status.StartTime.Add(time.Duration(*pod.Spec.ActiveDeadlineSeconds) * time.Second)
}
