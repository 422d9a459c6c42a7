package show

import (
	"bytes"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/musterhq/muster/cmd/muster/view"
	"github.com/musterhq/muster/internal/plain"
)

// onlyWide is the priority of a column that is printed only with -o wide.
const onlyWide = 1

// textMost is how many characters of a text of others fit a cell of a table, or the first line of an explanation. The
// whole text is in -o wide, in -o json and further down in the explanation.
const textMost = 300

// Printable returns the table as it can be printed: each cell on one line, without control characters, and cut to
// textMost characters unless it is wide.
func Printable(table *metav1.Table, wide bool) *metav1.Table {
	for _, row := range table.Rows {
		for i, cell := range row.Cells {
			switch text, is := cell.(string); {
			case is && wide:
				row.Cells[i] = plain.Text(text)
			case is:
				row.Cells[i] = plain.Cut(text, textMost)
			}
		}
	}
	return table
}

// JobTable returns a table with a row for each job, as of now. withNamespace adds the column NAMESPACE.
func JobTable(jobs []view.Job, withNamespace bool, now time.Time) *metav1.Table {
	table := &metav1.Table{ColumnDefinitions: columns(
		"Job", "Queue", "Prio", "State", "Pods", "Resources", "Wait", "Run", "Why")}
	table.ColumnDefinitions = append(table.ColumnDefinitions,
		wideColumns("Cluster queue", "Workload", "Restarts", "All resources", "Created")...)
	for i := range jobs {
		job := &jobs[i]
		cells := []any{
			job.Title(), dash(job.Queue), priority(job), string(job.State), pods(job),
			dash(view.Amounts(job.Requests, false)), view.Seconds(job.WaitSeconds), view.Seconds(job.RunSeconds),
			dash(remarks(job, now)),
			dash(job.ClusterQueue), dash(job.Workload), int64(job.Restarts), dash(view.Amounts(job.Requests, true)),
			job.CreatedAt.UTC().Format("2006-01-02T15:04:05Z"),
		}
		table.Rows = append(table.Rows, metav1.TableRow{Cells: cells})
		if withNamespace {
			table.Rows[i].Cells = append([]any{job.Namespace}, cells...)
		}
	}
	if withNamespace {
		table.ColumnDefinitions = append(columns("Namespace"), table.ColumnDefinitions...)
	}
	return table
}

// priority returns the priority, or "-" for a job that does not queue.
func priority(job *view.Job) string {
	if job.Workload == "" {
		return "-"
	}
	return strconv.Itoa(int(job.Priority))
}

// pods returns ready/requested pods, for an elastic job with the range of its sizes.
func pods(job *view.Job) string {
	up := fmt.Sprintf("%d/%d", job.PodsReady, job.PodsAsked)
	switch {
	case job.PodsMost == 0 || job.State.HasOutcome():
		return up
	case job.ClusterQueue == "":
		return fmt.Sprintf("%d of %d..%d", job.PodsReady, job.PodsLeast, job.PodsMost)
	case job.PodsReady == job.PodsAsked:
		return fmt.Sprintf("%d of %d..%d", job.PodsAsked, job.PodsLeast, job.PodsMost)
	}
	return fmt.Sprintf("%s of %d..%d", up, job.PodsLeast, job.PodsMost)
}

// QueueTable returns a table with a row for each quota of each queue. What concerns the whole queue is in its first
// row.
func QueueTable(queues []view.Queue) *metav1.Table {
	table := &metav1.Table{ColumnDefinitions: columns(
		"Queue", "Cohort", "Flavor", "Resource", "Used", "Reserved", "Nominal", "Borrowed", "Pending", "Head",
		"Head waits for")}
	table.ColumnDefinitions = append(table.ColumnDefinitions, wideColumns("Admitted", "Active")...)
	for i := range queues {
		queue := &queues[i]
		quotas := queue.Quotas
		if len(quotas) == 0 {
			quotas = []view.Quota{{}} // a queue without quota has a row too
		}
		for j := range quotas {
			quota := &quotas[j]
			cells := []any{
				queue.Name, dash(queue.Cohort), dash(quota.Flavor), dash(string(quota.Resource)),
				view.Rounded(quota.Used), view.Rounded(quota.Reserved), nominal(quota), borrowed(quota),
			}
			if j == 0 {
				head, waitsFor := headOf(queue)
				cells = append(cells, int64(queue.Pending), head, waitsFor, int64(queue.Admitted), active(queue))
			} else {
				cells = append(cells, "", "", "", "", "")
			}
			table.Rows = append(table.Rows, metav1.TableRow{Cells: cells})
		}
	}
	return table
}

func nominal(quota *view.Quota) string {
	if quota.Unlimited {
		return "unlimited"
	}
	return view.Rounded(quota.Nominal)
}

func borrowed(quota *view.Quota) string {
	if quota.Borrowed.IsZero() {
		return "-"
	}
	return view.Rounded(quota.Borrowed)
}

func headOf(queue *view.Queue) (head, waitsFor string) {
	switch {
	case queue.Head == nil && !queue.Active:
		return "-", inactive(queue)
	case queue.Head == nil:
		return "-", "-"
	case !queue.Active:
		return queue.Head.Namespace + "/" + queue.Head.Job, inactive(queue)
	}
	return queue.Head.Namespace + "/" + queue.Head.Job, dash(short(join(queue.Head.Reason, queue.Head.Message)))
}

func inactive(queue *view.Queue) string {
	return "queue inactive: " + dash(join(queue.Reason, queue.Message))
}

func active(queue *view.Queue) string {
	if queue.Active {
		return "yes"
	}
	return "no"
}

// blame matches the prefix of a message about the first pod set that does not fit. Tables omit it.
var blame = regexp.MustCompile(`couldn't assign flavors to pod set \S+: `)

// exceeded matches Kueue's words for a request beyond the quota.
var exceeded = regexp.MustCompile(`insufficient quota for (\S+) in flavor (\S+), previously considered podsets requests \((\S+)\) \+ current podset request \((\S+)\) > maximum capacity \((\S+)\)`)

// short omits which pod set does not fit, and says in plain words what exceeds the quota.
func short(why string) string {
	return exceeded.ReplaceAllStringFunc(blame.ReplaceAllString(why, ""), func(some string) string {
		m := exceeded.FindStringSubmatch(some)
		asked := m[4]
		if m[3] != "0" {
			asked = m[3] + " + " + m[4]
		}
		return fmt.Sprintf("never with this quota: %s of %s asked in flavor %s, %s at most", asked, m[1], m[2], m[5])
	})
}

// remarks returns the text of the column WHY: what a job waits for or lacks, and of one that runs first the time that
// it has left.
func remarks(job *view.Job, now time.Time) string {
	why, times := Why(job), times(job, now)
	if why == "" || times == "" {
		return times + why
	}
	return times + "; " + why
}

// Why returns a job's reason and message, shortened for tables, and for whom it was stopped before it waited.
func Why(job *view.Job) string {
	why := short(job.Why())
	if job.Preempted == nil || strings.HasPrefix(job.Message, "was evicted: ") { // which says it too
		return why
	}
	return why + "; preempted " + job.Preempted.String()
}

func join(reason, message string) string {
	if reason == "" || message == "" {
		return reason + message
	}
	return reason + ": " + message
}

func dash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

func columns(names ...string) []metav1.TableColumnDefinition {
	defined := make([]metav1.TableColumnDefinition, 0, len(names))
	for _, name := range names {
		defined = append(defined, metav1.TableColumnDefinition{Name: name, Type: "string"})
	}
	return defined
}

func wideColumns(names ...string) []metav1.TableColumnDefinition {
	defined := columns(names...)
	for i := range defined {
		defined[i].Priority = onlyWide
	}
	return defined
}

// Lines renders a table as lines of text, the header first.
func Lines(table *metav1.Table, options printers.PrintOptions) ([]string, error) {
	var text bytes.Buffer
	if err := printers.NewTablePrinter(options).PrintObj(Printable(table, options.Wide), &text); err != nil {
		return nil, fmt.Errorf("print the table: %w", err)
	}
	lines := strings.Split(strings.TrimRight(text.String(), "\n"), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return lines, nil
}
