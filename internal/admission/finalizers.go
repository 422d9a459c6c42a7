package admission

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
)

// conflictPause is after how long an object is looked at again that somebody else wrote to at the same time.
const conflictPause = 100 * time.Millisecond

// inUseKeeper holds objects of one kind that are deleted while they are in use until they no longer are, with a finalizer. It
// costs one write when an object is first used, and one when it goes.
type inUseKeeper struct {
	client client.Client
	// cache reads what the watches have brought. Its objects are shared: nobody changes them.
	cache client.Reader
	// empty is an object of the kind, and usedBy a list of the kind that uses it, by the index.
	empty  func() client.Object
	usedBy func() client.ObjectList
	index  string
}

// clusterQueueKeeper keeps ClusterQueues that Workloads hold quota of.
func clusterQueueKeeper(c client.Client, cache client.Reader) *inUseKeeper {
	return &inUseKeeper{
		client: c, cache: cache, index: reservedIndex,
		empty:  func() client.Object { return &kueue.ClusterQueue{} },
		usedBy: func() client.ObjectList { return &kueue.WorkloadList{} },
	}
}

// flavorKeeper keeps ResourceFlavors that ClusterQueues list.
func flavorKeeper(c client.Client, cache client.Reader) *inUseKeeper {
	return &inUseKeeper{
		client: c, cache: cache, index: flavorIndex,
		empty:  func() client.Object { return &kueue.ResourceFlavor{} },
		usedBy: func() client.ObjectList { return &kueue.ClusterQueueList{} },
	}
}

// addFinalizers has the manager keep what is in use. The indexes must be there: see indexUsers.
func addFinalizers(mgr ctrl.Manager) error {
	clusterQueues := clusterQueueKeeper(mgr.GetClient(), mgr.GetCache())
	err := ctrl.NewControllerManagedBy(mgr).
		Named("clusterqueue-in-use").
		For(&kueue.ClusterQueue{}, builder.WithPredicates(ends)).
		Watches(&kueue.Workload{}, clusterQueues.uses(reserves), builder.WithPredicates(changes(reserves))).
		Complete(clusterQueues)
	if err != nil {
		return fmt.Errorf("adding the keeper of ClusterQueues in use: %w", err)
	}
	flavors := flavorKeeper(mgr.GetClient(), mgr.GetCache())
	err = ctrl.NewControllerManagedBy(mgr).
		Named("resourceflavor-in-use").
		For(&kueue.ResourceFlavor{}, builder.WithPredicates(ends)).
		Watches(&kueue.ClusterQueue{}, flavors.uses(lists), builder.WithPredicates(changes(lists))).
		Complete(flavors)
	if err != nil {
		return fmt.Errorf("adding the keeper of ResourceFlavors in use: %w", err)
	}
	return nil
}

// ends passes an object that is new, whose deletion was asked for, or whose finalizers somebody has changed.
var ends = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	return e.ObjectOld.GetDeletionTimestamp().IsZero() != e.ObjectNew.GetDeletionTimestamp().IsZero() ||
		controllerutil.ContainsFinalizer(e.ObjectOld, kueue.ResourceInUseFinalizer) != controllerutil.ContainsFinalizer(e.ObjectNew, kueue.ResourceInUseFinalizer)
}}

// uses has those objects looked at that the news of a user may concern: of what it used before and uses now, what is not
// held yet, and what is to go. In steady state that is nothing.
func (k *inUseKeeper) uses(names func(client.Object) []string) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, user client.Object) []reconcile.Request {
		var out []reconcile.Request
		for _, name := range names(user) {
			object := k.empty()
			if err := k.cache.Get(ctx, client.ObjectKey{Name: name}, object, client.UnsafeDisableDeepCopy); err != nil {
				continue // it does not exist; when it does, it is looked at
			}
			if !object.GetDeletionTimestamp().IsZero() || !controllerutil.ContainsFinalizer(object, kueue.ResourceInUseFinalizer) {
				out = append(out, reconcile.Request{NamespacedName: client.ObjectKey{Name: name}})
			}
		}
		return out
	})
}

// changes passes a user that comes, goes or uses something else: most news of Workloads are of neither.
func changes(names func(client.Object) []string) predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool { return !slices.Equal(names(e.ObjectOld), names(e.ObjectNew)) }}
}

// Reconcile brings the finalizer in step with the use of the object.
func (k *inUseKeeper) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	object := k.empty()
	if err := k.cache.Get(ctx, req.NamespacedName, object); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	seen := object.DeepCopyObject().(client.Object)
	used, err := k.used(ctx, req.Name)
	if err != nil {
		return ctrl.Result{}, err
	}
	deleted := !object.GetDeletionTimestamp().IsZero()
	changed := false
	switch {
	case used && !deleted:
		changed = controllerutil.AddFinalizer(object, kueue.ResourceInUseFinalizer)
	case !used && deleted:
		changed = controllerutil.RemoveFinalizer(object, kueue.ResourceInUseFinalizer)
	}
	if !changed {
		return ctrl.Result{}, nil
	}
	err = k.client.Patch(ctx, object, client.MergeFromWithOptions(seen, client.MergeFromWithOptimisticLock{}), client.DisableReadYourWritesConsistency)
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		// Somebody else wrote to it, its status mostly, which is no news here.
		return ctrl.Result{RequeueAfter: conflictPause}, nil
	}
	return ctrl.Result{}, err
}

// used reports whether anything uses the object.
func (k *inUseKeeper) used(ctx context.Context, name string) (bool, error) {
	users := k.usedBy()
	if err := k.cache.List(ctx, users, client.MatchingFields{k.index: name}, client.Limit(1), client.UnsafeDisableDeepCopy); err != nil {
		return false, fmt.Errorf("looking for who uses %s: %w", name, err)
	}
	return meta.LenList(users) > 0, nil
}
