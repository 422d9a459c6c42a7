package workload

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
)

// Backoff is how long to wait before the count-th try, the first being 1: base, doubled each time, and at most limit.
func Backoff(count int32, base, limit time.Duration) time.Duration {
	wait := base
	for n := int32(1); n < count; n++ {
		if wait > limit/2 {
			return limit // and no overflow
		}
		wait *= 2
	}
	return min(wait, limit)
}

// Postpone keeps the Workload from its queue until the time given. A time that stands already only moves later.
func Postpone(w *kueue.Workload, until time.Time) {
	if w.Status.RequeueState == nil {
		w.Status.RequeueState = &kueue.RequeueState{}
	}
	stands := w.Status.RequeueState.RequeueAt
	if at := metav1.NewTime(until).Rfc3339Copy(); stands == nil || stands.Before(&at) {
		w.Status.RequeueState.RequeueAt = &at
	}
}
