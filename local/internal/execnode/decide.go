package execnode

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// action is what a pod's worker does next.
type action int

const (
	// toRun lets the runtime manager start, restart and kill containers as it decides.
	toRun action = iota
	// toRefuse reports why the pod cannot run, and leaves it waiting.
	toRefuse
	// toKill stops all containers, with the grace period of the decision.
	toKill
	// toFinish reports the last status of a pod of which nothing runs any more.
	toFinish
	// toForget deletes everything kept for a pod that is gone from the API server.
	toForget
	// toRest waits for something to change.
	toRest
)

func (a action) String() string {
	return [...]string{"run", "refuse", "kill", "finish", "forget", "rest"}[a]
}

// view is the state of a pod that decide uses.
type view struct {
	pod *corev1.Pod
	// gone: the pod is no longer on the API server.
	gone bool
	// phase follows from the present state of the containers.
	phase corev1.PodPhase
	// alive: a container or the pod's network still exists.
	alive bool
	// finished: the last status was reported.
	finished bool
	// refusal is why the pod cannot run, nil if it can.
	refusal *refusal
	// deadline is when activeDeadlineSeconds are over, zero if there is no limit or the pod has not started.
	deadline time.Time
	now      time.Time
}

// decision is an action with its parameters.
type decision struct {
	action action
	// grace is for toKill, in seconds; nil is what the pod's spec says.
	grace *int64
	// refused is set if the pod fails or waits because it cannot run here.
	refused bool
	// pastDeadline is set if the pod fails because its deadline has passed.
	pastDeadline bool
	// wake is when the worker must run again even without an event; zero means never.
	wake time.Time
}

// decide returns the next action in a pod's lifecycle, checking from the most to the least urgent.
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
