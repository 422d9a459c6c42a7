package simulate

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/musterhq/muster/internal/plain"
)

// mostName bounds the name of a queue in the table, so that a line has at most 80 columns.
const mostName = 12

// Table prints the rows as a table for people, of at most 80 columns.
func (o *Outcome) Table(to io.Writer) error {
	queues, all := o.Rows()
	all.Queue = "all"
	rows, names, width := append(queues, all), []string{"QUEUE"}, len("QUEUE")
	var numbers bytes.Buffer
	table := tabwriter.NewWriter(&numbers, 0, 0, 1, ' ', tabwriter.AlignRight)
	cell := func(seconds int64) string { return duration.HumanDuration(time.Duration(seconds) * time.Second) }
	_, _ = fmt.Fprintln(table, "JOBS\tMEAN\tMEDIAN\tP90\tP99\tLONGEST\tBSLD\tUSED\tKEPT\tLATE\t")
	for _, r := range rows {
		name, used := plain.Cut(plain.Text(r.Queue), mostName), "-"
		names, width = append(names, name), max(width, utf8.RuneCountInString(name))
		if r.Utilization != nil {
			used = fmt.Sprintf("%.0f%%", *r.Utilization*100)
		}
		_, _ = fmt.Fprintf(table, "%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%d\t%d\t\n", r.Jobs, cell(r.Mean), cell(r.Median),
			cell(r.P90), cell(r.P99), cell(r.Longest), factor(r.Slowdown), used, r.Kept, r.Delayed)
	}
	_ = table.Flush() // to memory
	for _, name := range names {
		line, _ := numbers.ReadString('\n')
		if _, err := fmt.Fprintf(to, "%-*s%s", width, name, line); err != nil {
			return err
		}
	}
	for _, r := range queues {
		if r.NeverStarted == 0 {
			continue
		}
		if _, err := fmt.Fprintf(to, "never started in %s: %d (too large, or not accepted)\n",
			plain.Cut(plain.Text(r.Queue), mostName), r.NeverStarted); err != nil {
			return err
		}
	}
	return nil
}

// factor formats a slowdown in few characters.
func factor(slowdown float64) string {
	if slowdown >= 1000 {
		return fmt.Sprintf("%.0f", slowdown)
	}
	return fmt.Sprintf("%.1f", slowdown)
}

// JSON prints the rows for programs.
func (o *Outcome) JSON(to io.Writer) error {
	queues, all := o.Rows()
	text, err := json.MarshalIndent(struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Queues     []Row  `json:"queues"`
		All        Row    `json:"all"`
	}{"cli.muster.dev/v1", "Simulation", queues, all}, "", "  ")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(to, "%s\n", text)
	return err
}

// CSV writes a line for each job: its queue, its size, and in seconds since the first job when it was submitted,
// started and ended, and how long it waited. What never happened is empty.
func (o *Outcome) CSV(to io.Writer) error {
	w := csv.NewWriter(to)
	_ = w.Write([]string{"job", "queue", "size", "submitted", "started", "ended", "waited"})
	for i := range o.jobs {
		j, waited, took := &o.jobs[i], o.result.Waited[i], o.result.Took[i]
		line := []string{j.Name, j.Namespace + "/" + j.Queue, strconv.FormatInt(sizeOf(j, o.name), 10), inSeconds(j.Arrives),
			"", "", ""}
		if waited >= 0 {
			line[4], line[6] = inSeconds(j.Arrives+waited), inSeconds(waited)
		}
		if took >= 0 {
			line[5] = inSeconds(j.Arrives + took)
		}
		_ = w.Write(line)
	}
	w.Flush()
	return w.Error() // that of any write
}

// inSeconds formats a time as seconds, with fractions only where there are any.
func inSeconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) }
