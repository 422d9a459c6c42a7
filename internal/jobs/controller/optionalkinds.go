package controller

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/musterhq/muster/internal/jobs/controller/watching"
)

// knowsOptionalKinds reports whether it is known for every optional kind whether the cluster serves it. When that
// becomes known, all jobs are reconciled.
func (r *reader[T]) knowsOptionalKinds() bool {
	return !slices.ContainsFunc(r.optional, func(l *optionalKind) bool { return !l.known.Load() })
}

// A kind that has a definition but is not served yet is checked for again after establishedWithin, and then after twice
// the time of the last check, up to longestPoll: no event says when the API server starts to serve it, and it never
// does so if the definition has another version of the kind only.
const establishedWithin = time.Second

// optionalSource returns a source that watches the kind's objects from the time that the cluster serves it, and that
// enqueues all jobs then.
func (r *router[T]) optionalSource(mgr ctrl.Manager, l *optionalKind) source.Source {
	return source.Func(func(ctx context.Context, queue watching.Queue) error {
		go func() {
			log := mgr.GetLogger().WithName("jobs").WithValues("kind", r.api.Kind.Kind, "waitsFor", l.Resource.String())
			known := func() {
				l.known.Store(true)
				for _, request := range r.allJobs(ctx, nil) {
					queue.Add(request)
				}
			}
			missing := func() {
				log.Info("jobs wait until the cluster serves the kind")
				known()
			}
			err := r.awaitOptional(ctx, mgr, l, missing)
			if err == nil {
				err = r.watchOptional(ctx, mgr, l, queue)
			}
			switch {
			case ctx.Err() != nil:
				return
			case err != nil:
				log.Error(err, "watching a kind; jobs that need it wait until the next start")
			default:
				l.seen.Store(true)
				log.Info("the cluster serves the kind")
			}
			known()
		}()
		return nil
	})
}

// awaitOptional returns once the cluster serves the kind. It calls missing once if the cluster does not serve it yet.
func (r *router[T]) awaitOptional(ctx context.Context, mgr ctrl.Manager, l *optionalKind, missing func()) error {
	gvk, err := apiutil.GVKForObject(l.Object, mgr.GetScheme())
	if err != nil {
		return err
	}
	changed, err := definitionChanges(ctx, mgr.GetCache(), l.Resource)
	if err != nil {
		return fmt.Errorf("watching definitions: %w", err)
	}
	var again <-chan time.Time
	delay := establishedWithin
	for reported := false; ; {
		_, err := mgr.GetRESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version)
		switch {
		case err == nil:
			return nil
		case !meta.IsNoMatchError(err):
			again = time.After(delay) // unknown: ask again
		case !reported:
			missing()
			reported = true
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
			delay = establishedWithin
			again = time.After(delay)
		case <-again:
			delay = min(2*delay, longestPoll)
			again = time.After(delay)
		}
	}
}

// definitionChanges returns a channel that receives when the definition of the resource is there or has changed. The
// channel holds one message at most.
func definitionChanges(ctx context.Context, informers ctrlcache.Informers,
	resource schema.GroupResource) (<-chan struct{}, error) {
	definition := &metav1.PartialObjectMetadata{}
	definition.SetGroupVersionKind(definitionKind)
	definitions, err := informers.GetInformer(ctx, definition)
	if err != nil {
		return nil, err
	}
	changed := make(chan struct{}, 1)
	notify := func(object any) {
		if o, ok := object.(client.Object); ok && o.GetName() == resource.String() {
			select {
			case changed <- struct{}{}:
			default:
			}
		}
	}
	_, err = definitions.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: notify,
		UpdateFunc: func(_, o any) { notify(o) }})
	return changed, err
}

// watchOptional indexes and watches the objects of the kind, and returns once they are cached.
func (r *router[T]) watchOptional(ctx context.Context, mgr ctrl.Manager, l *optionalKind, queue watching.Queue) error {
	if err := mgr.GetFieldIndexer().IndexField(ctx, l.Object, controllerIndex, r.api.controllerOf); err != nil {
		return fmt.Errorf("indexing %s by controller: %w", l.Resource, err)
	}
	of := handler.EnqueueRequestForOwner(mgr.GetScheme(), mgr.GetRESTMapper(), r.api.New())
	watch := source.Kind(mgr.GetCache(), l.Object, watching.BatchRequests(of, r.api.Watch.BatchDelay),
		predicate.Predicate(predicate.Funcs{UpdateFunc: r.api.needsReconcile}))
	if err := watch.Start(ctx, queue); err != nil {
		return err
	}
	return watch.WaitForSync(ctx)
}
