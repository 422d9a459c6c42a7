package show

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/printers"

	"github.com/musterhq/muster/cmd/muster/view"
)

// hostile is what a user may write into a name or a message; tamed is how it is printed.
const (
	hostile = "bad \x1b[31mRED\x1b[0m \x1b]0;title\a \u009b2J \u202egpj.exe\u2066\nml/job/other is running"
	tamed   = `bad \x1b[31mRED\x1b[0m \x1b]0;title\x07 \u009b2J \u202egpj.exe\u2066\nml/job/other is running`
)

func TestExplanationHasNoControlCharacters(t *testing.T) {
	job := pendingJob()
	job.Message = hostile
	e := &view.Explanation{
		Job: job, Warning: &view.Warning{Reason: "Evicted", Message: hostile + "2"},
		PodProblems: []view.PodProblem{{Pods: 1, Example: "p", Reason: "ImagePullBackOff", Message: hostile}},
		Checks:      []view.Check{{Name: "c", State: "Pending", Message: hostile}},
	}
	var out bytes.Buffer
	if err := Explanation(&out, e); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(out.String()) {
		if at := strings.IndexFunc(strings.TrimSuffix(line, "\n"), func(r rune) bool { return r < ' ' || r == '\u009b' || r == '\u202e' || r == '\u2066' }); at >= 0 {
			t.Errorf("line %q has a control character", line)
		}
		if strings.HasPrefix(line, "ml/job/other") {
			t.Errorf("line %q is forged", line)
		}
	}
	if n := strings.Count(out.String(), tamed); n < 3 {
		t.Errorf("the text is shown %d times, want 3 or more:\n%s", n, out.String())
	}
}

// TestLongTextsAreCut: an admission check's controller may write 32 KiB.
func TestLongTextsAreCut(t *testing.T) {
	job := pendingJob()
	job.Message = "begins " + strings.Repeat("x", 32768) + " ends"
	for wide, most := range map[bool]int{false: 600, true: 40000} {
		lines, err := Lines(JobTable([]view.Job{job}, false), printers.PrintOptions{Wide: wide})
		if err != nil {
			t.Fatal(err)
		}
		if row := lines[1]; len(row) > most || strings.Contains(row, " ends") != wide {
			t.Errorf("wide %t: a row of %d bytes", wide, len(row))
		}
	}
	var out bytes.Buffer
	if err := Explanation(&out, &view.Explanation{Job: job}); err != nil {
		t.Fatal(err)
	}
	first, rest, _ := strings.Cut(out.String(), "\n")
	if len(first) > 600 || !strings.Contains(rest, " ends") {
		t.Errorf("the first line has %d bytes, and the whole message is below: %t", len(first), strings.Contains(rest, " ends"))
	}
}

func TestTablesHaveNoControlCharacters(t *testing.T) {
	job, queue := pendingJob(), labQueue()
	job.Message, queue.Head.Message = hostile, hostile
	for _, wide := range []bool{false, true} {
		jobs, err := Lines(JobTable([]view.Job{job}, true), printers.PrintOptions{Wide: wide})
		if err != nil {
			t.Fatal(err)
		}
		queues, err := Lines(QueueTable([]view.Queue{queue}), printers.PrintOptions{Wide: wide})
		if err != nil {
			t.Fatal(err)
		}
		if len(jobs) != 2 || !strings.Contains(jobs[1], tamed) || len(queues) != 3 || !strings.Contains(queues[1], tamed) {
			t.Errorf("wide %t: got\n%q\n%q", wide, jobs, queues)
		}
	}
}

// TestOutput: the writer of all commands, and the screen that redraws a table on it.
func TestOutput(t *testing.T) {
	var file bytes.Buffer
	out := NewOutput(&file)
	fmt.Fprintf(out, "a\t%s\n", "\x1b[2J\a")
	screen := NewScreen(out, func() (int, int) { return 80, 24 }, false)
	screen.Draw([]string{"picture \x1b[2J"})
	screen.Print("line \u202e\nof one")
	fmt.Fprint(Programs(out), "{\"as\": \"it is \u202e\"}\n")
	want := "a\t\\x1b[2J\\x07\npicture \\x1b[2J\n\x1b[1A\x1b[Jline \\u202e\\nof one\npicture \\x1b[2J\n{\"as\": \"it is \u202e\"}\n"
	if got := file.String(); got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}
