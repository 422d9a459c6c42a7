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
)

// console is where the demo speaks: on a terminal lines scroll away above a picture of queues and jobs, elsewhere each
// change is a line. It is safe for concurrent use, for the cluster speaks too.
type console struct {
	mu      sync.Mutex
	out     io.Writer
	begin   time.Time
	screen  *show.Screen // nil where there is no terminal
	phrases map[string]string
}

func newConsole(out io.Writer, begin time.Time) *console {
	c := &console{out: out, begin: begin, phrases: map[string]string{}}
	if size, ok := show.Terminal(out); ok {
		c.screen = show.NewScreen(out, size, show.ColourWanted())
	}
	return c
}

// redraws tells whether time passing is worth a new picture.
func (c *console) redraws() bool { return c.screen != nil }

// say writes lines that stay.
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

// picture shows where queues and jobs stand.
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
		func() ([]string, error) { return show.Lines(show.JobTable(jobs, true), printers.PrintOptions{}) },
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

// inUse leaves out queues that nobody uses and all but the first resource of each, which is the scarce one, or it would
// not be first: a picture has to fit a terminal.
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

// endPicture leaves the last picture where it is: what follows is written below it.
func (c *console) endPicture() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.screen != nil {
		c.screen.Leave()
	}
}

// changes writes a line for each queue and job whose phrase is new.
func (c *console) changes(queues []view.Queue, jobs []view.Job, now time.Time) {
	elapsed := now.Sub(c.begin).Seconds()
	for i := range jobs {
		if hasAnswer(&jobs[i]) { // the moment before the answer is no news
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
		phrase += "  " + why
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
