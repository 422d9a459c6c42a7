package waiting

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Retries is the rate limiter of a controller whose plans may be due before the backoff after an error is over.
// controller-runtime drops the time at which a reconcile wants to be repeated if that reconcile returns an error. The
// zero value is not usable; a nil value records nothing.
type Retries struct {
	workqueue.TypedRateLimiter[reconcile.Request]
	// refused has the backoffs of requests whose writes were refused.
	refused workqueue.TypedRateLimiter[reconcile.Request]
	clock   clock.PassiveClock
	mu      sync.Mutex
	due     map[reconcile.Request]time.Time
}

// NewRetries returns the rate limiter of one controller, by this clock.
func NewRetries(clock clock.PassiveClock) *Retries {
	backoff := func() workqueue.TypedRateLimiter[reconcile.Request] {
		return workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](5*time.Millisecond, LongestRetry)
	}
	return &Retries{TypedRateLimiter: backoff(), refused: backoff(), clock: clock, due: map[reconcile.Request]time.Time{}}
}

// AfterRefusal returns after how long to reconcile a job again of which a write was refused, longer each time. It is
// for reconciles without an error: an error of the operator's would be logged, and counted, for what a user has to
// resolve.
func (r *Retries) AfterRefusal(job client.Object) time.Duration {
	if r == nil {
		return LongestRetry
	}
	return r.refused.When(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(job)})
}

// Accepted ends the backoff after refusals of the job's writes.
func (r *Retries) Accepted(job types.NamespacedName) {
	if r != nil {
		r.refused.Forget(reconcile.Request{NamespacedName: job})
	}
}

// RetryBy makes the next retry of the job happen no later than due. A time that is zero or has passed changes nothing:
// what was due then has just failed.
func (r *Retries) RetryBy(job client.Object, due time.Time) {
	if r == nil || !due.After(r.clock.Now()) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.due[reconcile.Request{NamespacedName: client.ObjectKeyFromObject(job)}] = due
}

// When returns after how long the request is retried: its backoff, or less if its plan is due before.
func (r *Retries) When(request reconcile.Request) time.Duration {
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
func (r *Retries) Forget(request reconcile.Request) {
	r.TypedRateLimiter.Forget(request)
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.due, request)
}

const (
	// LongestRetry caps the backoff after errors, so that a problem that users fix is noticed soon.
	LongestRetry = time.Minute
)
