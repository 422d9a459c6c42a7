package lifecycle

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/workload"
)

// TerminatingMessage says that a ClusterQueue admits nobody since it is being deleted.
const TerminatingMessage = "Can't admit new workloads; clusterQueue is terminating"

// queue is what a LocalQueue and a ClusterQueue have in common.
type queue struct {
	kind string
	// evicts is the reason of those whom the queue evicts when it is drained.
	evicts string
	policy kueue.StopPolicy
	// why, unless it is empty, is the reason for which nobody is admitted through the queue, with the message.
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

// missing is a queue that is not there. What a Workload that loses its reservation is told, here and of the others, are the words of the
// engine, which tells the same of one that waits: else there would be another write to say it again.
func missing(kind, name string) queue {
	return queue{kind: kind, why: kueue.WorkloadInadmissible, message: fmt.Sprintf("%s %s doesn't exist", kind, name)}
}

// as is the queue of the object, with what is told once that is being deleted.
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

// stopped applies the stop policies of the queues. What runs is evicted by HoldAndDrain only. What waits for its checks
// has no pods: either policy takes its quota at once, and so does the end of the queue.
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

// release takes back a reservation that has not become an admission.
func (d *draft) release(reason, message string) {
	workload.ResetChecks(d.edit(), d.now)
	workload.Release(d.w, reason, message, d.now)
}

// restarted lets a Workload back into its queue that was evicted when the queue was stopped.
func (d *draft) restarted(q queue) {
	if q.open() {
		workload.Restart(d.edit(), d.now)
	}
}
