package controller

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/controller/watching"
	"github.com/musterhq/muster/internal/jobs/probe"
	"github.com/musterhq/muster/internal/jobs/write"
)

// concurrentReconciles is how many jobs of an API are reconciled concurrently.
const concurrentReconciles = 16

// AddTo adds a controller for each of the APIs to the manager. The manager's cache should keep only the events that
// Refusals selects.
func AddTo(mgr ctrl.Manager, x *write.Executor, settings Settings, apis ...Served) error {
	podGroups := settings.NativeGangs
	if !podGroups {
		var err error
		if podGroups, err = probe.ServesPodGroups(mgr.GetRESTMapper()); err != nil {
			return err
		}
	}
	if err := indexChildren(mgr, podGroups, apis); err != nil {
		return err
	}
	ctx, indexer := context.Background(), mgr.GetFieldIndexer()
	if err := indexer.IndexField(ctx, &kueue.Workload{}, ownerIndex, ownerKeys); err != nil {
		return fmt.Errorf("indexing Workloads by the job's name: %w", err)
	}
	if err := indexer.IndexField(ctx, &corev1.Event{}, refusalIndex, refusalKeys); err != nil {
		return fmt.Errorf("indexing events by what they are about: %w", err)
	}
	if err := indexer.IndexField(ctx, &corev1.Node{}, jobs.HostnameIndex, jobs.HostnameOf); err != nil {
		return fmt.Errorf("indexing Nodes by host name: %w", err)
	}
	if err := (countForgetter{mgr.GetClient()}).addTo(mgr); err != nil {
		return fmt.Errorf("adding what forgets the counts of deleted namespaces: %w", err)
	}
	left := &orphans{client: mgr.GetClient(), live: mgr.GetAPIReader(), executor: x, clock: clock.RealClock{}, apis: apis}
	if err := left.addTo(mgr); err != nil {
		return err
	}
	watches := watching.NewSharedWatches(mgr.GetCache())
	for _, api := range apis {
		if err := api.addTo(mgr, watches, x, settings, api.owned(podGroups), apis); err != nil {
			return err
		}
	}
	return nil
}

// indexChildren makes the cache index children by the job that they belong to. A kind that several APIs own is indexed
// once.
func indexChildren(mgr ctrl.Manager, podGroups bool, apis []Served) error {
	indexed := map[schema.GroupVersionKind]bool{}
	for _, api := range apis {
		for _, kind := range api.owned(podGroups) {
			gvk, err := apiutil.GVKForObject(kind, mgr.GetScheme())
			if err != nil {
				return fmt.Errorf("indexing %T: %w", kind, err)
			}
			if indexed[gvk] {
				continue
			}
			indexed[gvk] = true
			indexer := mgr.GetFieldIndexer()
			if err := indexer.IndexField(context.Background(), kind, controllerIndex, api.controllerOf); err != nil {
				return fmt.Errorf("indexing %s by controller: %w", gvk.Kind, err)
			}
		}
	}
	return nil
}

// addTo adds the controller of the API to the manager.
func (s served[T]) addTo(mgr ctrl.Manager, watches *watching.SharedWatches, x *write.Executor, settings Settings,
	owns []client.Object, apis []Served) error {
	r := newReconciler(s, mgr.GetClient(), mgr.GetAPIReader(), x, settings, owns, apis, clock.RealClock{})
	// It runs on the leader, from the time that jobs are reconciled; the first job may come long after.
	begin := manager.RunnableFunc(func(context.Context) error { r.states.start(r.clock.Now()); return nil })
	if err := mgr.Add(begin); err != nil {
		return fmt.Errorf("adding the counts of %s: %w", s.Kind.Kind, err)
	}
	b := ctrl.NewControllerManagedBy(mgr).
		Named(s.Kind.GroupKind().String()).
		For(s.New(), builder.WithPredicates(r.router.notesGone(), predicate.NewPredicateFuncs(r.router.concerns))).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: concurrentReconciles,
			RateLimiter:             r.retries,
		})
	return r.router.watch(mgr, watches, b).Complete(r)
}
