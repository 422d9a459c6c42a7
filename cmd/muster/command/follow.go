package command

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/musterhq/muster/cmd/muster/observe"
	"github.com/musterhq/muster/cmd/muster/show"
	"github.com/musterhq/muster/cmd/muster/view"
)

// minRefreshInterval is the minimum time between two refreshes of --watch: a busy cluster changes all the time.
const minRefreshInterval = 100 * time.Millisecond

// pauseAfter returns how long to pause after a refresh that took so long. It grows with the cluster, of which each
// refresh shows all: with 10,000 jobs the command would otherwise use a core.
func pauseAfter(took time.Duration) time.Duration { return max(minRefreshInterval, 4*took) }

// follower displays values repeatedly. tick, which may be nil, triggers a refresh even if nothing has changed.
type follower[T any] struct {
	update func([]T) error
	report func(line string)
	tick   <-chan time.Time
	// started reports whether there was a refresh before, lost whether the API server did not answer at the last one.
	started, lost bool
}

// follow implements --watch: on a terminal it redraws the table on changes and every second; elsewhere, and in formats
// for programs, it appends what changed. It returns nil when ctx ends.
func follow[T any](ctx context.Context, streams genericiooptions.IOStreams, cluster *observe.Cluster,
	scope observe.Scope,
	output *outputFlags, r renderer[T], list func(*view.Snapshot, time.Time) ([]T, error),
	changes *show.Changes[T]) error {
	write, err := printerOf(streams.Out, output, r)
	if err != nil {
		return err
	}
	watch, err := cluster.Watch(ctx, scope)
	if err != nil {
		return err
	}
	f := appending(streams, write, changes)
	if size, ok := show.Terminal(streams.Out); ok && output.isTable() {
		ticker := time.NewTicker(time.Second)
		defer ticker.Stop()
		f = redrawing(streams, size, output, r, ticker.C)
	}
	for {
		began := time.Now()
		err := f.refresh(ctx, watch, list)
		pause := pauseAfter(time.Since(began))
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-watch.Changes():
		case <-f.tick:
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
	}
}

// refresh displays the current values. It also prints messages, each only when it is new: about kinds and objects left
// out, and about the API server ceasing to answer or answering again.
func (f *follower[T]) refresh(ctx context.Context, watch *observe.Watch,
	list func(*view.Snapshot, time.Time) ([]T, error)) error {
	snapshot, err := watch.Snapshot(ctx)
	if err != nil {
		return err
	}
	if !f.started {
		reportUnseen(f.report, snapshot.Unseen)
		f.started = true
	}
	if why := watch.Lost(); (why != nil) != f.lost {
		f.lost = why != nil
		f.report(answerMessage(why))
	}
	reportUnwatchable(f.report, watch.Unwatchable())
	reportUnreadable(f.report, snapshot.Unreadable)
	values, err := list(snapshot, time.Now())
	if err != nil {
		return err
	}
	return f.update(values)
}

// appending returns a follower that prints only values that have changed.
func appending[T any](streams genericiooptions.IOStreams, write func([]T) error, changes *show.Changes[T]) follower[T] {
	return follower[T]{report: lineTo(streams.ErrOut), update: func(values []T) error {
		if changed := changes.Next(values); len(changed) > 0 {
			return write(changed)
		}
		return nil
	}}
}

// redrawing returns a follower that redraws the whole table in place, also at each tick so that durations advance.
func redrawing[T any](streams genericiooptions.IOStreams, size show.Size, output *outputFlags, r renderer[T],
	tick <-chan time.Time) follower[T] {
	screen := show.NewScreen(streams.Out, size, show.ColourWanted())
	f := follower[T]{report: lineTo(streams.ErrOut), tick: tick, update: func(values []T) error {
		lines, err := show.Lines(r.table(values), output.tableOptions())
		if err == nil {
			screen.Draw(lines)
		}
		return err
	}}
	if _, same := show.Terminal(streams.ErrOut); same {
		f.report = screen.Print // otherwise the next redraw would overwrite it
	}
	return f
}

// answerMessage is the message for an API server that stopped answering, for the reason lost, or that answers again
// (nil).
func answerMessage(lost error) string {
	if lost == nil {
		return "muster: the API server answers again"
	}
	if apierrors.IsUnauthorized(lost) {
		// The credentials were read when the command started and are not reloaded.
		return "muster: " + oneLine(lost.Error()) +
			": log in again and restart this command; the output shows the last known state"
	}
	return "muster: " + oneLine(explainConnection(lost).Error()) +
		"; the output shows the last known state, and continues once it answers"
}

// reportUnreadable reports the jobs that are left out since they cannot be decoded, one per line.
func reportUnreadable(report func(line string), jobs []view.Unreadable) {
	for _, job := range jobs {
		report(fmt.Sprintf("muster: %s %s of namespace %s is left out, since it cannot be read: %s: fix it with `muster kubectl edit -n %s %s %s`",
			job.Resource, job.Name, job.Namespace, oneLine(job.Why.Error()), job.Namespace, job.Resource, job.Name))
	}
}

// reportUnseen reports the kinds of jobs that are left out because the user may not list them.
func reportUnseen(report func(line string), kinds []string) {
	// Without ClusterQueues only time limits are missing.
	kinds = slices.DeleteFunc(slices.Clone(kinds), func(kind string) bool { return kind == "clusterqueues" })
	if len(kinds) > 0 {
		report("muster: you may not list " + strings.Join(kinds, ", ") +
			": these jobs are left out, unless they have Workloads")
	}
}

// reportUnwatchable reports the kinds that the user may not watch, whose displayed state may be outdated.
func reportUnwatchable(report func(line string), kinds []string) {
	if len(kinds) > 0 {
		report("muster: you may not watch " + strings.Join(kinds, ", ") +
			": they are listed again about once a minute, as long as you may list them, and shown as of then")
	}
}

// lineTo returns a function that writes lines to out, the error output, so that programs reading the standard output do
// not see them.
func lineTo(out io.Writer) func(line string) {
	return func(line string) { _, _ = io.WriteString(out, line+"\n") }
}

// emptyNote reports, on the error output, that nothing was found.
func emptyNote(out io.Writer, what, namespace string) {
	if namespace == "" {
		_, _ = io.WriteString(out, "No "+what+" found.\n")
		return
	}
	_, _ = io.WriteString(out, "No "+what+" found in "+namespace+" namespace.\n")
}
