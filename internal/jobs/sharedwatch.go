package jobs

import (
	"context"
	"fmt"
	"reflect"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// sharedWatches have the controllers of all kinds of jobs hear what they all watch from one handler of each informer. Most
// news concern one of them or none, and to every handler of its own an informer brings each by way of two goroutines. They
// are put together by one goroutine, before anything is heard.
type sharedWatches struct {
	cache cache.Cache
	of    map[reflect.Type]*sharedWatch
}

func newSharedWatches(c cache.Cache) *sharedWatches {
	return &sharedWatches{cache: c, of: map[reflect.Type]*sharedWatch{}}
}

// source is where a controller hears of the kind of the object what all the predicates let through. It hears nothing before
// all controllers that asked for a source of the kind have started theirs: what was there at the start is told once.
func (s *sharedWatches) source(object client.Object, of handler.EventHandler, only ...predicate.Predicate) source.Source {
	kind := reflect.TypeOf(object)
	watch := s.of[kind]
	if watch == nil {
		watch = &sharedWatch{begun: make(chan struct{})}
		watch.SyncingSource = source.Kind[client.Object](s.cache, object, watch)
		s.of[kind] = watch
	}
	watch.sharers++
	return &sharer{sharedWatch: watch, hearer: hearer{handler: of, only: predicate.And(only...)}}
}

// sharedWatch is the handler of a kind, and its source. It passes on to all who hear of the kind.
type sharedWatch struct {
	source.SyncingSource
	sharers int
	// begun is closed once all of them hear.
	begun chan struct{}

	mu sync.Mutex
	// hearers are all there before the first of them is told anything, and do not change then.
	hearers []hearer
}

// hearer is a controller that hears of the kind what its predicate lets through.
type hearer struct {
	handler handler.EventHandler
	only    predicate.Predicate
	queue   requests
}

// sharer is the source of one controller.
type sharer struct {
	*sharedWatch
	hearer hearer
}

// Start has the controller hear by its queue. The last has the watch begin.
func (s *sharer) Start(ctx context.Context, queue requests) error {
	s.hearer.queue = queue
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hearers = append(s.hearers, s.hearer)
	if len(s.hearers) < s.sharers {
		return nil
	}
	if err := s.SyncingSource.Start(ctx, queue); err != nil {
		return err
	}
	close(s.begun)
	return nil
}

// WaitForSync returns once the controller has heard of all that was there at the start.
func (s *sharer) WaitForSync(ctx context.Context) error {
	select {
	case <-s.begun:
		return s.SyncingSource.WaitForSync(ctx)
	case <-ctx.Done():
		return fmt.Errorf("waiting until all controllers watch %s: %w", s, ctx.Err())
	}
}

// String names the source in logs.
func (s *sharer) String() string { return fmt.Sprint(s.SyncingSource) }

// Create passes the event on.
func (s *sharedWatch) Create(ctx context.Context, e event.CreateEvent, _ requests) {
	for _, h := range s.hearers {
		if h.only.Create(e) {
			h.handler.Create(ctx, e, h.queue)
		}
	}
}

// Update passes the event on.
func (s *sharedWatch) Update(ctx context.Context, e event.UpdateEvent, _ requests) {
	for _, h := range s.hearers {
		if h.only.Update(e) {
			h.handler.Update(ctx, e, h.queue)
		}
	}
}

// Delete passes the event on.
func (s *sharedWatch) Delete(ctx context.Context, e event.DeleteEvent, _ requests) {
	for _, h := range s.hearers {
		if h.only.Delete(e) {
			h.handler.Delete(ctx, e, h.queue)
		}
	}
}

// Generic passes the event on.
func (s *sharedWatch) Generic(ctx context.Context, e event.GenericEvent, _ requests) {
	for _, h := range s.hearers {
		if h.only.Generic(e) {
			h.handler.Generic(ctx, e, h.queue)
		}
	}
}
