package workloads

import (
	"math"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/workload"
)

// refusedCause is the cause under which the eviction of a job whose pods are refused is counted.
const refusedCause = "PodsRefused"

// Backoff is how long a job whose pods were refused waits before it is tried again.
type Backoff struct {
	// Base is the first wait; it is doubled each time up to Max.
	Base, Max time.Duration
	// Limit is the number of retries after which the Workload is deactivated. Nil means no limit.
	Limit *int32
}

// release evicts the Workload of a job whose pods, or other objects, are refused, for this reason: a part of a gang is
// of no use, and other jobs can use the quota in the meantime.
func release(w *kueue.Workload, message string, backoff Backoff, now time.Time) {
	var tries int32
	if state := w.Status.RequeueState; state != nil {
		tries = ptr.Deref(state.Count, 0)
	}
	if tries < math.MaxInt32 {
		tries++
	}
	workload.Evict(w, workload.Eviction{Reason: kueue.WorkloadEvictedByPodsReadyTimeout, Cause: refusedCause,
		Message: message}, now)
	if backoff.Limit != nil && tries > *backoff.Limit {
		workload.SetCondition(w, kueue.WorkloadDeactivationTarget, metav1.ConditionTrue,
			kueue.WorkloadRequeuingLimitExceeded, message, now)
		return
	}
	workload.Postpone(w, now.Add(workload.Backoff(tries, backoff.Base, backoff.Max)))
	w.Status.RequeueState.Count = ptr.To(tries)
}
