package workload

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
)

// Backoff returns how long to wait before an attempt: base before attempt 1, doubled for each further one, at most
// limit.
func Backoff(count int32, base, limit time.Duration) time.Duration {
	wait := base
	for n := int32(1); n < count; n++ {
		if wait > limit/2 {
			return limit // doubling could overflow
		}
		wait *= 2
	}
	return min(wait, limit)
}

// Postpone keeps the Workload out of its queue until the given time. It never moves an earlier Postpone forward.
func Postpone(w *kueue.Workload, until time.Time) {
	if w.Status.RequeueState == nil {
		w.Status.RequeueState = &kueue.RequeueState{}
	}
	stands := w.Status.RequeueState.RequeueAt
	if at := metav1.NewTime(until).Rfc3339Copy(); stands == nil || stands.Before(&at) {
		w.Status.RequeueState.RequeueAt = &at
	}
}
