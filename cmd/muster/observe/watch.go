package observe

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	config "github.com/musterhq/muster/api/config/v1alpha1"
	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/cmd/muster/view"
	"github.com/musterhq/muster/internal/listwatch"
)

// Watch keeps a scope of a cluster in memory and up to date.
type Watch struct {
	cache cache.Cache
	scope Scope
	// unseen are the kinds that the user may not list: their informers would never sync.
	unseen  []string
	changes chan struct{}
	// configuration is the operator's configuration when the cluster was opened: it changes only when the operator
	// restarts.
	configuration *config.Configuration
	assumed       string
	unreadable    undecodableJobs
	unwatchable   unwatchableKinds
	deleted       deletedJobs
	liveness      *liveness
}

// Watch starts to follow the scope and returns once every object of the scope has been read. It ends with ctx.
func (c *Cluster) Watch(ctx context.Context, scope Scope) (*Watch, error) {
	// A first read turns "no such cluster" and "not installed" into errors; informers would retry them forever.
	first, err := c.Snapshot(ctx, scope)
	if err != nil {
		return nil, err
	}
	shared := true
	options := cache.Options{
		Scheme:                       c.scheme,
		Mapper:                       c.client.RESTMapper(),
		DefaultTransform:             cache.TransformStripManagedFields(),
		DefaultUnsafeDisableDeepCopy: &shared, // a view.Snapshot is never changed
	}
	if scope.Namespace != "" {
		options.DefaultNamespaces = map[string]cache.Config{scope.Namespace: {}}
	}
	w := &Watch{scope: scope, unseen: first.Unseen, configuration: c.configuration, assumed: c.assumed,
		changes: make(chan struct{}, 1)}
	w.unwatchable.changed = w.changed
	options.DefaultWatchErrorHandler = w.unwatchable.handleWatchError
	if w.cache, err = listwatch.NewCache(w.recordUndecodable(c.client.RESTMapper()), kueue.GroupVersion.Group)(c.config,
		options); err != nil {
		return nil, fmt.Errorf("prepare to watch: %w", err)
	}
	if w.liveness, err = newLiveness(c.config); err != nil {
		return nil, err
	}
	if err := w.inform(ctx); err != nil {
		return nil, err
	}
	go func() { _ = w.cache.Start(ctx) }() // ends with ctx, and has no other error
	if !w.cache.WaitForCacheSync(ctx) {
		return nil, fmt.Errorf("read the cluster for the first time: %w", context.Cause(ctx))
	}
	go w.liveness.follow(ctx, w.changed)
	return w, nil
}

// recordUndecodable returns the callback that records objects that cannot be decoded.
func (w *Watch) recordUndecodable(mapper meta.RESTMapper) func(schema.GroupVersionKind, metav1.Object, error) {
	return func(kind schema.GroupVersionKind, object metav1.Object, why error) {
		mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if err != nil {
			return
		}
		w.unreadable.add(generation{object.GetUID(), object.GetGeneration()},
			view.Unreadable{Resource: mapping.Resource.GroupResource(), Namespace: object.GetNamespace(),
				Name: object.GetName(), Why: why})
		w.changed()
	}
}

// inform registers informers for the kinds of the scope that are served and that the user may list.
func (w *Watch) inform(ctx context.Context) error {
	kinds := new(jobLists).kinds()
	kinds = append(kinds, w.scope.clusterQueueKinds(nil)...)
	for _, kind := range kinds {
		if slices.Contains(w.unseen, kind.name) {
			continue
		}
		informer, err := w.cache.GetInformer(ctx, kind.watched, cache.BlockUntilSynced(false))
		if meta.IsNoMatchError(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("watch %s: %w", kind.name, err)
		}
		if _, err := informer.AddEventHandler(w.signal()); err != nil {
			return fmt.Errorf("watch %s: %w", kind.name, err)
		}
	}
	return nil
}

// signal returns an event handler that calls changed for every event.
func (w *Watch) signal() toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { w.changed() },
		UpdateFunc: func(any, any) { w.changed() },
		DeleteFunc: func(any) { w.changed() },
	}
}

// changed signals a change; changes that are not received yet are merged.
func (w *Watch) changed() {
	select {
	case w.changes <- struct{}{}:
	default:
	}
}

// Changes returns a channel that receives after something changed, once for any number of changes.
func (w *Watch) Changes() <-chan struct{} { return w.changes }

// Lost returns why the API server does not answer, or nil while it does. Meanwhile Snapshot returns the last known
// state. The transition also counts as a change.
func (w *Watch) Lost() error { return w.liveness.lost() }

// Unwatchable returns the kinds found, since the last call, to be ones that the user may not watch.
func (w *Watch) Unwatchable() []string { return w.unwatchable.take() }

func (w *Watch) read(ctx context.Context, kind kindRead, only ...client.ListOption) ([]view.Unreadable, error) {
	if slices.Contains(w.unseen, kind.name) {
		return nil, nil
	}
	return nil, w.cache.List(ctx, kind.list, only...)
}

// Snapshot returns the current state from the cache, without a request to the API server. Its Unreadable holds only the
// jobs recorded since the last call.
func (w *Watch) Snapshot(ctx context.Context) (*view.Snapshot, error) {
	snapshot, err := newSnapshot(ctx, w.read, w.scope)
	if err == nil {
		snapshot.Configuration, snapshot.Assumed = w.configuration, w.assumed
		snapshot.Unreadable, snapshot.Unseen = w.unreadable.take(), w.unseen
		w.deleted.note(snapshot)
	}
	return snapshot, err
}
