package jobs

import (
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// retries is the rate limiter of a controller whose plans may be due before the backoff after an error is over.
// controller-runtime drops the time at which a reconcile wants to be repeated if that reconcile returns an error. The
// zero value is not usable; a nil value records nothing.
type retries struct {
	workqueue.TypedRateLimiter[reconcile.Request]
	clock clock.PassiveClock
	mu    sync.Mutex
	due   map[reconcile.Request]time.Time
}

// newRetries returns the rate limiter of one controller, by this clock.
func newRetries(clock clock.PassiveClock) *retries {
	return &retries{
		TypedRateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](5*time.Millisecond, longestRetry),
		clock:            clock, due: map[reconcile.Request]time.Time{},
	}
}

// retryBy makes the next retry of the job happen no later than due. A time that is zero or has passed changes nothing:
// what was due then has just failed.
func (r *retries) retryBy(job client.Object, due time.Time) {
	if r == nil || !due.After(r.clock.Now()) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.due[reconcile.Request{NamespacedName: client.ObjectKeyFromObject(job)}] = due
}

// When returns after how long the request is retried: its backoff, or less if its plan is due before.
func (r *retries) When(request reconcile.Request) time.Duration {
	backoff := r.TypedRateLimiter.When(request)
	r.mu.Lock()
	defer r.mu.Unlock()
	if due, ok := r.due[request]; ok {
		delete(r.due, request)
		return min(backoff, max(due.Sub(r.clock.Now()), 0))
	}
	return backoff
}

// Forget ends the backoff of the request, after a reconcile without an error.
func (r *retries) Forget(request reconcile.Request) {
	r.TypedRateLimiter.Forget(request)
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.due, request)
}
