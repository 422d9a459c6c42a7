package lifecycle

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/workload"
)

// TerminatingMessage says that a ClusterQueue does not admit because it is being deleted.
const TerminatingMessage = "Can't admit new workloads; clusterQueue is terminating"

// queue is what LocalQueue and ClusterQueue have in common.
type queue struct {
	kind string
	// evicts is the reason of evictions when the queue is drained.
	evicts string
	policy kueue.StopPolicy
	// why and message are the reason and message for not admitting through the queue; "" if it admits.
	why, message string
}

func (d *draft) localQueue() queue {
	q := d.facts.LocalQueue
	if q == nil {
		return missing("LocalQueue", string(d.w.Spec.QueueName))
	}
	out := queue{kind: "LocalQueue", evicts: kueue.WorkloadEvictedByLocalQueueStopped}
	return out.as(q, q.Spec.StopPolicy, fmt.Sprintf("LocalQueue %s is being deleted", q.Name))
}

func (d *draft) clusterQueue() queue {
	q := d.facts.ClusterQueue
	if q == nil {
		name := ""
		if d.w.Status.Admission != nil {
			name = string(d.w.Status.Admission.ClusterQueue)
		}
		return missing("ClusterQueue", name)
	}
	policy := q.Spec.StopPolicy
	if workload.Closed(q) && ptr.Deref(policy, kueue.None) == kueue.None {
		policy = new(kueue.Hold)
	}
	out := queue{kind: "ClusterQueue", evicts: kueue.WorkloadEvictedByClusterQueueStopped}
	return out.as(q, policy, fmt.Sprintf("ClusterQueue %s is inactive: %s", q.Name, TerminatingMessage))
}

// missing returns a queue that does not exist. The messages here, for a Workload that loses its reservation, are
// worded like the engine's for one that waits, so that the engine does not write them again.
func missing(kind, name string) queue {
	return queue{kind: kind, why: kueue.WorkloadInadmissible, message: fmt.Sprintf("%s %s doesn't exist", kind, name)}
}

// as returns the queue with the state of the object. deleted is the message for an object that is being deleted.
func (q queue) as(object metav1.Object, policy *kueue.StopPolicy, deleted string) queue {
	q.policy = ptr.Deref(policy, kueue.None)
	switch {
	case object.GetDeletionTimestamp() != nil:
		q.why, q.message = kueue.WorkloadInadmissible, deleted
	case q.policy == kueue.Hold || q.policy == kueue.HoldAndDrain:
		q.why, q.message = kueue.WorkloadOnHold, workload.StoppedMessage(q.kind, object.GetName())
	}
	return q
}

func (q queue) open() bool { return q.why == "" }

// stopped applies the stop policies of the queues, and reports whether they stop the Workload. Only HoldAndDrain
// evicts what runs. A Workload that waits for its checks has no pods: both policies, and the deletion of the queue,
// release its quota.
func (d *draft) stopped() bool {
	for _, q := range [...]queue{d.localQueue(), d.clusterQueue()} {
		switch {
		case q.open():
		case !workload.IsAdmitted(d.w):
			d.release(q.why, q.message)
			return true
		case q.policy == kueue.HoldAndDrain:
			workload.Evict(d.edit(), workload.Eviction{Reason: q.evicts, Message: fmt.Sprintf("The %s is stopped", q.kind)}, d.now)
			return true
		}
	}
	return false
}

// release drops a quota reservation that did not become an admission.
func (d *draft) release(reason, message string) {
	workload.ResetChecks(d.edit(), d.now)
	workload.Release(d.w, reason, message, d.now)
}

// restarted requeues a Workload that was evicted when the queue was stopped, once the queue admits again.
func (d *draft) restarted(q queue) {
	if q.open() {
		workload.Restart(d.edit(), d.now)
	}
}
