package command

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/musterhq/muster/cmd/muster/observe"
	"github.com/musterhq/muster/cmd/muster/show"
	"github.com/musterhq/muster/cmd/muster/view"
)

// listing implements a command that lists values of one kind, once or with --watch.
type listing[T any] struct {
	// what is the plural noun for the values, used if there are none.
	what string
	// forbidden is appended to the error if the user may not read the scope; if empty, explainConnection's advice is
	// used.
	forbidden string
	config    *genericclioptions.ConfigFlags
	output    *outputFlags
	watch     bool
	renderer  renderer[T]
	// scope returns what to read, and the namespace that the values are limited to ("" for all).
	scope func() (scope observe.Scope, namespace string, err error)
	list  func(snapshot *view.Snapshot, namespace string, now time.Time) []T
	// complete, unless nil, adds to the values of a single listing what takes more requests.
	complete func(ctx context.Context, cluster *observe.Cluster, namespace string, values []T) error
	// changes selects the changed values for output that is appended.
	changes *show.Changes[T]
}

func (l *listing[T]) run(ctx context.Context, streams genericiooptions.IOStreams) error {
	write, err := printerOf(streams.Out, l.output, l.renderer)
	if err != nil {
		return err
	}
	order, err := newSorter(l.output.sortBy)
	if err != nil {
		return err
	}
	cluster, err := connect(ctx, l.config)
	if err != nil {
		return err
	}
	scope, namespace, err := l.scope()
	if err != nil {
		return err
	}
	list := func(snapshot *view.Snapshot, now time.Time) ([]T, error) {
		values := l.list(snapshot, namespace, now)
		return values, sortValues(order, values)
	}
	if l.watch {
		return l.explain(follow(ctx, streams, cluster, scope, l.output, l.renderer, list, l.changes))
	}
	snapshot, err := cluster.Snapshot(ctx, scope)
	if err != nil {
		return l.explain(err)
	}
	reportUnseen(lineTo(streams.ErrOut), snapshot.Unseen)
	reportUnreadable(lineTo(streams.ErrOut), snapshot.Unreadable)
	found, err := list(snapshot, time.Now())
	if err != nil {
		return err
	}
	if l.complete != nil {
		if err := l.complete(ctx, cluster, namespace, found); err != nil {
			return l.explain(err)
		}
	}
	if len(found) == 0 && l.output.isTable() {
		emptyNote(streams.ErrOut, l.what, namespace)
		return nil
	}
	return write(found)
}

// explain appends, to an error of the first read, what the user can do about it.
func (l *listing[T]) explain(err error) error {
	if l.forbidden != "" && apierrors.IsForbidden(err) {
		return fmt.Errorf("%w: %s", err, l.forbidden)
	}
	return explainConnection(err)
}
