package watching

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

// SharedWatches lets the controllers of all job APIs share one event handler per informer for the kinds that they all
// watch. Most events concern one controller or none, and an informer passes every event to each of its handlers through
// two goroutines. Sources must be created by one goroutine, before any of them is started.
type SharedWatches struct {
	cache cache.Cache
	of    map[reflect.Type]*sharedWatch
}

func NewSharedWatches(c cache.Cache) *SharedWatches {
	return &SharedWatches{cache: c, of: map[reflect.Type]*sharedWatch{}}
}

// Source returns a source that passes on the events of the object's kind that all the predicates let through. Events
// are delivered once all controllers that asked for a source of this kind have started theirs, because the initial list
// is delivered only once.
func (s *SharedWatches) Source(object client.Object, of handler.EventHandler,
	only ...predicate.Predicate) source.Source {
	kind := reflect.TypeOf(object)
	watch := s.of[kind]
	if watch == nil {
		watch = &sharedWatch{started: make(chan struct{})}
		watch.SyncingSource = source.Kind[client.Object](s.cache, object, watch)
		s.of[kind] = watch
	}
	watch.expected++
	return &sharedSource{sharedWatch: watch, hearer: subscriber{handler: of, only: predicate.And(only...)}}
}

// sharedWatch is the handler and source of one kind. It passes events on to all controllers that share it.
type sharedWatch struct {
	source.SyncingSource
	expected int
	// started is closed once all sharers have started.
	started chan struct{}

	mu sync.Mutex
	// subscribers is complete, and does not change any more, before the first event is delivered.
	subscribers []subscriber
}

// subscriber is a controller that receives the events that its predicate lets through.
type subscriber struct {
	handler handler.EventHandler
	only    predicate.Predicate
	queue   Queue
}

// sharedSource is the source of one controller.
type sharedSource struct {
	*sharedWatch
	hearer subscriber
}

// Start registers the controller's queue. The last sharer starts the watch.
func (s *sharedSource) Start(ctx context.Context, queue Queue) error {
	s.hearer.queue = queue
	s.mu.Lock()
	defer s.mu.Unlock()
	s.subscribers = append(s.subscribers, s.hearer)
	if len(s.subscribers) < s.expected {
		return nil
	}
	if err := s.SyncingSource.Start(ctx, queue); err != nil {
		return err
	}
	close(s.started)
	return nil
}

// WaitForSync returns once the controller has received the initial list.
func (s *sharedSource) WaitForSync(ctx context.Context) error {
	select {
	case <-s.started:
		return s.SyncingSource.WaitForSync(ctx)
	case <-ctx.Done():
		return fmt.Errorf("waiting until all controllers watch %s: %w", s, ctx.Err())
	}
}

// String names the source in logs.
func (s *sharedSource) String() string { return fmt.Sprint(s.SyncingSource) }

// Create passes the event on.
func (s *sharedWatch) Create(ctx context.Context, e event.CreateEvent, _ Queue) {
	for _, h := range s.subscribers {
		if h.only.Create(e) {
			h.handler.Create(ctx, e, h.queue)
		}
	}
}

// Update passes the event on.
func (s *sharedWatch) Update(ctx context.Context, e event.UpdateEvent, _ Queue) {
	for _, h := range s.subscribers {
		if h.only.Update(e) {
			h.handler.Update(ctx, e, h.queue)
		}
	}
}

// Delete passes the event on.
func (s *sharedWatch) Delete(ctx context.Context, e event.DeleteEvent, _ Queue) {
	for _, h := range s.subscribers {
		if h.only.Delete(e) {
			h.handler.Delete(ctx, e, h.queue)
		}
	}
}

// Generic passes the event on.
func (s *sharedWatch) Generic(ctx context.Context, e event.GenericEvent, _ Queue) {
	for _, h := range s.subscribers {
		if h.only.Generic(e) {
			h.handler.Generic(ctx, e, h.queue)
		}
	}
}
