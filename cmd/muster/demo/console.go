package demo

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"k8s.io/cli-runtime/pkg/printers"

	"github.com/musterhq/muster/cmd/muster/show"
	"github.com/musterhq/muster/cmd/muster/view"
	"github.com/musterhq/muster/internal/plain"
)

// console prints the demo's output: on a terminal, lines scroll above a picture of queues and jobs; elsewhere each
// change is a line. It is safe for concurrent use, because the cluster's own output goes through it too.
type console struct {
	mu      sync.Mutex
	out     io.Writer
	begin   time.Time
	screen  *show.Screen // nil if the output is not a terminal
	phrases map[string]string
}

func newConsole(out io.Writer, begin time.Time) *console {
	c := &console{out: out, begin: begin, phrases: map[string]string{}}
	if size, ok := show.Terminal(out); ok {
		c.screen = show.NewScreen(out, size, show.ColourWanted())
	}
	return c
}

// redraws reports whether the picture must be redrawn as time passes.
func (c *console) redraws() bool { return c.screen != nil }

// say prints lines that stay.
func (c *console) say(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, line := range strings.Split(fmt.Sprintf(format, args...), "\n") {
		if c.screen != nil {
			c.screen.Print(line)
		} else {
			_, _ = fmt.Fprintln(c.out, line)
		}
	}
}

// picture shows the state of queues and jobs.
func (c *console) picture(queues []view.Queue, jobs []view.Job, now time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.screen == nil {
		c.changes(queues, jobs, now)
		return nil
	}
	lines := []string{fmt.Sprintf("── %s ──", now.Sub(c.begin).Round(time.Second))}
	for _, table := range []func() ([]string, error){
		func() ([]string, error) { return show.Lines(show.QueueTable(inUse(queues)), printers.PrintOptions{}) },
		func() ([]string, error) {
			return show.Lines(show.JobTable(jobs, true, time.Now()), printers.PrintOptions{})
		},
	} {
		text, err := table()
		if err != nil {
			return err
		}
		if len(text) > 1 { // more than a header
			lines = append(append(lines, text...), "")
		}
	}
	c.screen.Draw(lines)
	return nil
}

// inUse returns the queues in use, each with its first resource only (the scarcest), so that the picture fits a
// terminal.
func inUse(queues []view.Queue) []view.Queue {
	var used []view.Queue
	for _, queue := range queues {
		if queue.Reserving > 0 || queue.Pending > 0 {
			queue.Quotas = queue.Quotas[:min(1, len(queue.Quotas))]
			used = append(used, queue)
		}
	}
	return used
}

// endPicture keeps the last picture on the screen; later output goes below it.
func (c *console) endPicture() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.screen != nil {
		c.screen.Leave()
	}
}

// changes prints a line for each queue and job whose description has changed.
func (c *console) changes(queues []view.Queue, jobs []view.Job, now time.Time) {
	elapsed := now.Sub(c.begin).Seconds()
	for i := range jobs {
		if hasAnswer(&jobs[i]) { // skip jobs that the operator has not reconciled yet
			c.change(elapsed, jobs[i].FullTitle(), jobPhrase(&jobs[i]))
		}
	}
	for i := range queues {
		if queues[i].Reserving == 0 && c.phrases["queue "+queues[i].Name] == "" {
			continue // nobody has used it yet
		}
		c.change(elapsed, "queue "+queues[i].Name, queuePhrase(&queues[i]))
	}
}

func (c *console) change(elapsed float64, subject, phrase string) {
	if c.phrases[subject] == phrase {
		return
	}
	c.phrases[subject] = phrase
	_, _ = fmt.Fprintf(c.out, "%6.1fs  %-26s  %s\n", elapsed, subject, phrase)
}

func jobPhrase(job *view.Job) string {
	phrase := fmt.Sprintf("%-9s  %d/%d pods", job.State, job.PodsReady, job.PodsAsked)
	if why := show.Why(job); why != "" {
		phrase += "  " + plain.Cut(why, 300)
	}
	return phrase
}

func queuePhrase(queue *view.Queue) string {
	var phrase strings.Builder
	if len(queue.Quotas) > 0 {
		quota := &queue.Quotas[0]
		fmt.Fprintf(&phrase, "%s of %s used", quota.Used.String(), view.Amount(quota.Resource, quota.Nominal))
	}
	if queue.Pending > 0 {
		fmt.Fprintf(&phrase, ", %d waiting", queue.Pending)
	}
	if queue.Head != nil {
		fmt.Fprintf(&phrase, ", next is %s/%s", queue.Head.Namespace, queue.Head.Job)
	}
	return phrase.String()
}
