package lifecycle

import (
	"fmt"
	"math"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/workload"
)

// Messages of the DeactivationTarget condition.
const (
	requeuingLimitMessage = "exceeding the maximum number of re-queuing retries"
	executionTimeMessage  = "exceeding the maximum execution time of "
)

// unready evicts a Workload whose pods are not ready in time, or deactivates it after too many attempts, and reports
// whether it did.
func (d *draft) unready() bool {
	policy := d.policy.PodsReady
	admitted := meta.FindStatusCondition(d.w.Status.Conditions, kueue.WorkloadAdmitted)
	if policy == nil || admitted == nil || admitted.Status != metav1.ConditionTrue {
		return false
	}
	ready := meta.FindStatusCondition(d.w.Status.Conditions, kueue.WorkloadPodsReady)
	cause, deadline, missing := kueue.WorkloadWaitForStart, admitted.LastTransitionTime.Add(policy.Timeout), ""
	switch {
	case !workload.ReportsReadiness(d.w):
		return false
	case ready == nil:
	case ready.Status == metav1.ConditionTrue:
		return false
	case ready.Reason == kueue.WorkloadWaitForRecovery:
		cause, deadline = kueue.WorkloadWaitForRecovery, ready.LastTransitionTime.Add(policy.RecoveryTimeout)
	case ready.LastTransitionTime.After(admitted.LastTransitionTime.Time):
		// A later stage of the job has begun since, and its pods have the full time.
		deadline, missing = ready.LastTransitionTime.Add(policy.Timeout), ": "+ready.Message
	}
	if !d.reached(deadline) {
		return false
	}
	d.requeueUnready(cause, missing)
	return true
}

// requeueUnready requeues a Workload whose pods were not ready, with a growing backoff, or deactivates it at the limit.
// missing, which may be empty, ends the message.
func (d *draft) requeueUnready(cause, missing string) {
	policy := d.policy.PodsReady
	var tries int32
	if state := d.w.Status.RequeueState; state != nil {
		tries = ptr.Deref(state.Count, 0)
	}
	if tries < math.MaxInt32 {
		tries++
	}
	if policy.BackoffLimit != nil && tries > *policy.BackoffLimit {
		d.markForDeactivation(kueue.WorkloadRequeuingLimitExceeded, d.withProblem(requeuingLimitMessage))
		return
	}
	w := d.edit()
	workload.Evict(w, workload.Eviction{
		Reason: kueue.WorkloadEvictedByPodsReadyTimeout, Cause: cause,
		Message: d.withProblem(fmt.Sprintf("Exceeded the PodsReady timeout %s/%s%s", w.Namespace, w.Name, missing)),
	}, d.now)
	workload.Postpone(w, d.now.Add(workload.Backoff(tries, policy.BackoffBase, d.policy.BackoffMax)))
	w.Status.RequeueState.Count = ptr.To(tries)
}

// withProblem appends to the message what kept the pods from being ready, if that is known.
func (d *draft) withProblem(message string) string {
	if d.facts.PodsProblem == "" {
		return message
	}
	return message + ": " + d.facts.PodsProblem
}

// GivesUpPods reports whether the step takes the quota from the Workload, or marks it for that, since its pods were not
// ready in time.
func GivesUpPods(w *kueue.Workload, step Step) bool {
	if step.Status == nil || workload.IsEvicted(w) || workload.IsTrue(w, kueue.WorkloadDeactivationTarget) {
		return false
	}
	evicted := workload.IfTrue(step.Status, kueue.WorkloadEvicted)
	target := workload.IfTrue(step.Status, kueue.WorkloadDeactivationTarget)
	return evicted != nil && evicted.Reason == kueue.WorkloadEvictedByPodsReadyTimeout ||
		target != nil && target.Reason == kueue.WorkloadRequeuingLimitExceeded
}
