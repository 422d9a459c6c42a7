package listwatch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// listThenWatch opens a watch with initial events as a list that is decoded object by object, followed by a plain watch
// from the list's version. For the API server that is about half the work: for a watch with initial events it copies
// each object, encodes it twice, and sends it separately.
type listThenWatch struct {
	lists     listReader
	newObject func() (runtime.Object, error)
	// list requests a list.
	list func(context.Context, metav1.ListOptions) (io.ReadCloser, error)
	// watch starts a watch at a version.
	watch func(context.Context, metav1.ListOptions) (watch.Interface, error)
	// onUnreadable is told of unreadable objects.
	onUnreadable UnreadableFunc
}

// maxAhead is how many objects of a list are decoded ahead of the consumer.
const maxAhead = 64

// open starts a watch with initial events, as the options request.
func (l listThenWatch) open(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	asked := metav1.ListOptions{ResourceVersion: options.ResourceVersion}
	if asked.ResourceVersion != "" {
		asked.ResourceVersionMatch = options.ResourceVersionMatch
	}
	ctx, cancel := context.WithCancel(ctx)
	body, err := l.list(ctx, asked)
	if err != nil {
		cancel()
		return nil, err
	}
	out := &channelWatch{events: make(chan watch.Event, maxAhead), stop: cancel}
	options.SendInitialEvents, options.ResourceVersionMatch = nil, ""
	go func() {
		defer close(out.events)
		defer cancel()
		if err := l.run(ctx, body, options, out.events); err != nil {
			send(ctx, out.events, watch.Event{Type: watch.Error, Object: statusOf(err)})
		}
	}()
	return out, nil
}

// run sends the objects of the list, then the bookmark that ends the initial events, then the changes, until the
// watch ends.
func (l listThenWatch) run(ctx context.Context, body io.ReadCloser, options metav1.ListOptions,
	events chan<- watch.Event) error {
	version, err := l.sendList(ctx, body, events)
	if err != nil {
		return fmt.Errorf("reading a list: %w", err)
	}
	options.ResourceVersion = version
	changes, err := l.watch(ctx, options)
	if err != nil {
		return err
	}
	context.AfterFunc(ctx, changes.Stop) // ends the watch with this one
	mark, err := l.initialEventsEnd(version)
	if err != nil {
		return err
	}
	if err := send(ctx, events, watch.Event{Type: watch.Bookmark, Object: mark}); err != nil {
		return err
	}
	return l.forward(ctx, changes, events)
}

// sendList sends the objects of the list, and returns its version.
func (l listThenWatch) sendList(ctx context.Context, body io.ReadCloser,
	events chan<- watch.Event) (version string, err error) {
	defer body.Close()
	list, err := l.lists.read(body, func(object runtime.Object) error {
		return send(ctx, events, watch.Event{Type: watch.Added, Object: object})
	})
	if err == nil && (list.ResourceVersion == "" || list.Continue != "") {
		err = errors.New("it is truncated")
	}
	return list.ResourceVersion, err
}

// initialEventsEnd returns the bookmark that ends the initial events.
func (l listThenWatch) initialEventsEnd(version string) (runtime.Object, error) {
	mark, err := l.newObject()
	if err != nil {
		return nil, err
	}
	object := mark.(metav1.Object)
	object.SetResourceVersion(version)
	object.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
	return mark, nil
}

// resume starts a watch at a version, as the options say.
func (l listThenWatch) resume(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	ctx, cancel := context.WithCancel(ctx)
	changes, err := l.watch(ctx, options)
	if err != nil {
		cancel()
		return nil, err
	}
	context.AfterFunc(ctx, changes.Stop)
	out := &channelWatch{events: make(chan watch.Event), stop: cancel}
	go func() {
		defer close(out.events)
		defer cancel()
		_ = l.forward(ctx, changes, out.events) // an error of the watch itself was passed on as an event
	}()
	return out, nil
}

// forward forwards the readable events of a watch until it or the context ends.
func (l listThenWatch) forward(ctx context.Context, changes watch.Interface, events chan<- watch.Event) error {
	for change := range changes.ResultChan() {
		change, is := l.filterUnreadable(change)
		if !is {
			continue
		}
		if err := send(ctx, events, change); err != nil {
			return err
		}
	}
	return nil
}

// send sends an event, unless the context ends.
func send(ctx context.Context, events chan<- watch.Event, event watch.Event) error {
	select {
	case events <- event:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// statusOf converts the error to the Status object of a watch error.
func statusOf(err error) runtime.Object {
	var apiError apierrors.APIStatus
	if errors.As(err, &apiError) {
		status := apiError.Status()
		return &status
	}
	return apierrors.NewClientErrorReporter(http.StatusInternalServerError, http.MethodGet,
		"ClientWatchDecoding").AsObject(err)
}

// channelWatch is a watch that open or resume has started.
type channelWatch struct {
	events chan watch.Event
	stop   context.CancelFunc
}

// ResultChan implements watch.Interface.
func (c *channelWatch) ResultChan() <-chan watch.Event { return c.events }

// Stop implements watch.Interface.
func (c *channelWatch) Stop() { c.stop() }
