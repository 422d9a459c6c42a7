package command

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/musterhq/muster/cmd/muster/observe"
	"github.com/musterhq/muster/cmd/muster/show"
	"github.com/musterhq/muster/cmd/muster/view"
)

// pace bounds how often --watch looks anew: on a busy cluster something changes all the time.
const pace = 100 * time.Millisecond

// follower shows values again and again. tick, which may be nil, is when to look anew though nothing has changed.
type follower[T any] struct {
	update func([]T) error
	tell   func(line string)
	tick   <-chan time.Time
	// begun and lost tell whether there was a look before, and whether the API server did not answer then.
	begun, lost bool
}

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
		return err
	}
	f := appending(streams, print, changes)
	if size, ok := show.Terminal(streams.Out); ok && output.isTable() {
		ticker := time.NewTicker(time.Second)
		defer ticker.Stop()
		f = redrawing(streams, size, output, r, ticker.C)
	}
	for {
		err := f.look(ctx, watch, list)
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
		case <-time.After(pace):
		}
	}
}

// look shows what there is now, and tells what is left out of it and whether the API server answers, as far as that is news.
func (f *follower[T]) look(ctx context.Context, watch *observe.Watch, list func(*view.Seen, time.Time) ([]T, error)) error {
	seen, err := watch.See(ctx)
	if err != nil {
		return err
	}
	if !f.begun {
		tellUnseen(f.tell, seen.Unseen)
		f.begun = true
	}
	if why := watch.Lost(); (why != nil) != f.lost {
		f.lost = why != nil
		f.tell(howItAnswers(why))
	}
	tellRefused(f.tell, watch.Refused())
	tellUnreadable(f.tell, seen.Unreadable)
	values, err := list(seen, time.Now())
	if err != nil {
		return err
	}
	return f.update(values)
}

// appending prints what has changed.
func appending[T any](streams genericiooptions.IOStreams, print func([]T) error, changes *show.Changes[T]) follower[T] {
	return follower[T]{tell: lineTo(streams.ErrOut), update: func(values []T) error {
		if changed := changes.Next(values); len(changed) > 0 {
			return print(changed)
		}
		return nil
	}}
}

// redrawing draws a table in place of the last one: only so does it show that time passes, at each tick.
func redrawing[T any](streams genericiooptions.IOStreams, size show.Size, output *outputFlags, r renderer[T], tick <-chan time.Time) follower[T] {
	screen := show.NewScreen(streams.Out, size, show.ColourWanted())
	f := follower[T]{tell: lineTo(streams.ErrOut), tick: tick, update: func(values []T) error {
		lines, err := show.Lines(r.table(values), output.tableOptions())
		if err == nil {
			screen.Draw(lines)
		}
		return err
	}}
	if _, same := show.Terminal(streams.ErrOut); same {
		f.tell = screen.Print // else the next picture would be drawn over it
	}
	return f
}

// howItAnswers says that an API server ceased to answer, and why, or that it answers again.
func howItAnswers(lost error) string {
	if lost == nil {
		return "muster: the API server answers again"
	}
	if apierrors.IsUnauthorized(lost) {
		// The credentials were read when the command began.
		return "muster: " + oneLine(lost.Error()) + ": log in again and start this command anew; what is shown is as of before"
	}
	return "muster: " + oneLine(explainConnection(lost).Error()) + "; what is shown is as of before, and goes on once it answers"
}

// tellUnreadable names the jobs that are left out, a line each.
func tellUnreadable(tell func(line string), jobs []view.Unreadable) {
	for _, job := range jobs {
		tell(fmt.Sprintf("muster: %s %s of namespace %s is left out, it cannot be read: %s: mend it by `muster kubectl edit -n %s %s %s`",
			job.Resource, job.Name, job.Namespace, oneLine(job.Why.Error()), job.Namespace, job.Resource, job.Name))
	}
}

// tellUnseen names the kinds of jobs that are left out.
func tellUnseen(tell func(line string), kinds []string) {
	if len(kinds) > 0 {
		tell("muster: you may not list " + strings.Join(kinds, ", ") + ": these jobs are left out, but where their Workloads stand for them")
	}
}

// tellRefused names the kinds of which old news are shown.
func tellRefused(tell func(line string), kinds []string) {
	if len(kinds) > 0 {
		tell("muster: you may not watch " + strings.Join(kinds, ", ") + ": these are listed again about once a minute, as long as you may, and shown as they were then")
	}
}

// lineTo writes lines on the error output, as emptyNote: a program that reads the other one sees nothing of them.
func lineTo(out io.Writer) func(line string) {
	return func(line string) { _, _ = io.WriteString(out, line+"\n") }
}

// emptyNote says that there is nothing.
func emptyNote(out io.Writer, what, namespace string) {
	if namespace == "" {
		_, _ = io.WriteString(out, "No "+what+" found.\n")
		return
	}
	_, _ = io.WriteString(out, "No "+what+" found in "+namespace+" namespace.\n")
}
