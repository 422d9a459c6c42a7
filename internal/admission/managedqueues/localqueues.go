package managedqueues

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/workload"
)

// madeLocalQueues deletes the LocalQueues that Muster made for a ClusterQueue once that is gone and no Workload holds
// quota through them. Jobs that name a deleted LocalQueue wait like jobs that name a queue that never existed; a job
// makes the LocalQueue again when there is a ClusterQueue of that name.
type madeLocalQueues struct{ client client.Client }

// AddMadeLocalQueues adds the controller of the LocalQueues that Muster makes to the manager.
func AddMadeLocalQueues(mgr ctrl.Manager) error {
	m := &madeLocalQueues{client: mgr.GetClient()}
	made := predicate.NewPredicateFuncs(func(o client.Object) bool { return o.GetLabels()[muster.MadeForLabel] != "" })
	err := ctrl.NewControllerManagedBy(mgr).
		Named("made-local-queues").
		For(&kueue.LocalQueue{}, builder.WithPredicates(made, createdOrDeleted)).
		Watches(&kueue.ClusterQueue{}, handler.EnqueueRequestsFromMapFunc(m.of), builder.WithPredicates(deleted)).
		Watches(&kueue.Workload{}, handler.EnqueueRequestsFromMapFunc(queueOfWorkload),
			builder.WithPredicates(gaveQuotaBack)).
		Complete(m)
	if err != nil {
		return fmt.Errorf("adding the keeper of LocalQueues: %w", err)
	}
	return nil
}

// deleted passes the deletion of an object.
var deleted = predicate.Funcs{CreateFunc: func(event.CreateEvent) bool { return false },
	UpdateFunc: func(event.UpdateEvent) bool { return false }}

// gaveQuotaBack passes Workloads that held quota and do not any more.
var gaveQuotaBack = predicate.Funcs{
	CreateFunc: func(event.CreateEvent) bool { return false },
	UpdateFunc: func(e event.UpdateEvent) bool {
		return uses(e.ObjectOld.(*kueue.Workload)) && !uses(e.ObjectNew.(*kueue.Workload))
	},
	DeleteFunc: func(e event.DeleteEvent) bool { return uses(e.Object.(*kueue.Workload)) },
}

// uses reports whether the Workload holds quota through its LocalQueue.
func uses(w *kueue.Workload) bool { return workload.HoldsQuota(w) && !workload.IsFinished(w) }

// queueOfWorkload requests the LocalQueue of a Workload.
func queueOfWorkload(_ context.Context, o client.Object) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: o.GetNamespace(),
		Name: string(o.(*kueue.Workload).Spec.QueueName)}}}
}

// of requests the LocalQueues that were made for a ClusterQueue.
func (m *madeLocalQueues) of(ctx context.Context, q client.Object) []reconcile.Request {
	var list kueue.LocalQueueList
	if err := m.client.List(ctx, &list, client.HasLabels{muster.MadeForLabel}, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "listing LocalQueues")
		return nil
	}
	var out []reconcile.Request
	for i := range list.Items {
		if local := &list.Items[i]; string(local.Spec.ClusterQueue) == q.GetName() {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(local)})
		}
	}
	return out
}

// Reconcile deletes the LocalQueue if Muster made it, its ClusterQueue is gone, and no Workload uses it.
func (m *madeLocalQueues) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var local kueue.LocalQueue
	if err := m.client.Get(ctx, req.NamespacedName, &local); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if local.Labels[muster.MadeForLabel] == "" || !local.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	err := m.client.Get(ctx, client.ObjectKey{Name: string(local.Spec.ClusterQueue)}, &kueue.ClusterQueue{})
	if !apierrors.IsNotFound(err) {
		return ctrl.Result{}, err
	}
	var list kueue.WorkloadList
	if err := m.client.List(ctx, &list, client.InNamespace(local.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return ctrl.Result{}, fmt.Errorf("listing Workloads: %w", err)
	}
	for i := range list.Items {
		if w := &list.Items[i]; string(w.Spec.QueueName) == local.Name && uses(w) {
			return ctrl.Result{}, nil // its end leads here
		}
	}
	// One that a user has changed since is looked at again.
	unchanged := client.Preconditions{UID: &local.UID, ResourceVersion: &local.ResourceVersion}
	err = m.client.Delete(ctx, &local, unchanged)
	if apierrors.IsConflict(err) {
		return ctrl.Result{RequeueAfter: updateInterval}, nil
	}
	return ctrl.Result{}, client.IgnoreNotFound(err)
}
