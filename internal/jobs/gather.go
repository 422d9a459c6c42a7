package jobs

import (
	"context"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// requests is the queue of what is to be reconciled.
type requests = workqueue.TypedRateLimitingInterface[reconcile.Request]

// heeds reports whether a change of a child is worth a look.
func (a API[T]) heeds(e event.UpdateEvent) bool {
	return a.Matters == nil || a.Matters(e.ObjectOld, e.ObjectNew)
}

// gather has what the handler asks for reconciled a while later, so that one look does
// for all that came meanwhile: what an event costs does not depend on how many children
// the job has. The first of them decides when.
func gather(of handler.EventHandler, wait time.Duration) handler.EventHandler {
	if wait == 0 {
		return of
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q requests) { of.Create(ctx, e, later{q, wait}) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q requests) { of.Update(ctx, e, later{q, wait}) },
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q requests) { of.Delete(ctx, e, later{q, wait}) },
		GenericFunc: func(ctx context.Context, e event.GenericEvent, q requests) {
			of.Generic(ctx, e, later{q, wait})
		},
	}
}

// later is a queue that takes in late what is added.
type later struct {
	requests
	wait time.Duration
}

// Add adds the request after the wait; one that waits already is not put off.
func (q later) Add(r reconcile.Request) { q.AddAfter(r, q.wait) }
