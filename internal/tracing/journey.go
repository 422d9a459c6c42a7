package tracing

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/workload"
)

// Steps of a job's way. Together they reach from its place in the queue to its first ready pod; those of pods may overlap.
const (
	stepQueued    = "queued"          // until it was given quota
	stepAdmission = "admission"       // until its admission checks let it start
	stepStart     = "start"           // until its first pod was made
	stepPods      = "create pods"     // until the last of them was made
	stepSchedule  = "schedule"        // until the pod that was ready first had its node
	stepReady     = "first pod ready" // until that pod was ready
)

// exactWithin is how soon after it happened something must be seen, so that the time when it was seen is the better one: the
// API keeps whole seconds.
const exactWithin = 2 * time.Second

// instant is when something happened: as the API keeps it, and as exactly as it is known here.
type instant struct{ kept, exact time.Time }

func (i *instant) set(kept, now time.Time) {
	if i.kept.Equal(kept) {
		return
	}
	i.kept, i.exact = kept, kept
	if ago := now.Sub(kept); ago >= 0 && ago < exactWithin {
		i.exact = now
	}
}

func (i *instant) known() bool { return !i.kept.IsZero() }

// identity is the job whose trace it is.
type identity struct {
	kind, namespace, name string
	uid                   types.UID
	created               time.Time
}

// journey is how far a job has come.
type journey struct {
	job      identity
	workload types.NamespacedName
	queue    string

	attempt attempt
	// over says that all of its trace was told, or never will be.
	over bool
}

// attempt is one way from the queue to a ready pod: an eviction begins another.
type attempt struct {
	since, reserved, admitted instant
	clusterQueue              string
	pods                      crew
	told                      map[string]bool
}

// crew is what is known of an attempt's pods.
type crew struct {
	wanted, made int
	first, last  instant
	complete     bool

	// name is that of the pod that was ready first.
	name          string
	placed, ready instant
}

// step is a part of the way that is over.
type step struct {
	name     string
	from, to time.Time
}

// sees takes in the Workload as it is now.
func (j *journey) sees(w *kueue.Workload, now time.Time) {
	a := &j.attempt
	if a.reserved.known() && (w.Status.Admission == nil || !a.reserved.kept.Equal(workload.TrueSince(w, kueue.WorkloadQuotaReserved))) {
		*a = attempt{}
	}
	j.queue = string(w.Spec.QueueName)
	if a.told == nil {
		a.told = map[string]bool{}
	}
	a.since.set(backInQueue(w), now)
	if w.Status.Admission == nil {
		return
	}
	a.clusterQueue = string(w.Status.Admission.ClusterQueue)
	a.pods.wanted = podsOf(w)
	if at := workload.TrueSince(w, kueue.WorkloadQuotaReserved); !at.IsZero() {
		a.reserved.set(at, now)
	}
	if at := workload.TrueSince(w, kueue.WorkloadAdmitted); !at.IsZero() {
		a.admitted.set(at, now)
	}
	// Pods that this operator does not know for the job's: their controller tells of them.
	if at := workload.TrueSince(w, kueue.WorkloadPodsReady); !at.IsZero() && !a.pods.ready.known() {
		a.pods.ready.set(at, now)
	}
}

// seesPod takes in a pod of the job as it is now. fresh says that it was not seen before.
func (j *journey) seesPod(pod *corev1.Pod, fresh bool, now time.Time) {
	a := &j.attempt
	created := pod.CreationTimestamp.Time
	if !a.admitted.known() || created.Before(a.admitted.kept) { // of an attempt before
		return
	}
	if fresh && !a.pods.complete {
		a.pods.made++
		if !a.pods.first.known() {
			a.pods.first.set(created, now)
		}
		a.pods.last = instant{} // many are made within a second
		a.pods.last.set(created, now)
		a.pods.complete = a.pods.wanted > 0 && a.pods.made >= a.pods.wanted
	}
	if at := podTrueSince(pod, corev1.PodReady); !at.IsZero() && !a.pods.ready.known() {
		a.pods.name = pod.Name
		a.pods.placed = notBefore(a.pods.first, podTrueSince(pod, corev1.PodScheduled))
		a.pods.ready.set(at, now)
	}
}

// notBefore is the time of which nobody has seen more than the API keeps, after what went before it.
func notBefore(earlier instant, at time.Time) instant {
	out := instant{at, at}
	if out.known() && at.Before(earlier.exact) {
		out.exact = earlier.exact
	}
	return out
}

// losesPod takes in that a pod is gone: another is made in its place.
func (j *journey) losesPod(pod *corev1.Pod) {
	if a := &j.attempt; a.admitted.known() && !pod.CreationTimestamp.Time.Before(a.admitted.kept) && !a.pods.complete && a.pods.made > 0 {
		a.pods.made--
	}
}

// steps are those that are over, in their order.
func (a *attempt) steps() []step {
	var out []step
	add := func(name string, from, to instant) {
		if from.known() && to.known() {
			end := to.exact
			if end.Before(from.exact) { // who sees them first differs
				end = from.exact
			}
			out = append(out, step{name, from.exact, end})
		}
	}
	add(stepQueued, a.since, a.reserved)
	add(stepAdmission, a.reserved, a.admitted)
	add(stepStart, a.admitted, a.pods.first)
	if a.pods.complete {
		add(stepPods, a.pods.first, a.pods.last)
	}
	switch {
	case a.pods.placed.known():
		add(stepSchedule, a.pods.first, a.pods.placed)
		add(stepReady, a.pods.placed, a.pods.ready)
	case a.pods.first.known():
		add(stepReady, a.pods.first, a.pods.ready)
	default:
		add(stepReady, a.admitted, a.pods.ready)
	}
	return out
}

// began is when the way began: with the job, or where that is about the same with its Workload, of which it is known better.
func (j *journey) began() time.Time {
	if since := j.attempt.since.exact; !j.job.created.IsZero() && (since.IsZero() || since.Sub(j.job.created) >= exactWithin || since.Before(j.job.created)) {
		return j.job.created
	}
	return j.attempt.since.exact
}

// backInQueue is since when a Workload waits: since it was last sent back to its queue, or since it is there.
func backInQueue(w *kueue.Workload) time.Time {
	if at := workload.TrueSince(w, kueue.WorkloadRequeued); !at.IsZero() {
		return at
	}
	return w.CreationTimestamp.Time
}

// podTrueSince is since when the condition is True, or when it ceased to be where the pod has ended.
func podTrueSince(pod *corev1.Pod, kind corev1.PodConditionType) time.Time {
	for _, c := range pod.Status.Conditions {
		ended := pod.Status.Phase == corev1.PodSucceeded && c.Reason == "PodCompleted"
		if c.Type == kind && (c.Status == corev1.ConditionTrue || ended) {
			return c.LastTransitionTime.Time
		}
	}
	return time.Time{}
}

// podsOf is how many pods the admission is for.
func podsOf(w *kueue.Workload) (count int) {
	asked := map[kueue.PodSetReference]int32{}
	for _, podSet := range w.Spec.PodSets {
		asked[podSet.Name] = podSet.Count
	}
	for _, given := range w.Status.Admission.PodSetAssignments {
		if given.Count != nil {
			count += int(*given.Count)
		} else {
			count += int(asked[given.Name])
		}
	}
	return count
}

// outcome is how a job ended that had no ready pod; failed says that it is a mistake of some kind.
func outcome(w *kueue.Workload) (message string, at time.Time, failed, ended bool) {
	if !workload.IsFinished(w) {
		return "", time.Time{}, false, false
	}
	c := meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadFinished)
	return c.Message, c.LastTransitionTime.Time, c.Reason != kueue.WorkloadFinishedReasonSucceeded, true
}
