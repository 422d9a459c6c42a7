package lifecycle

import (
	"fmt"

	"k8s.io/utils/ptr"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/workload"
)

// queue is what a LocalQueue and a ClusterQueue have in common.
type queue struct {
	kind, name string
	// evicts is the reason of those whom the queue evicts when it is drained.
	evicts string
	gone   bool
	policy kueue.StopPolicy
}

func (d *draft) localQueue() queue {
	out := queue{kind: "LocalQueue", name: string(d.w.Spec.QueueName), evicts: kueue.WorkloadEvictedByLocalQueueStopped, gone: true}
	if q := d.facts.LocalQueue; q != nil {
		out.gone, out.policy = !q.DeletionTimestamp.IsZero(), ptr.Deref(q.Spec.StopPolicy, kueue.None)
	}
	return out
}

func (d *draft) clusterQueue() queue {
	out := queue{kind: "ClusterQueue", evicts: kueue.WorkloadEvictedByClusterQueueStopped, gone: true}
	if d.w.Status.Admission != nil {
		out.name = string(d.w.Status.Admission.ClusterQueue)
	}
	if q := d.facts.ClusterQueue; q != nil {
		out.gone, out.policy = !q.DeletionTimestamp.IsZero(), ptr.Deref(q.Spec.StopPolicy, kueue.None)
	}
	return out
}

func (q queue) open() bool {
	return !q.gone && q.policy != kueue.Hold && q.policy != kueue.HoldAndDrain
}

// stopped applies the stop policies of the queues. What runs is evicted by HoldAndDrain only. What waits for its checks
// has no pods: either policy takes its quota at once, and so does the end of the queue.
func (d *draft) stopped() bool {
	for _, q := range [...]queue{d.localQueue(), d.clusterQueue()} {
		if q.open() {
			continue
		}
		switch {
		case !workload.IsAdmitted(d.w) && q.gone:
			d.release(kueue.WorkloadInadmissible, fmt.Sprintf("%s %s is terminating or missing", q.kind, q.name))
			return true
		case !workload.IsAdmitted(d.w):
			d.release(kueue.WorkloadOnHold, fmt.Sprintf("%s %s is stopped", q.kind, q.name)) // in the words of the engine, which need no other write
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
