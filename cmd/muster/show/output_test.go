package show

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/yaml"

	"github.com/musterhq/muster/cmd/muster/view"
	"github.com/musterhq/muster/internal/plain"
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
		if at := strings.IndexFunc(strings.TrimSuffix(line, "\n"),
			func(r rune) bool { return r < ' ' || r == '\u009b' || r == '\u202e' || r == '\u2066' }); at >= 0 {
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

// Every character that a terminal may obey is escaped in JSON and YAML, which programs read as it was.
func TestJSONAndYAMLHaveNoControlCharacters(t *testing.T) {
	texts := []string{hostile, "plain", "true", "1e3", "two\nlines", "\ttab ", "\u2028", "a\u2029b\u2028", "# \u202e",
		"- \x7f: x", "'\u009d\"", "\u0085"}
	for r := rune(0); r < 0x2100; r++ {
		if plain.HasControls(string(r)) {
			texts = append(texts, string(r), "a"+string(r)+"\nb: "+string(r)+" ")
		}
	}
	for _, text := range texts {
		event := &corev1.Event{Message: text,
			ObjectMeta: metav1.ObjectMeta{Name: "e", Annotations: map[string]string{"x" + text: "y"}}}
		event.APIVersion, event.Kind = "v1", "Event"
		var out, raw bytes.Buffer
		printer := printers.JSONPrinter{}
		if err := printer.PrintObj(event, JSON(NewOutput(&out))); err != nil {
			t.Fatal(err)
		}
		if err := printer.PrintObj(event, &raw); err != nil {
			t.Fatal(err)
		}
		asYAML, err := YAML(raw.Bytes())
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		for format, printed := range map[string]string{"JSON": out.String(), "YAML": string(asYAML)} {
			if plain.HasControls(printed) {
				t.Errorf("%s of %q has control characters: %q", format, text, printed)
			}
			var read corev1.Event
			if err := yaml.Unmarshal([]byte(printed), &read); err != nil || read.Message != text ||
				read.Annotations["x"+text] != "y" {
				t.Errorf("%s of %q is read as %q, error %v: %s", format, text, read.Message, err, printed)
			}
		}
	}
}

// YAML is written as ever where no text has a control character, and in the same order where one has.
func TestYAMLIsThatOfKubectl(t *testing.T) {
	for given, want := range map[string]string{
		`{"b":["x",{"c":1}],"a":"true"}`:       "a: \"true\"\nb:\n- x\n- c: 1\n",
		`{"b":"\u202e","a":"true","c":"x: y"}`: "a: \"true\"\nb: \"\\u202e\"\nc: 'x: y'\n",
		`{"a":"\u009b2J"}`:                     "a: \"\\x9B2J\"\n",
	} {
		if got, err := YAML([]byte(given)); string(got) != want || err != nil {
			t.Errorf("YAML(%s) = %q, %v, want %q", given, got, err, want)
		}
	}
}

// TestLongTextsAreCut: an admission check's controller may write 32 KiB.
func TestLongTextsAreCut(t *testing.T) {
	job := pendingJob()
	job.Message = "begins " + strings.Repeat("x", 32768) + " ends"
	for wide, most := range map[bool]int{false: 600, true: 40000} {
		lines, err := Lines(JobTable([]view.Job{job}, false, tableTime), printers.PrintOptions{Wide: wide})
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
		t.Errorf("the first line has %d bytes, and the whole message is below: %t", len(first),
			strings.Contains(rest, " ends"))
	}
}

func TestTablesHaveNoControlCharacters(t *testing.T) {
	job, queue := pendingJob(), labQueue()
	job.Message, queue.Head.Message = hostile, hostile
	for _, wide := range []bool{false, true} {
		jobs, err := Lines(JobTable([]view.Job{job}, true, tableTime), printers.PrintOptions{Wide: wide})
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
