package jobs

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
)

// requests is the queue of what is to be reconciled.
type requests = workqueue.TypedRateLimitingInterface[reconcile.Request]

// heeds reports whether a change of a child is worth a look.
func (a API[T]) heeds(e event.UpdateEvent) bool {
	return a.Matters == nil || a.Matters(e.ObjectOld, e.ObjectNew)
}

// isNews reports whether a child that has come to be is worth a look.
func (a API[T]) isNews(e event.CreateEvent) bool { return a.Expected == nil || !a.Expected(e.Object) }

// tellsJob reports whether a Workload that has come to be may tell its job anything: not if nobody has said anything of it yet but the
// job itself, which has it made.
func tellsJob(e event.CreateEvent) bool {
	w, ok := e.Object.(*kueue.Workload)
	if !ok || !w.DeletionTimestamp.IsZero() || len(w.Status.Conditions) > 0 || len(w.Status.AdmissionChecks) > 0 || w.Status.Admission != nil {
		return true
	}
	owner := metav1.GetControllerOfNoCopy(w)
	return owner == nil || w.Name != workloadName(schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind), owner.Name, owner.UID)
}

// gather has what the handler asks for reconciled a while later, so that one look does
// for all that came meanwhile: what an event costs does not depend on how many children
// the job has. The first of them decides when.
func gather(of handler.EventHandler, wait time.Duration) handler.EventHandler {
	if wait == 0 {
		return of
	}
	return gatherer{of, wait}
}

// gatherer passes events on with a queue that takes in late what is added.
type gatherer struct {
	of   handler.EventHandler
	wait time.Duration
}

// Create passes the event on.
func (g gatherer) Create(ctx context.Context, e event.CreateEvent, q requests) {
	g.of.Create(ctx, e, later{q, g.wait})
}

// Update passes the event on.
func (g gatherer) Update(ctx context.Context, e event.UpdateEvent, q requests) {
	g.of.Update(ctx, e, later{q, g.wait})
}

// Delete passes the event on.
func (g gatherer) Delete(ctx context.Context, e event.DeleteEvent, q requests) {
	g.of.Delete(ctx, e, later{q, g.wait})
}

// Generic passes the event on.
func (g gatherer) Generic(ctx context.Context, e event.GenericEvent, q requests) {
	g.of.Generic(ctx, e, later{q, g.wait})
}

// later is a queue that takes in late what is added.
type later struct {
	requests
	wait time.Duration
}

// Add adds the request after the wait; one that waits already is not put off.
func (q later) Add(r reconcile.Request) { q.AddAfter(r, q.wait) }
