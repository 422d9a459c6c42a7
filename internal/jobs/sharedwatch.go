package jobs

import (
	"context"
	"reflect"
	"slices"
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

// source is where a controller hears of the kind of the object what all the predicates let through. What was there at the start it may
// miss: it looks at each of its jobs then.
func (s *sharedWatches) source(object client.Object, of handler.EventHandler, only ...predicate.Predicate) source.Source {
	kind := reflect.TypeOf(object)
	watch := s.of[kind]
	if watch == nil {
		watch = &sharedWatch{}
		watch.SyncingSource = source.Kind[client.Object](s.cache, object, watch)
		s.of[kind] = watch
	}
	return &sharer{sharedWatch: watch, hearer: hearer{handler: of, only: predicate.And(only...)}}
}

// sharedWatch is the handler of a kind, and its source. It passes on to all who hear of the kind.
type sharedWatch struct {
	source.SyncingSource
	start sync.Once
	err   error // of the start

	mu      sync.RWMutex
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

// Start has the controller hear by its queue. The first has the others' watch begin.
func (s *sharer) Start(ctx context.Context, queue requests) error {
	s.hearer.queue = queue
	s.mu.Lock()
	s.hearers = append(slices.Clip(s.hearers), s.hearer)
	s.mu.Unlock()
	s.start.Do(func() { s.err = s.SyncingSource.Start(ctx, queue) })
	return s.err
}

// all are those who hear of the kind by now.
func (s *sharedWatch) all() []hearer {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.hearers
}

// Create passes the event on.
func (s *sharedWatch) Create(ctx context.Context, e event.CreateEvent, _ requests) {
	for _, h := range s.all() {
		if h.only.Create(e) {
			h.handler.Create(ctx, e, h.queue)
		}
	}
}

// Update passes the event on.
func (s *sharedWatch) Update(ctx context.Context, e event.UpdateEvent, _ requests) {
	for _, h := range s.all() {
		if h.only.Update(e) {
			h.handler.Update(ctx, e, h.queue)
		}
	}
}

// Delete passes the event on.
func (s *sharedWatch) Delete(ctx context.Context, e event.DeleteEvent, _ requests) {
	for _, h := range s.all() {
		if h.only.Delete(e) {
			h.handler.Delete(ctx, e, h.queue)
		}
	}
}

// Generic passes the event on.
func (s *sharedWatch) Generic(ctx context.Context, e event.GenericEvent, _ requests) {
	for _, h := range s.all() {
		if h.only.Generic(e) {
			h.handler.Generic(ctx, e, h.queue)
		}
	}
}
