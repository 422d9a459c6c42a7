package keptqueues

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

// nodesSettle is how long the quota is left alone after a write, so that a hundred
// nodes that join together cost a few of them.
const nodesSettle = time.Second

// defaultQueue keeps the queue named default: there, with a flavor that is placed on nodes, and as large as the
// configuration says.
type defaultQueue struct {
	client client.Client
	// signs are of node autoscalers, nil where none is looked for.
	signs    client.Reader
	capacity capacity
	clock    clock.PassiveClock
	wrote    time.Time // one worker: no lock
}

// AddDefault has the manager keep the queue default, as large as the configuration says.
func AddDefault(mgr ctrl.Manager, cfg *config.DefaultQueue) error {
	capacity := capacityOf(cfg)
	once := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: client.ObjectKey{Name: muster.DefaultQueue}}}
	})
	named := predicate.NewPredicateFuncs(func(o client.Object) bool { return o.GetName() == muster.DefaultQueue })
	b := ctrl.NewControllerManagedBy(mgr).
		Named("default-queue").
		Watches(&corev1.Node{}, once, builder.WithPredicates(roomChanged)).
		Watches(&kueue.ClusterQueue{}, once, builder.WithPredicates(named, queueChanged)).
		Watches(&kueue.ResourceFlavor{}, once, builder.WithPredicates(named, predicate.GenerationChangedPredicate{})).
		Watches(&kueue.Topology{}, once, builder.WithPredicates(named, predicate.GenerationChangedPredicate{})).
		// Where there is no node to watch, the queue must come into being all the same.
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
			b = b.WatchesRawSource(source.Kind[client.Object](signs, sign.object(), once, comesOrGoes))
		}
	}
	if err := b.Complete(keeper); err != nil {
		return fmt.Errorf("adding the keeper of the queue %s: %w", muster.DefaultQueue, err)
	}
	return nil
}

// Reconcile brings the topology, the flavor and the queue into being and its quota up to date.
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

// bringUpToDate gives the queue the wanted quota and annotations.
func (d *defaultQueue) bringUpToDate(ctx context.Context, seen, wanted *kueue.ClusterQueue) (ctrl.Result, error) {
	desired := seen.DeepCopy()
	changed := !equality.Semantic.DeepEqual(seen.Spec.ResourceGroups, wanted.Spec.ResourceGroups)
	desired.Spec.ResourceGroups = wanted.Spec.ResourceGroups
	for _, annotation := range []string{muster.NodesOnDemandAnnotation, muster.UnlimitedAnnotation} {
		changed = mark(desired, annotation, wanted.Annotations[annotation] != "") || changed
	}
	if !changed {
		return ctrl.Result{}, nil
	}
	if rest := d.wrote.Add(nodesSettle).Sub(d.clock.Now()); rest > 0 {
		return ctrl.Result{RequeueAfter: rest}, nil
	}
	d.wrote = d.clock.Now()
	err := d.client.Patch(ctx, desired, client.MergeFromWithOptions(seen, client.MergeFromWithOptimisticLock{}))
	if apierrors.IsConflict(err) {
		return ctrl.Result{}, nil // the watch brings the change, and with it the next try
	}
	return ctrl.Result{}, err
}

// makeFlavor makes the queue's flavor if there is none, and has that of an earlier version placed on nodes. It gives the
// flavor that there is.
func (d *defaultQueue) makeFlavor(ctx context.Context) (*kueue.ResourceFlavor, error) {
	flavor := &kueue.ResourceFlavor{}
	err := d.client.Get(ctx, client.ObjectKey{Name: muster.DefaultQueue}, flavor)
	switch {
	case apierrors.IsNotFound(err):
		if err := d.makeTopology(ctx); err != nil {
			return nil, err
		}
		flavor = defaultFlavor()
		err = client.IgnoreAlreadyExists(d.client.Create(ctx, flavor))
	case err == nil && mayPlace(flavor):
		if err := d.makeTopology(ctx); err != nil {
			return nil, err
		}
		seen := flavor.DeepCopy()
		flavor.Spec = defaultFlavor().Spec
		metav1.SetMetaDataLabel(&flavor.ObjectMeta, muster.FollowsNodesLabel, "true")
		err = d.client.Patch(ctx, flavor, client.MergeFromWithOptions(seen, client.MergeFromWithOptimisticLock{}))
	case err == nil && flavor.Labels[muster.FollowsNodesLabel] != "":
		err = d.makeTopology(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("making the ResourceFlavor %s: %w", muster.DefaultQueue, err)
	}
	return flavor, nil
}

// makeTopology makes the flavor's topology if there is none of the name.
func (d *defaultQueue) makeTopology(ctx context.Context) error {
	topology := defaultTopology()
	err := d.client.Get(ctx, client.ObjectKeyFromObject(topology), &kueue.Topology{})
	if apierrors.IsNotFound(err) {
		err = client.IgnoreAlreadyExists(d.client.Create(ctx, topology))
	}
	if err != nil {
		return fmt.Errorf("making the Topology %s: %w", muster.DefaultQueue, err)
	}
	return nil
}

// queueChanged passes a queue whose spec or annotations somebody changed, or who took the label from it by which it is kept, or gave it back.
var queueChanged = predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}, predicate.LabelChangedPredicate{})

// comesOrGoes passes an object that is new or gone.
var comesOrGoes = predicate.TypedFuncs[client.Object]{UpdateFunc: func(event.TypedUpdateEvent[client.Object]) bool { return false }}

// roomChanged passes nodes that come, go, or offer something else than before: most
// changes of a node are heartbeats.
var roomChanged = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	before, after := e.ObjectOld.(*corev1.Node), e.ObjectNew.(*corev1.Node)
	return before.Spec.Unschedulable != after.Spec.Unschedulable || before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero() ||
		!maps.Equal(before.Labels, after.Labels) || !sameTaints(before, after) ||
		!equality.Semantic.DeepEqual(before.Status.Allocatable, after.Status.Allocatable)
}}
