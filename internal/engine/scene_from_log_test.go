package engine_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/google/go-cmp/cmp"

	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/engine/record"
)

var fromLog = flag.String("log", "", "decision log that TestSceneFromLog writes as a scene; an absolute path")

// TestSceneFromLog writes the decision log that -log names into testdata/scenes, as a scene with the recorded
// decisions. TestScenes plays it then. `make scene LOG=FILE` calls it.
func TestSceneFromLog(t *testing.T) {
	if *fromLog == "" {
		t.Skip("-log names no decision log")
	}
	log, err := os.Open(*fromLog)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	text, err := sceneOf(log)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("testdata", "scenes", strings.TrimSuffix(filepath.Base(*fromLog), filepath.Ext(*fromLog))+".txt")
	out, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := out.WriteString(text); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	t.Logf("wrote internal/engine/%s", path)
}

// sceneOf returns the scene of a decision log: a scene for each run, with the recorded decisions.
func sceneOf(log io.Reader) (string, error) {
	defer func(former time.Time) { epoch = former }(epoch)
	var steps []record.Step
	if err := record.Read(log, func(step record.Step) error {
		steps = append(steps, step)
		return nil
	}); err != nil {
		return "", err
	}
	var l logWriter
	l.out.WriteString("# Say here what this decision log shows.\n\n")
	for n, step := range steps {
		if err := l.step(step, steps[n:]); err != nil {
			return "", err
		}
	}
	return l.out.String(), nil
}

// logWriter writes the scene of a decision log.
type logWriter struct {
	out bytes.Buffer
	// scene has the jobs as the events say that they are, and what was decided for them.
	scene *scene
	lines []string // of events since the last pass
}

func (l *logWriter) step(step record.Step, rest []record.Step) error {
	switch {
	case step.Begin != nil:
		return l.begin(*step.Begin, rest)
	case step.Event != nil:
		l.lines = append(l.lines, l.line(step.Event))
		l.scene.remembers(step.Event)
	case step.Pass != nil:
		var decisions []engine.Decision
		if err := json.Unmarshal(step.Decisions, &decisions); err != nil {
			return fmt.Errorf("reading decisions: %w", err)
		}
		var printed []string
		for _, d := range decisions {
			printed = append(printed, l.scene.format(d))
			l.scene.remember(d)
		}
		l.command("pass", *step.Pass, printed)
	case step.Check != nil:
		l.command("check", *step.Check, missedLines(step.Missed))
	default:
		fmt.Fprintf(&l.out, "# The rest of the run was not written: %s\n\n", step.Cut)
	}
	return nil
}

// begin writes the options of a run. Its times are written as the time since its first pass.
func (l *logWriter) begin(options engine.Options, rest []record.Step) error {
	l.scene, l.lines = emptyScene(), nil
	l.scene.options, l.scene.recorded, l.scene.messages = options, true, true
	for _, step := range rest {
		if step.Pass != nil {
			l.scene.began = step.Pass.Truncate(time.Second)
			break
		}
	}
	epoch = startOfScene
	words := optionWords.written(l.scene)
	if !l.scene.began.IsZero() {
		epoch = l.scene.began
	}
	fmt.Fprintf(&l.out, "%s\n----\n\n", strings.Join(append([]string{"scene"}, words...), " "))
	return nil
}

func (l *logWriter) command(name string, at time.Time, printed []string) {
	fmt.Fprintf(&l.out, "%s at=%s\n%s----\n%s\n", name, formatMoment(at), joinLines(l.lines), joinLines(printed))
	l.lines = nil
}

// line returns the line of an event. What a job holds is not written out if it was decided.
func (l *logWriter) line(ev engine.Event) string {
	set, ok := ev.(engine.WorkloadSet)
	if decided := l.scene.decided; ok && set.Admission != nil && cmp.Equal(set.Admission, decided[set.Key]) {
		set.Admission = nil
		if line := lineOf(set); strings.HasPrefix(line, "job ") {
			return line + " holding decided"
		}
	}
	return lineOf(ev)
}

// TestDecisionLogsBecomeScenes: the decision log of each scene becomes a scene that decides the same.
func TestDecisionLogsBecomeScenes(t *testing.T) {
	datadriven.Walk(t, "testdata/scenes", func(t *testing.T, path string) {
		var log bytes.Buffer
		datadriven.RunTest(t, path, player(&log))
		text, err := sceneOf(&log)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(text) {
			if strings.HasPrefix(line, "event ") {
				t.Errorf("there are no words for %s", line)
			}
		}
		datadriven.RunTestFromString(t, text, player(nil))
	})
}
