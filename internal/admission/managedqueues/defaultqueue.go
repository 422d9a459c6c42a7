package managedqueues

import (
	"context"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	config "github.com/musterhq/muster/api/config/v1alpha1"
	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
)

// updateInterval is the least time between two updates of the quota, so that a hundred nodes that join together cause
// only a few writes.
const updateInterval = time.Second

// defaultQueue is the controller of the ClusterQueue default and of its flavor, which is placed on nodes. It keeps
// the queue's quota as the configuration says.
type defaultQueue struct {
	client client.Client
	// signs reads the signs of node autoscalers, nil if they are not to be detected.
	signs    client.Reader
	capacity capacity
	clock    clock.PassiveClock
	wrote    time.Time // needs no lock: there is a single worker
}

// AddDefault adds the controller of the default queue to the manager.
func AddDefault(mgr ctrl.Manager, cfg *config.DefaultQueue) error {
	capacity := capacityOf(cfg)
	once := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: client.ObjectKey{Name: muster.DefaultQueue}}}
	})
	named := predicate.NewPredicateFuncs(func(o client.Object) bool { return o.GetName() == muster.DefaultQueue })
	topologies := predicate.NewPredicateFuncs(func(o client.Object) bool {
		return o.GetName() == muster.DefaultTopology || o.GetName() == muster.DefaultQueue // see makeTopology
	})
	b := ctrl.NewControllerManagedBy(mgr).
		Named("default-queue").
		Watches(&corev1.Node{}, once, builder.WithPredicates(capacityChanged)).
		Watches(&kueue.ClusterQueue{}, once, builder.WithPredicates(named, queueChanged)).
		Watches(&kueue.ResourceFlavor{}, once, builder.WithPredicates(named, predicate.GenerationChangedPredicate{})).
		Watches(&kueue.Topology{}, once, builder.WithPredicates(topologies, predicate.GenerationChangedPredicate{})).
		// The namespace default triggers the creation of the queue in a cluster without nodes.
		Watches(&corev1.Namespace{}, once, builder.WithPredicates(predicate.NewPredicateFuncs(func(o client.Object) bool {
			return o.GetName() == metav1.NamespaceDefault
		})))
	keeper := &defaultQueue{client: mgr.GetClient(), capacity: capacity, clock: clock.RealClock{}}
	if capacity.detects() {
		signs, err := newSignCache(mgr)
		if err != nil {
			return err
		}
		keeper.signs = signs
		for _, sign := range autoscalerSigns {
			b = b.WatchesRawSource(source.Kind[client.Object](signs, sign.object(), once, createdOrDeleted))
		}
	}
	if err := b.Complete(keeper); err != nil {
		return fmt.Errorf("adding the keeper of the queue %s: %w", muster.DefaultQueue, err)
	}
	return nil
}

// Reconcile creates the topology, the flavor and the queue if they are missing, and updates the quota.
func (d *defaultQueue) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	var seen kueue.ClusterQueue
	err := d.client.Get(ctx, client.ObjectKey{Name: muster.DefaultQueue}, &seen)
	isNew := apierrors.IsNotFound(err)
	if err != nil && !isNew {
		return ctrl.Result{}, err
	}
	if _, ours := seen.Labels[muster.FollowsNodesLabel]; !isNew && !ours {
		return ctrl.Result{}, nil
	}
	flavor, err := d.makeFlavor(ctx)
	if err != nil {
		return ctrl.Result{}, err
	}
	var nodes corev1.NodeList
	if err := d.client.List(ctx, &nodes, client.UnsafeDisableDeepCopy); err != nil {
		return ctrl.Result{}, fmt.Errorf("listing nodes: %w", err)
	}
	autoscaler := false
	if d.capacity.detects() {
		if autoscaler, err = autoscalerSeen(ctx, d.signs); err != nil {
			return ctrl.Result{}, err
		}
	}
	wanted := d.capacity.queue(usable(nodes.Items, &flavor.Spec), d.capacity.growing(autoscaler))
	if isNew {
		if err := d.client.Create(ctx, wanted); client.IgnoreAlreadyExists(err) != nil {
			return ctrl.Result{}, fmt.Errorf("creating the ClusterQueue %s: %w", muster.DefaultQueue, err)
		}
		return ctrl.Result{}, nil
	}
	return d.bringUpToDate(ctx, &seen, wanted)
}

// bringUpToDate sets the wanted quota and annotations of the queue.
func (d *defaultQueue) bringUpToDate(ctx context.Context, seen, wanted *kueue.ClusterQueue) (ctrl.Result, error) {
	desired := seen.DeepCopy()
	changed := !equality.Semantic.DeepEqual(seen.Spec.ResourceGroups, wanted.Spec.ResourceGroups)
	desired.Spec.ResourceGroups = wanted.Spec.ResourceGroups
	for _, annotation := range []string{muster.NodesOnDemandAnnotation, muster.UnlimitedAnnotation} {
		changed = setMark(desired, annotation, wanted.Annotations[annotation] != "") || changed
	}
	if !changed {
		return ctrl.Result{}, nil
	}
	// More than the interval is left only if the clock was set back, and counts as over.
	if wait := d.wrote.Add(updateInterval).Sub(d.clock.Now()); wait > 0 && wait <= updateInterval {
		return ctrl.Result{RequeueAfter: wait}, nil
	}
	d.wrote = d.clock.Now()
	err := d.client.Patch(ctx, desired, client.MergeFromWithOptions(seen, client.MergeFromWithOptimisticLock{}))
	if apierrors.IsConflict(err) {
		return ctrl.Result{}, nil // the watch delivers the change of the other writer, and triggers the next attempt
	}
	return ctrl.Result{}, err
}

// makeFlavor creates the queue's flavor if there is none, and upgrades one of an earlier version to be placed on
// nodes. It returns the flavor.
func (d *defaultQueue) makeFlavor(ctx context.Context) (*kueue.ResourceFlavor, error) {
	flavor := &kueue.ResourceFlavor{}
	err := d.client.Get(ctx, client.ObjectKey{Name: muster.DefaultQueue}, flavor)
	switch {
	case apierrors.IsNotFound(err):
		if err := d.makeTopology(ctx, muster.DefaultTopology); err != nil {
			return nil, err
		}
		flavor = defaultFlavor()
		err = client.IgnoreAlreadyExists(d.client.Create(ctx, flavor))
	case err == nil && isUnplacedDefault(flavor):
		if err := d.makeTopology(ctx, muster.DefaultTopology); err != nil {
			return nil, err
		}
		seen := flavor.DeepCopy()
		flavor.Spec = defaultFlavor().Spec
		metav1.SetMetaDataLabel(&flavor.ObjectMeta, muster.FollowsNodesLabel, "true")
		err = d.client.Patch(ctx, flavor, client.MergeFromWithOptions(seen, client.MergeFromWithOptimisticLock{}))
	case err == nil && flavor.Labels[muster.FollowsNodesLabel] != "":
		err = d.makeTopology(ctx, string(ptr.Deref(flavor.Spec.TopologyName, muster.DefaultTopology)))
	}
	if err != nil {
		return nil, fmt.Errorf("making the ResourceFlavor %s: %w", muster.DefaultQueue, err)
	}
	return flavor, nil
}

// makeTopology creates the flavor's topology if there is none of that name. A flavor that an earlier version made names
// the topology default, and a flavor's topology cannot be changed.
func (d *defaultQueue) makeTopology(ctx context.Context, name string) error {
	topology := defaultTopology(name)
	err := d.client.Get(ctx, client.ObjectKeyFromObject(topology), &kueue.Topology{})
	if apierrors.IsNotFound(err) {
		err = client.IgnoreAlreadyExists(d.client.Create(ctx, topology))
	}
	if err != nil {
		return fmt.Errorf("making the Topology %s: %w", name, err)
	}
	return nil
}

// queueChanged passes changes of a queue's spec, annotations or labels: one label marks the queue as the operator's.
var queueChanged = predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{},
	predicate.LabelChangedPredicate{})

// createdOrDeleted passes the creation and deletion of an object.
var createdOrDeleted = predicate.TypedFuncs[client.Object]{
	UpdateFunc: func(event.TypedUpdateEvent[client.Object]) bool { return false }}

// capacityChanged passes nodes that are created, deleted, or change what they offer: most updates of a node are
// heartbeats.
var capacityChanged = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	before, after := e.ObjectOld.(*corev1.Node), e.ObjectNew.(*corev1.Node)
	return before.Spec.Unschedulable != after.Spec.Unschedulable ||
		before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero() ||
		!maps.Equal(before.Labels, after.Labels) || !sameTaints(before, after) ||
		!equality.Semantic.DeepEqual(before.Status.Allocatable, after.Status.Allocatable)
}}
