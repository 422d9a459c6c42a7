package watching

import (
	"context"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Queue is a controller's workqueue.
type Queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// BatchRequests delays what the handler enqueues, so that one reconcile handles all events of that time, whatever the
// number of children. The first event determines when.
func BatchRequests(of handler.EventHandler, wait time.Duration) handler.EventHandler {
	if wait == 0 {
		return of
	}
	return batcher{of, wait}
}

// batcher passes events on with a queue that delays what is added.
type batcher struct {
	of   handler.EventHandler
	wait time.Duration
}

// Create passes the event on.
func (b batcher) Create(ctx context.Context, e event.CreateEvent, q Queue) {
	b.of.Create(ctx, e, delayedQueue{q, b.wait})
}

// Update passes the event on.
func (b batcher) Update(ctx context.Context, e event.UpdateEvent, q Queue) {
	b.of.Update(ctx, e, delayedQueue{q, b.wait})
}

// Delete passes the event on.
func (b batcher) Delete(ctx context.Context, e event.DeleteEvent, q Queue) {
	b.of.Delete(ctx, e, delayedQueue{q, b.wait})
}

// Generic passes the event on.
func (b batcher) Generic(ctx context.Context, e event.GenericEvent, q Queue) {
	b.of.Generic(ctx, e, delayedQueue{q, b.wait})
}

// delayedQueue is a queue that delays what is added.
type delayedQueue struct {
	Queue
	wait time.Duration
}

// Add adds the request after the wait. A request that is waiting already is not postponed.
func (d delayedQueue) Add(r reconcile.Request) { d.AddAfter(r, d.wait) }
