package admission

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/admission/decisions"
	"github.com/musterhq/muster/internal/admission/indexes"
	"github.com/musterhq/muster/internal/workload"
)

// conflictPause is the delay before reconciling an object again after a write conflict.
const conflictPause = 100 * time.Millisecond

// inUseKeeper keeps deleted objects of one kind, by a finalizer, until they are no longer in use. It writes once when
// an object is first used, and once when the object is released.
type inUseKeeper struct {
	client client.Client
	// cache reads from the informers. Its objects are shared and must not be modified.
	cache client.Reader
	// empty returns an object of the kind, usedBy a list of the kind that uses it; index finds the users of an
	// object.
	empty  func() client.Object
	usedBy func() client.ObjectList
	index  string
	// waiting is called with the users of an object that terminates, sorted by name. It may be nil.
	waiting func(object client.Object, users []string)
}

// clusterQueueKeeper keeps ClusterQueues of which Workloads hold quota.
func clusterQueueKeeper(c client.Client, cache client.Reader) *inUseKeeper {
	return &inUseKeeper{
		client: c, cache: cache, index: indexes.ReservedIndex,
		empty:  func() client.Object { return &kueue.ClusterQueue{} },
		usedBy: func() client.ObjectList { return &kueue.WorkloadList{} },
	}
}

// flavorInUseReason is the reason of the event of a ResourceFlavor whose deletion waits. ClusterQueues have a
// condition.
const flavorInUseReason = "InUse"

// flavorKeeper keeps ResourceFlavors that ClusterQueues list.
func flavorKeeper(c client.Client, cache client.Reader, recorder events.EventRecorder) *inUseKeeper {
	return &inUseKeeper{
		waiting: func(flavor client.Object, queues []string) {
			recorder.Eventf(flavor, nil, corev1.EventTypeWarning, flavorInUseReason, decisions.EventAction, "%s", workload.Cut(
				"it is deleted once no ClusterQueue lists it; these do: "+strings.Join(queues, ", "), decisions.EventMessageBytes))
		},
		client: c, cache: cache, index: indexes.FlavorIndex,
		empty:  func() client.Object { return &kueue.ResourceFlavor{} },
		usedBy: func() client.ObjectList { return &kueue.ClusterQueueList{} },
	}
}

// addFinalizers adds the controllers that keep objects in use. The indexes of AddIndexes must exist.
func addFinalizers(mgr ctrl.Manager, recorder events.EventRecorder) error {
	return errors.Join(
		clusterQueueKeeper(mgr.GetClient(), mgr.GetCache()).
			addTo(mgr, "clusterqueue-in-use", &kueue.Workload{}, indexes.ReservedQueue),
		flavorKeeper(mgr.GetClient(), mgr.GetCache(), recorder).
			addTo(mgr, "resourceflavor-in-use", &kueue.ClusterQueue{}, indexes.ListedFlavors))
}

// addTo adds the controller of the keeper. used names the objects of the kind that a user uses.
func (i *inUseKeeper) addTo(mgr ctrl.Manager, name string, user client.Object, used client.IndexerFunc) error {
	err := ctrl.NewControllerManagedBy(mgr).
		Named(name).
		For(i.empty(), builder.WithPredicates(deletionOrFinalizerChanged)).
		Watches(user, i.enqueueUsed(used), builder.WithPredicates(useChanged(used))).
		Complete(i)
	if err != nil {
		return fmt.Errorf("adding the controller %s: %w", name, err)
	}
	return nil
}

// deletionOrFinalizerChanged passes an object that is new, that starts terminating, or whose finalizer was added or
// removed.
var deletionOrFinalizerChanged = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	return e.ObjectOld.GetDeletionTimestamp().IsZero() != e.ObjectNew.GetDeletionTimestamp().IsZero() ||
		controllerutil.ContainsFinalizer(e.ObjectOld,
			kueue.ResourceInUseFinalizer) != controllerutil.ContainsFinalizer(e.ObjectNew, kueue.ResourceInUseFinalizer)
}}

// enqueueUsed maps an event of a user to the objects that it used before or uses now, if they have no finalizer yet
// or are terminating. In steady state there are none.
func (i *inUseKeeper) enqueueUsed(names func(client.Object) []string) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, user client.Object) []reconcile.Request {
		var out []reconcile.Request
		for _, name := range names(user) {
			object := i.empty()
			if err := i.cache.Get(ctx, client.ObjectKey{Name: name}, object, client.UnsafeDisableDeepCopy); err != nil {
				continue // it does not exist; its creation is an event of its own
			}
			if !object.GetDeletionTimestamp().IsZero() ||
				!controllerutil.ContainsFinalizer(object, kueue.ResourceInUseFinalizer) {
				out = append(out, reconcile.Request{NamespacedName: client.ObjectKey{Name: name}})
			}
		}
		return out
	})
}

// useChanged passes a user that is created, deleted or uses something else: few updates of Workloads change what they
// use.
func useChanged(names func(client.Object) []string) predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return !slices.Equal(names(e.ObjectOld), names(e.ObjectNew))
	}}
}

// Reconcile adds or removes the finalizer according to the use of the object.
func (i *inUseKeeper) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	object := i.empty()
	if err := i.cache.Get(ctx, req.NamespacedName, object); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	seen := object.DeepCopyObject().(client.Object)
	deleted := !object.GetDeletionTimestamp().IsZero()
	users, err := i.users(ctx, req.Name, deleted && i.waiting != nil)
	if err != nil {
		return ctrl.Result{}, err
	}
	used := len(users) > 0
	changed := false
	switch {
	case used && !deleted:
		changed = controllerutil.AddFinalizer(object, kueue.ResourceInUseFinalizer)
	case !used && deleted:
		changed = controllerutil.RemoveFinalizer(object, kueue.ResourceInUseFinalizer)
	case used && i.waiting != nil:
		i.waiting(object, users)
	}
	if !changed {
		return ctrl.Result{}, nil
	}
	err = i.client.Patch(ctx, object, client.MergeFromWithOptions(seen, client.MergeFromWithOptimisticLock{}),
		client.DisableReadYourWritesConsistency)
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		// Another writer was faster, usually with the status, and the update event of that is filtered out.
		return ctrl.Result{RequeueAfter: conflictPause}, nil
	}
	return ctrl.Result{}, err
}

// users returns the names of what uses the object, sorted: of all, or of any one.
func (i *inUseKeeper) users(ctx context.Context, name string, all bool) (names []string, err error) {
	options := []client.ListOption{client.MatchingFields{i.index: name}, client.UnsafeDisableDeepCopy}
	if !all {
		options = append(options, client.Limit(1))
	}
	users := i.usedBy()
	if err := i.cache.List(ctx, users, options...); err != nil {
		return nil, fmt.Errorf("listing the users of %s: %w", name, err)
	}
	err = meta.EachListItem(users, func(user runtime.Object) error {
		names = append(names, user.(client.Object).GetName())
		return nil
	})
	slices.Sort(names)
	return names, err
}
