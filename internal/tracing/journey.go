package tracing

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/workload"
)

// Steps of a job. They cover the time from its queueing to its first ready pod; the steps of its pods may overlap.
const (
	stepQueued    = "queued"          // until it got quota
	stepAdmission = "admission"       // until its admission checks were ready
	stepStart     = "start"           // until its first pod was created
	stepPods      = "create pods"     // until its last pod was created
	stepSchedule  = "schedule"        // until the pod that was ready first was scheduled
	stepReady     = "first pod ready" // until that pod was ready
)

// exactWithin: if something is observed within this time after it happened, the time of the observation is used,
// because the API's timestamps have whole seconds only.
const exactWithin = 2 * time.Second

// instant is when something happened: by the API's timestamp, and by the best approximation of the time.
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

// identity identifies the job of a trace.
type identity struct {
	kind, namespace, name string
	uid                   types.UID
	created               time.Time
}

// journey is the state of a job's trace.
type journey struct {
	job      identity
	workload types.NamespacedName
	queue    string

	attempt attempt
	// done is set once the whole trace was exported, or never will be.
	done bool
}

// attempt is the state of one attempt from the queue to a ready pod: an eviction starts another.
type attempt struct {
	since, reserved, admitted instant
	clusterQueue              string
	pods                      podProgress
	exported                  map[string]bool
}

// podProgress is the state of an attempt's pods.
type podProgress struct {
	wanted, made int
	first, last  instant
	complete     bool

	// name is the name of the pod that was ready first.
	name          string
	placed, ready instant
}

// step is a completed step.
type step struct {
	name     string
	from, to time.Time
}

// observeWorkload updates the journey with the current state of the Workload.
func (j *journey) observeWorkload(w *kueue.Workload, now time.Time) {
	a := &j.attempt
	if a.reserved.known() && (w.Status.Admission == nil ||
		!a.reserved.kept.Equal(workload.TrueSince(w, kueue.WorkloadQuotaReserved))) {
		*a = attempt{}
	}
	j.queue = string(w.Spec.QueueName)
	if a.exported == nil {
		a.exported = map[string]bool{}
	}
	a.since.set(workload.QueuedSince(w), now)
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
	// The pods may not be known here as the job's; their controller reports readiness in the condition.
	if at := workload.TrueSince(w, kueue.WorkloadPodsReady); !at.IsZero() && !a.pods.ready.known() {
		a.pods.ready.set(at, now)
	}
}

// observePod updates the journey with the current state of a pod. fresh is set for a pod that was just added.
func (j *journey) observePod(pod *corev1.Pod, fresh bool, now time.Time) {
	a := &j.attempt
	created := pod.CreationTimestamp.Time
	if !a.admitted.known() || created.Before(a.admitted.kept) { // the pod is of an earlier attempt
		return
	}
	if fresh && !a.pods.complete {
		a.pods.made++
		if !a.pods.first.known() {
			a.pods.first.set(created, now)
		}
		a.pods.last = instant{} // so that set takes a pod created in the same second as well
		a.pods.last.set(created, now)
		a.pods.complete = a.pods.wanted > 0 && a.pods.made >= a.pods.wanted
	}
	if at := podTrueSince(pod, corev1.PodReady); !at.IsZero() && !a.pods.ready.known() {
		a.pods.name = pod.Name
		a.pods.placed = notBefore(a.pods.first, podTrueSince(pod, corev1.PodScheduled))
		a.pods.ready.set(at, now)
	}
}

// notBefore returns an instant of which only the API's timestamp is known, moved to not before an earlier one.
func notBefore(earlier instant, at time.Time) instant {
	out := instant{at, at}
	if out.known() && at.Before(earlier.exact) {
		out.exact = earlier.exact
	}
	return out
}

// forgetPod updates the journey after the deletion of a pod, which will be replaced.
func (j *journey) forgetPod(pod *corev1.Pod) {
	if a := &j.attempt; a.admitted.known() && !pod.CreationTimestamp.Time.Before(a.admitted.kept) && !a.pods.complete &&
		a.pods.made > 0 {
		a.pods.made--
	}
}

// steps returns the completed steps, in order.
func (a *attempt) steps() []step {
	var out []step
	add := func(name string, from, to instant) {
		if from.known() && to.known() {
			end := to.exact
			if end.Before(from.exact) { // the two may have been observed in the other order
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

// began returns when the journey began: with the job, or with its Workload if that was created at about the same
// time, since the latter's time is known more exactly.
func (j *journey) began() time.Time {
	if since := j.attempt.since.exact; !j.job.created.IsZero() &&
		(since.IsZero() || since.Sub(j.job.created) >= exactWithin || since.Before(j.job.created)) {
		return j.job.created
	}
	return j.attempt.since.exact
}

// podTrueSince returns since when the condition is True, or since when it is False because the pod has completed.
func podTrueSince(pod *corev1.Pod, kind corev1.PodConditionType) time.Time {
	for _, c := range pod.Status.Conditions {
		ended := pod.Status.Phase == corev1.PodSucceeded && c.Reason == "PodCompleted"
		if c.Type == kind && (c.Status == corev1.ConditionTrue || ended) {
			return c.LastTransitionTime.Time
		}
	}
	return time.Time{}
}

// podsOf returns the number of admitted pods.
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

// outcome returns how a job ended, for one without a ready pod; failed says whether it did not succeed.
func outcome(w *kueue.Workload) (message string, at time.Time, failed, ended bool) {
	if !workload.IsFinished(w) {
		return "", time.Time{}, false, false
	}
	c := meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadFinished)
	return c.Message, c.LastTransitionTime.Time, c.Reason != kueue.WorkloadFinishedReasonSucceeded, true
}
