package command

import (
	"context"
	"fmt"
	"io"
	"time"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/musterhq/muster/cmd/muster/observe"
	"github.com/musterhq/muster/cmd/muster/show"
	"github.com/musterhq/muster/cmd/muster/view"
)

// pace bounds how often --watch looks anew: on a busy cluster something changes all the time.
const pace = 100 * time.Millisecond

// follow is --watch: on a terminal the table is redrawn as it changes and as time passes; elsewhere, and in formats for
// programs, what changed is appended. It ends with ctx, which is no error.
func follow[T any](ctx context.Context, streams genericiooptions.IOStreams, cluster *observe.Cluster, scope observe.Scope,
	output *outputFlags, r renderer[T], list func(*view.Seen, time.Time) ([]T, error), changes *show.Changes[T]) error {
	print, err := printerOf(streams.Out, output, r)
	if err != nil {
		return err
	}
	watch, err := cluster.Watch(ctx, scope)
	if err != nil {
		return explainConnection(err)
	}
	tellUnreadable(streams.ErrOut, watch.Unreadable)

	update := func(values []T) error {
		changed := changes.Next(values)
		if len(changed) == 0 {
			return nil
		}
		return print(changed)
	}
	var tick <-chan time.Time // only a redrawn table shows time passing
	if size, ok := show.Terminal(streams.Out); ok && output.isTable() {
		screen := show.NewScreen(streams.Out, size, show.ColourWanted())
		update = func(values []T) error {
			lines, err := show.Lines(r.table(values), output.tableOptions())
			if err == nil {
				screen.Draw(lines)
			}
			return err
		}
		ticker := time.NewTicker(time.Second)
		defer ticker.Stop()
		tick = ticker.C
	}

	for {
		seen, err := watch.See(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		values, err := list(seen, time.Now())
		if err == nil {
			err = update(values)
		}
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-watch.Changes():
		case <-tick:
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pace):
		}
	}
}

// tellUnreadable names the jobs that are left out, on the error output as emptyNote.
func tellUnreadable(out io.Writer, jobs []view.Unreadable) {
	for _, job := range jobs {
		_, _ = fmt.Fprintf(out, "muster: %s %s of namespace %s is left out, it cannot be read: %s: mend it by `muster kubectl edit -n %s %s %s`\n",
			job.Resource, job.Name, job.Namespace, oneLine(job.Why.Error()), job.Namespace, job.Resource, job.Name)
	}
}

// emptyNote is told on the error output, so that a program that reads the other one sees nothing.
func emptyNote(out io.Writer, what, namespace string) {
	if namespace == "" {
		_, _ = io.WriteString(out, "No "+what+" found.\n")
		return
	}
	_, _ = io.WriteString(out, "No "+what+" found in "+namespace+" namespace.\n")
}
