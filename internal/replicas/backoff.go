package replicas

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/musterhq/muster/internal/podspec"
	"github.com/musterhq/muster/internal/pointers"
)

// Delays of restarts. A program that ends at once would otherwise be started over and over, each time with several
// requests to the API server, which all jobs share.
const (
	firstDelay = time.Second
	mostDelay  = 5 * time.Minute
	// settledAfter is how long a pod must have run for the delays to start again from none.
	settledAfter = 10 * time.Minute
)

// RestartDue returns when the n-th restart in a row is due after the end of its pod: at once, which is the zero time,
// for the first, and then after 1 s, 2 s, 4 s up to 5 minutes.
func RestartDue(ended time.Time, n int32, now time.Time) time.Time {
	delay := delayOf(n)
	if delay == 0 || ended.IsZero() || ended.After(now.Add(mostDelay)) { // the clock of the node is wrong
		return time.Time{}
	}
	return ended.Add(delay)
}

func delayOf(n int32) time.Duration {
	switch {
	case n <= 1:
		return 0
	case n >= 11: // 512 s
		return mostDelay
	}
	return min(firstDelay<<(n-2), mostDelay)
}

// Earlier returns the earlier of two times, where the zero time stands for none.
func Earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// restartDue returns when the replica may restart; the zero time means at once. Until then it keeps its
// finished pod, which has all that this follows from, and whose logs can be read meanwhile. A pod that is
// being deleted is not waited for, as its end is recorded nowhere else.
func (r *Replica) restartDue(now time.Time) time.Time {
	if r.Pod == nil || IsTerminating(r.Pod) || Settled(r.Pod) {
		return time.Time{}
	}
	return RestartDue(EndOf(r.Pod), max(r.Restarts-r.Settled, 0)+1, now)
}

// EndOf returns when a finished pod ended: its last container, or else, if the pod failed without running
// one, its last condition. Zero if neither is known.
func EndOf(pod *corev1.Pod) (last time.Time) {
	for status := range podspec.Statuses(pod) {
		if ended := status.State.Terminated; ended != nil && ended.FinishedAt.After(last) {
			last = ended.FinishedAt.Time
		}
	}
	if !last.IsZero() {
		return last
	}
	return LastTransition(pod, time.Time{})
}

// LastTransition returns when a condition of the pod changed last, but at the earliest since.
func LastTransition(pod *corev1.Pod, since time.Time) time.Time {
	for condition := range pointers.To(pod.Status.Conditions) {
		if at := condition.LastTransitionTime; at.After(since) {
			since = at.Time
		}
	}
	return since
}

// Settled reports whether a container of the pod has run for so long before it ended that the pod's end is not one of a
// row.
func Settled(pod *corev1.Pod) bool {
	for container := range pointers.To(pod.Status.ContainerStatuses) {
		ended := container.State.Terminated
		if ended != nil && !ended.StartedAt.IsZero() && ended.FinishedAt.Sub(ended.StartedAt.Time) >= settledAfter {
			return true
		}
	}
	return false
}
