package replicas

import (
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/musterhq/muster/api/muster"
)

// Group is a number of replicas that are made alike.
type Group struct {
	Name  string
	Count int32
	// Indices are those that there are, ascending, as Stay gives them; nil for 0 to Count-1.
	Indices []int32
	Restart Restart
}

// index is that of the n-th replica.
func (g *Group) index(n int32) int32 {
	if g.Indices == nil {
		return n
	}
	return g.Indices[n]
}

// Restart says after which ends a replica is started anew, and how often. The zero
// value is never.
type Restart struct {
	OnFailure, OnSuccess bool
	// Retry says of a pod that has failed whether OnFailure means it; nil if it means all.
	Retry func(*corev1.Pod) bool
	// Limit is how often each replica is restarted at most.
	Limit int32
}

// means reports whether a replica that stands so is to be started anew.
func (p Restart) means(r *Replica) bool {
	switch r.Phase {
	case Failed:
		return p.OnFailure && (p.Retry == nil || r.Pod != nil && p.Retry(r.Pod))
	case Succeeded:
		return p.OnSuccess
	}
	return false
}

// Phase is where a replica stands: a phase of its pod, or Creating.
type Phase string

const (
	// Creating replicas have no pod of this attempt yet, or one without a node.
	Creating Phase = "Creating"
	// Pending pods have a node and do not run yet.
	Pending = Phase(corev1.PodPending)
	// Running pods run.
	Running = Phase(corev1.PodRunning)
	// Succeeded pods have ended well.
	Succeeded = Phase(corev1.PodSucceeded)
	// Failed pods have ended otherwise.
	Failed = Phase(corev1.PodFailed)
	// Unknown pods are on a node that cannot be asked.
	Unknown = Phase(corev1.PodUnknown)
)

// Ended reports whether nothing of the replica runs, and something has.
func (p Phase) Ended() bool { return p == Succeeded || p == Failed }

// Memory is what the status of a job remembers of a replica: what its pods cannot
// tell, because they may be gone.
type Memory struct {
	// Restarts is how often the replica was restarted.
	Restarts int32
	// Ended is Succeeded or Failed if the pod of this attempt was seen to have ended,
	// else anything.
	Ended Phase
}

// Replica is one of a group, as it stands.
type Replica struct {
	// Group is the name of its group, Index its number there, from 0.
	Group string
	Index int32
	// Name is the replica's, and that of its pod.
	Name string
	// Pod bears the name, nil if none does. It may be of an earlier attempt.
	Pod *corev1.Pod
	// Restarts is how often the replica was restarted.
	Restarts int32
	// Phase is that of the present attempt.
	Phase Phase
	// Again says that it has ended and is to be restarted.
	Again bool
	// Ready says that its pod is, in this attempt.
	Ready bool
}

// Final reports whether the replica has ended and is not restarted.
func (r *Replica) Final() bool { return r.Phase.Ended() && !r.Again }

// past reports whether the pod is of an earlier attempt.
func (r *Replica) past() bool { return r.Pod != nil && attemptOf(r.Pod, r.Restarts) < r.Restarts }

// Name is the name of a replica and of its pod.
func Name(job, group string, index int32) string {
	return job + "-" + group + "-" + strconv.Itoa(int(index))
}

// IndexOf is the index of the replica of the group whose name, and whose pod's name, it
// is; false if it is none of theirs.
func IndexOf(job, group, name string) (int32, bool) {
	text, ok := strings.CutPrefix(name, job+"-"+group+"-")
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || n < 0 || strconv.FormatInt(n, 10) != text {
		return 0, false
	}
	return int32(n), true
}

// stand says how a replica fares by its memory and the pod of its name.
func stand(r Replica, remembered Memory, policy Restart) Replica {
	r.Restarts = remembered.Restarts
	if r.Pod != nil && attemptOf(r.Pod, r.Restarts) > r.Restarts { // the status was tampered with
		remembered = Memory{}
		r.Restarts = attemptOf(r.Pod, 0)
	}
	r.Phase = Creating
	switch {
	case r.past():
	case r.Pod != nil && (IsGoing(r.Pod) && !endedBefore(r.Pod)):
		if r.Phase = phaseOf(r.Pod); r.Phase.Ended() {
			r.Phase = Creating // it was told to go, so its end says nothing
		}
		if remembered.Ended.Ended() {
			r.Phase = remembered.Ended
		}
	case r.Pod != nil:
		r.Phase, r.Ready = phaseOf(r.Pod), isReady(r.Pod)
	case remembered.Ended.Ended():
		r.Phase = remembered.Ended
	}
	r.Again = r.Restarts < policy.Limit && policy.means(&r)
	return r
}

// attemptOf is how often the replica had been restarted when the pod was made. A pod
// that does not say so was tampered with, and counts as of the present attempt.
func attemptOf(pod *corev1.Pod, present int32) int32 {
	n, err := strconv.ParseInt(pod.Annotations[muster.RestartsAnnotation], 10, 32)
	if err != nil || n < 0 {
		return present
	}
	return int32(n)
}

// IsGoing reports whether somebody has deleted the pod.
func IsGoing(pod *corev1.Pod) bool { return !pod.DeletionTimestamp.IsZero() }

// HasEnded reports whether no container of the pod will run any more.
func HasEnded(pod *corev1.Pod) bool { return Phase(pod.Status.Phase).Ended() }

// endedBefore reports whether the pod had ended when it was deleted. One that ends
// because it is told to does not say how its work went. Times are in whole seconds:
// within one it counts as told. When its node removes it, with no grace left, the time
// is that of the removal, and says nothing.
func endedBefore(pod *corev1.Pod) bool {
	grace := pod.DeletionGracePeriodSeconds
	if !HasEnded(pod) || len(pod.Status.ContainerStatuses) == 0 || grace == nil || *grace == 0 {
		return false
	}
	asked := pod.DeletionTimestamp.Add(-seconds(*grace))
	for i := range pod.Status.ContainerStatuses {
		ended := pod.Status.ContainerStatuses[i].State.Terminated
		if ended == nil || !ended.FinishedAt.Time.Before(asked) {
			return false
		}
	}
	return true
}

func phaseOf(pod *corev1.Pod) Phase {
	switch pod.Status.Phase {
	case corev1.PodRunning, corev1.PodSucceeded, corev1.PodFailed, corev1.PodUnknown:
		return Phase(pod.Status.Phase)
	}
	if pod.Spec.NodeName == "" {
		return Creating
	}
	return Pending
}

func isReady(pod *corev1.Pod) bool {
	c := condition(pod, corev1.PodReady)
	return c != nil && c.Status == corev1.ConditionTrue
}

func condition(pod *corev1.Pod, kind corev1.PodConditionType) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == kind {
			return c
		}
	}
	return nil
}

// UID is that of the pod of the present attempt, "" if there is none.
func (r *Replica) UID() types.UID {
	if r.Pod == nil || r.past() {
		return ""
	}
	return r.Pod.UID
}
