package replicas

import (
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/pointers"
)

// Group is a set of replicas made from the same template.
type Group struct {
	Name  string
	Count int32
	// Indices are the replicas' indices, ascending, as KeepIndices returns them; nil for 0 to Count-1.
	Indices []int32
	Restart Restart
}

// index returns the index of the n-th replica.
func (g *Group) index(n int32) int32 {
	if g.Indices == nil {
		return n
	}
	return g.Indices[n]
}

// Restart says when a replica restarts after its pod has finished, and how often. The zero value is never.
type Restart struct {
	OnFailure, OnSuccess bool
	// Retry reports whether OnFailure applies to a failed pod; nil if it applies to all.
	Retry func(*corev1.Pod) bool
	// Limit is the maximum number of restarts of each replica.
	Limit int32
}

// appliesTo reports whether the policy restarts the replica in its phase.
func (re Restart) appliesTo(r *Replica) bool {
	switch r.Phase {
	case Failed:
		return re.OnFailure && (re.Retry == nil || r.Pod != nil && re.Retry(r.Pod))
	case Succeeded:
		return re.OnSuccess
	}
	return false
}

// Phase is a replica's phase: that of its pod, or Creating.
type Phase string

const (
	// Creating replicas have no pod in their current attempt yet, or one without a node.
	Creating Phase = "Creating"
	// Pending replicas have a pod with a node that does not run yet.
	Pending = Phase(corev1.PodPending)
	// Running replicas have a running pod.
	Running = Phase(corev1.PodRunning)
	// Succeeded replicas have a pod whose containers have all succeeded.
	Succeeded = Phase(corev1.PodSucceeded)
	// Failed replicas have a pod that has failed.
	Failed = Phase(corev1.PodFailed)
	// Unknown replicas have a pod whose node is unreachable.
	Unknown = Phase(corev1.PodUnknown)
)

// Finished reports whether the replica's pod has succeeded or failed.
func (p Phase) Finished() bool { return p == Succeeded || p == Failed }

// In returns a test for replicas in one of the phases.
func In(phases ...Phase) func(*Replica) bool {
	return func(r *Replica) bool { return slices.Contains(phases, r.Phase) }
}

// Record is what the job's status records of a replica, as its pods may be gone.
type Record struct {
	// Restarts is how often the replica was restarted.
	Restarts int32
	// Settled is how often it had been restarted when one of its pods last ran for long.
	Settled int32
	// Phase is Succeeded or Failed if the pod of the current attempt was observed to have finished; any other value
	// means that it was not.
	Phase Phase
}

// Replica is one pod that a job is to have, and its state.
type Replica struct {
	// Group is the name of its group; Index is its number there, from 0.
	Group string
	Index int32
	// Name is the name of the replica and of its pod.
	Name string
	// Pod is the pod of that name; nil if there is none. It may be outdated.
	Pod *corev1.Pod
	// Restarts is how often the replica was restarted.
	Restarts int32
	// Settled is how often it had been restarted when one of its pods last ran for long: the restarts since then are
	// delayed.
	Settled int32
	// Phase is the phase of the current attempt.
	Phase Phase
	// NeedsRestart reports that the replica has finished and is to be restarted, now or after a delay.
	NeedsRestart bool
	// Ready reports that the pod of the current attempt is ready.
	Ready bool
}

// Final reports whether the replica has finished and does not restart.
func (r *Replica) Final() bool { return r.Phase.Finished() && !r.NeedsRestart }

// outdated reports whether the pod is of an earlier attempt.
func (r *Replica) outdated() bool { return r.Pod != nil && attemptOf(r.Pod, r.Restarts) < r.Restarts }

// Name returns the name of a replica and of its pod.
func Name(job, group string, index int32) string {
	return job + "-" + group + "-" + strconv.Itoa(int(index))
}

// IndexOf returns the index of the group's replica with the name; false if the name is not one of the group's.
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

// observe returns the replica with its state, computed from its record and its pod.
func observe(r Replica, record Record, policy Restart) Replica {
	r.Restarts, r.Settled = record.Restarts, record.Settled
	if r.Pod != nil && attemptOf(r.Pod, r.Restarts) > r.Restarts { // the status or the annotation was edited: the pod wins
		record = Record{}
		r.Restarts, r.Settled = attemptOf(r.Pod, 0), 0
	}
	r.Phase = Creating
	switch {
	case r.outdated():
	case r.Pod != nil && (IsTerminating(r.Pod) && !finishedBeforeDeletion(r.Pod)):
		if r.Phase = phaseOf(r.Pod); r.Phase.Finished() {
			r.Phase = Creating // the deletion ended it, so its exit says nothing
		}
		if record.Phase.Finished() {
			r.Phase = record.Phase
		}
	case r.Pod != nil:
		r.Phase, r.Ready = phaseOf(r.Pod), isReady(r.Pod)
	case record.Phase.Finished():
		r.Phase = record.Phase
	}
	r.NeedsRestart = r.Restarts < policy.Limit && policy.appliesTo(&r)
	return r
}

// attemptOf returns how often the replica had been restarted when the pod was created. A pod without a valid annotation
// was edited, and counts as one of the current attempt.
func attemptOf(pod *corev1.Pod, current int32) int32 {
	n, err := strconv.ParseInt(pod.Annotations[muster.RestartsAnnotation], 10, 32)
	if err != nil || n < 0 {
		return current
	}
	return int32(n)
}

// IsTerminating reports whether the pod has been deleted and still exists.
func IsTerminating(pod *corev1.Pod) bool { return !pod.DeletionTimestamp.IsZero() }

// IsFinished reports whether the pod has succeeded or failed.
func IsFinished(pod *corev1.Pod) bool { return Phase(pod.Status.Phase).Finished() }

// IsLive reports whether the pod has neither finished nor been deleted.
func IsLive(pod *corev1.Pod) bool { return !IsFinished(pod) && !IsTerminating(pod) }

// finishedBeforeDeletion reports whether the pod had finished when it was deleted; the exit of a pod that finishes
// because of its deletion says nothing about its work. Times have a resolution of seconds: a pod that finished within
// the second of its deletion counts as ended by it. If the grace period is 0, the kubelet has set the deletion time
// again on removal, and it cannot be compared.
func finishedBeforeDeletion(pod *corev1.Pod) bool {
	grace := pod.DeletionGracePeriodSeconds
	if !IsFinished(pod) || len(pod.Status.ContainerStatuses) == 0 || grace == nil || *grace == 0 {
		return false
	}
	deletedAt := pod.DeletionTimestamp.Add(-time.Duration(*grace) * time.Second)
	for container := range pointers.To(pod.Status.ContainerStatuses) {
		terminated := container.State.Terminated
		if terminated == nil || !terminated.FinishedAt.Time.Before(deletedAt) {
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
	c := Condition(pod, corev1.PodReady)
	return c != nil && c.Status == corev1.ConditionTrue
}

// Condition returns the condition of the pod, nil if the pod has none of the kind.
func Condition(pod *corev1.Pod, kind corev1.PodConditionType) *corev1.PodCondition {
	return pointers.First(pod.Status.Conditions, func(c *corev1.PodCondition) bool { return c.Type == kind })
}

// UID returns the UID of the current attempt's pod, "" if there is none.
func (r *Replica) UID() types.UID {
	if r.Pod == nil || r.outdated() {
		return ""
	}
	return r.Pod.UID
}
