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

// unnamedMessage is the message of a Workload that no job owns and that names no LocalQueue.
const unnamedMessage = "the Workload names no LocalQueue: set its spec.queueName"

// queue is what LocalQueue and ClusterQueue have in common.
type queue struct {
	kind string
	// evictionReason is the reason of evictions when the queue is drained.
	evictionReason string
	policy         kueue.StopPolicy
	// reason and message are the reason and message for not admitting through the queue; "" if it admits.
	reason, message string
}

func (d *draft) localQueue() queue {
	q := d.facts.LocalQueue
	switch {
	case d.w.Spec.QueueName == "":
		return queue{kind: "LocalQueue", reason: kueue.WorkloadInadmissible, message: unnamedMessage}
	case q == nil:
		return missing("LocalQueue", string(d.w.Spec.QueueName))
	}
	out := queue{kind: "LocalQueue", evictionReason: kueue.WorkloadEvictedByLocalQueueStopped}
	return out.withStateOf(q, q.Spec.StopPolicy, fmt.Sprintf("LocalQueue %s is being deleted", q.Name))
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
	out := queue{kind: "ClusterQueue", evictionReason: kueue.WorkloadEvictedByClusterQueueStopped}
	return out.withStateOf(q, policy, fmt.Sprintf("ClusterQueue %s is inactive: %s", q.Name, TerminatingMessage))
}

// missing returns a queue that does not exist. The messages here, for a Workload that loses its reservation, are
// worded like the engine's for one that waits, so that the engine does not write them again.
func missing(kind, name string) queue {
	return queue{kind: kind, reason: kueue.WorkloadInadmissible, message: fmt.Sprintf("%s %s doesn't exist", kind, name)}
}

// withStateOf returns the queue with the state of the object. deleted is the message for an object that is being
// deleted.
func (q queue) withStateOf(object metav1.Object, policy *kueue.StopPolicy, deleted string) queue {
	q.policy = ptr.Deref(policy, kueue.None)
	switch {
	case object.GetDeletionTimestamp() != nil:
		q.reason, q.message = kueue.WorkloadInadmissible, deleted
	case q.policy == kueue.Hold || q.policy == kueue.HoldAndDrain:
		q.reason, q.message = kueue.WorkloadOnHold, workload.StoppedMessage(q.kind, object.GetName())
	}
	return q
}

func (q queue) open() bool { return q.reason == "" }

// stopped applies the stop policies of the queues, and reports whether they stop the Workload. Only HoldAndDrain
// evicts what runs. A Workload that waits for its checks has no pods: both policies, and the deletion of the queue,
// release its quota.
func (d *draft) stopped() bool {
	for _, q := range [...]queue{d.localQueue(), d.clusterQueue()} {
		switch {
		case q.open():
		case !workload.IsAdmitted(d.w):
			d.release(q.reason, q.message)
			return true
		case q.policy == kueue.HoldAndDrain:
			workload.Evict(d.edit(), workload.Eviction{Reason: q.evictionReason,
				Message: fmt.Sprintf("The %s is stopped", q.kind)}, d.now)
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

// resumeWhenOpen requeues a Workload that was evicted when the queue was stopped, once the queue admits again.
func (d *draft) resumeWhenOpen(q queue) {
	if q.open() {
		workload.ResumeQueueing(d.edit(), d.now)
	}
}
