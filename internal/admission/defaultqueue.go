package admission

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
)

const (
	// nodesSettle is how long the quota is left alone after a write, so that a hundred
	// nodes that join together cost a few of them.
	nodesSettle = time.Second
	// coveredResourcesMax is the API's limit of resources in a group.
	coveredResourcesMax = 64
)

// defaultQueue keeps the queue named default: there, and as large as the nodes that
// pods without tolerations can use.
type defaultQueue struct {
	client client.Client
	clock  clock.PassiveClock
	wrote  time.Time // one worker: no lock
}

func addDefaultQueue(mgr ctrl.Manager) error {
	once := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: client.ObjectKey{Name: muster.DefaultQueue}}}
	})
	named := predicate.NewPredicateFuncs(func(o client.Object) bool { return o.GetName() == muster.DefaultQueue })
	err := ctrl.NewControllerManagedBy(mgr).
		Named("default-queue").
		Watches(&corev1.Node{}, once, builder.WithPredicates(roomChanged)).
		Watches(&kueue.ClusterQueue{}, once, builder.WithPredicates(named, predicate.GenerationChangedPredicate{})).
		Watches(&kueue.ResourceFlavor{}, once, builder.WithPredicates(named, predicate.GenerationChangedPredicate{})).
		// Where there is no node to watch, the queue must come into being all the same.
		Watches(&corev1.Namespace{}, once, builder.WithPredicates(predicate.NewPredicateFuncs(func(o client.Object) bool {
			return o.GetName() == metav1.NamespaceDefault
		}))).
		Complete(&defaultQueue{client: mgr.GetClient(), clock: clock.RealClock{}})
	if err != nil {
		return fmt.Errorf("adding the keeper of the queue %s: %w", muster.DefaultQueue, err)
	}
	return nil
}

// Reconcile brings the flavor and the queue into being and its quota up to date.
func (d *defaultQueue) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	var nodes corev1.NodeList
	if err := d.client.List(ctx, &nodes, client.UnsafeDisableDeepCopy); err != nil {
		return ctrl.Result{}, fmt.Errorf("listing nodes: %w", err)
	}
	wanted := clusterQueueFor(nodes.Items)
	var seen kueue.ClusterQueue
	switch err := d.client.Get(ctx, client.ObjectKey{Name: muster.DefaultQueue}, &seen); {
	case apierrors.IsNotFound(err):
		if err := d.makeFlavor(ctx); err != nil {
			return ctrl.Result{}, err
		}
		if err := d.client.Create(ctx, wanted); client.IgnoreAlreadyExists(err) != nil {
			return ctrl.Result{}, fmt.Errorf("creating the ClusterQueue %s: %w", muster.DefaultQueue, err)
		}
		return ctrl.Result{}, nil
	case err != nil:
		return ctrl.Result{}, err
	}
	if _, ours := seen.Labels[muster.FollowsNodesLabel]; !ours {
		return ctrl.Result{}, nil
	}
	if err := d.makeFlavor(ctx); err != nil {
		return ctrl.Result{}, err
	}
	if equality.Semantic.DeepEqual(seen.Spec.ResourceGroups, wanted.Spec.ResourceGroups) {
		return ctrl.Result{}, nil
	}
	if rest := d.wrote.Add(nodesSettle).Sub(d.clock.Now()); rest > 0 {
		return ctrl.Result{RequeueAfter: rest}, nil
	}
	d.wrote = d.clock.Now()
	desired := seen.DeepCopy()
	desired.Spec.ResourceGroups = wanted.Spec.ResourceGroups
	err := d.client.Patch(ctx, desired, client.MergeFromWithOptions(&seen, client.MergeFromWithOptimisticLock{}))
	if apierrors.IsConflict(err) {
		return ctrl.Result{}, nil // the watch brings the change, and with it the next try
	}
	return ctrl.Result{}, err
}

// makeFlavor makes the queue's flavor if there is none.
func (d *defaultQueue) makeFlavor(ctx context.Context) error {
	flavor := &kueue.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{Name: muster.DefaultQueue}}
	err := d.client.Get(ctx, client.ObjectKeyFromObject(flavor), flavor)
	if apierrors.IsNotFound(err) {
		err = client.IgnoreAlreadyExists(d.client.Create(ctx, flavor))
	}
	if err != nil {
		return fmt.Errorf("making the ResourceFlavor %s: %w", muster.DefaultQueue, err)
	}
	return nil
}

// roomChanged passes nodes that come, go, or offer something else than before: most
// changes of a node are heartbeats.
var roomChanged = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	before, after := e.ObjectOld.(*corev1.Node), e.ObjectNew.(*corev1.Node)
	return usable(before) != usable(after) || !equality.Semantic.DeepEqual(before.Status.Allocatable, after.Status.Allocatable)
}}

// clusterQueueFor is the queue default over the nodes: it serves every namespace
// and every resource that a node offers, in the order of names.
func clusterQueueFor(nodes []corev1.Node) *kueue.ClusterQueue {
	sums := corev1.ResourceList{corev1.ResourceCPU: {}, corev1.ResourceMemory: {}, corev1.ResourcePods: {}}
	for i := range nodes {
		if !usable(&nodes[i]) {
			continue
		}
		for name, amount := range nodes[i].Status.Allocatable {
			sum := sums[name]
			sum.Add(amount)
			sums[name] = sum
		}
	}
	group := kueue.ResourceGroup{Flavors: []kueue.FlavorQuotas{{Name: muster.DefaultQueue}}}
	for name := range sums {
		group.CoveredResources = append(group.CoveredResources, name)
	}
	slices.SortFunc(group.CoveredResources, func(a, b corev1.ResourceName) int { return cmp.Compare(a, b) })
	group.CoveredResources = group.CoveredResources[:min(len(group.CoveredResources), coveredResourcesMax)]
	for _, name := range group.CoveredResources {
		group.Flavors[0].Resources = append(group.Flavors[0].Resources, kueue.ResourceQuota{Name: name, NominalQuota: canonical(sums[name])})
	}
	return &kueue.ClusterQueue{
		ObjectMeta: metav1.ObjectMeta{Name: muster.DefaultQueue, Labels: map[string]string{muster.FollowsNodesLabel: "true"}},
		Spec: kueue.ClusterQueueSpec{
			NamespaceSelector: &metav1.LabelSelector{},
			ResourceGroups:    []kueue.ResourceGroup{group},
		},
	}
}

// canonical is the quantity as the API server would give it back.
func canonical(q resource.Quantity) resource.Quantity { return resource.MustParse(q.String()) }

// usable reports whether pods without tolerations may be placed on the node.
func usable(node *corev1.Node) bool {
	blocked := slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool {
		return t.Effect == corev1.TaintEffectNoSchedule || t.Effect == corev1.TaintEffectNoExecute
	})
	return !node.Spec.Unschedulable && !blocked && node.DeletionTimestamp.IsZero()
}
