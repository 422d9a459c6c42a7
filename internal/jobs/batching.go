package jobs

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
)

// requests is a controller's workqueue.
type requests = workqueue.TypedRateLimitingInterface[reconcile.Request]

// needsReconcile reports whether the job has to be reconciled for an update of a child. One that gets another controller,
// or none, is no child any more: no later event of it, not even its deletion, reaches the job.
func (s served[T]) needsReconcile(e event.UpdateEvent) bool {
	return s.Matters == nil || controllerOf(e.ObjectOld) != controllerOf(e.ObjectNew) || s.Matters(e.ObjectOld, e.ObjectNew)
}

// controllerOf returns the UID of what controls the object, "" if nothing does.
func controllerOf(object client.Object) types.UID {
	if owner := metav1.GetControllerOfNoCopy(object); owner != nil {
		return owner.UID
	}
	return ""
}

// isUnexpected reports whether the job has to be reconciled for a new child.
func (s served[T]) isUnexpected(e event.CreateEvent) bool {
	return s.Expected == nil || !s.Expected(e.Object)
}

// isNewToJob reports whether a new Workload may say something that its job does not know. It does not if the job's own
// reconcile created it and nothing has been reported in its status yet.
func isNewToJob(e event.CreateEvent) bool {
	w, ok := e.Object.(*kueue.Workload)
	if !ok || !w.DeletionTimestamp.IsZero() || len(w.Status.Conditions) > 0 || len(w.Status.AdmissionChecks) > 0 || w.Status.Admission != nil {
		return true
	}
	owner := metav1.GetControllerOfNoCopy(w)
	return owner == nil || !isWorkloadName(w.Name, schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind), owner.Name, owner.UID)
}

// batchRequests delays what the handler enqueues, so that one reconcile handles all events of that time, whatever the
// number of children. The first of them determines when.
func batchRequests(of handler.EventHandler, wait time.Duration) handler.EventHandler {
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
func (b batcher) Create(ctx context.Context, e event.CreateEvent, q requests) {
	b.of.Create(ctx, e, delayedQueue{q, b.wait})
}

// Update passes the event on.
func (b batcher) Update(ctx context.Context, e event.UpdateEvent, q requests) {
	b.of.Update(ctx, e, delayedQueue{q, b.wait})
}

// Delete passes the event on.
func (b batcher) Delete(ctx context.Context, e event.DeleteEvent, q requests) {
	b.of.Delete(ctx, e, delayedQueue{q, b.wait})
}

// Generic passes the event on.
func (b batcher) Generic(ctx context.Context, e event.GenericEvent, q requests) {
	b.of.Generic(ctx, e, delayedQueue{q, b.wait})
}

// delayedQueue is a queue that delays what is added.
type delayedQueue struct {
	requests
	wait time.Duration
}

// Add adds the request after the wait. A request that is waiting already is not postponed.
func (d delayedQueue) Add(r reconcile.Request) { d.AddAfter(r, d.wait) }
