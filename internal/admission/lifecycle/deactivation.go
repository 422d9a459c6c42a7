package lifecycle

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/workload"
)

// deactivatedMessage is the message of the Evicted condition, followed by the cause if it is known.
const deactivatedMessage = "The workload is deactivated"

// markForDeactivation marks the Workload for deactivation. The spec needs a write of its own; until that the
// condition keeps the cause.
func (d *draft) markForDeactivation(cause, message string) {
	d.set(kueue.WorkloadDeactivationTarget, metav1.ConditionTrue, cause, message)
}

// deactivated evicts an inactive Workload, whether it is admitted or waits, and clears its backoff. One that is
// already being evicted for another reason is evicted for this one after its quota has been released; meanwhile the
// message of that eviction says that the Workload will not return to its queue.
func (d *draft) deactivated() {
	if d.w.Status.RequeueState != nil {
		d.edit().Status.RequeueState = nil
	}
	eviction := workload.Eviction{Reason: kueue.WorkloadDeactivated, Message: deactivatedMessage}
	target := workload.IfTrue(d.w, kueue.WorkloadDeactivationTarget)
	if target != nil {
		eviction.Cause = target.Reason
		eviction.Message += " due to " + target.Message
	}
	if evicted := workload.IfTrue(d.w, kueue.WorkloadEvicted); evicted != nil {
		stopping := workload.HoldsQuota(d.w)
		reported := workload.IsDeactivation(evicted.Reason) && target == nil && !workload.IsTrue(d.w, kueue.WorkloadRequeued)
		if stopping {
			d.announce(evicted, eviction.Message)
		}
		if stopping || reported {
			return
		}
	}
	w := d.edit()
	workload.Evict(w, eviction, d.now)
	meta.RemoveStatusCondition(&w.Status.Conditions, kueue.WorkloadDeactivationTarget)
	if !workload.HoldsQuota(w) {
		workload.GiveBack(w, d.now)
	}
}

// announce adds the deactivation to the message of an eviction for another reason that is under way.
func (d *draft) announce(evicted *metav1.Condition, deactivation string) {
	if workload.IsDeactivation(evicted.Reason) || strings.Contains(evicted.Message, deactivatedMessage) {
		return
	}
	tail := workload.Cut(workload.ForGood+deactivation, workload.ConditionMessageBytes/2)
	message := workload.Cut(evicted.Message, workload.ConditionMessageBytes-len(tail)) + tail
	workload.SetCondition(d.edit(), kueue.WorkloadEvicted, metav1.ConditionTrue, evicted.Reason, message, d.now)
}
