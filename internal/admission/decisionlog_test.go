package admission

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/admission/admissiontest"
	"github.com/musterhq/muster/internal/admission/translate"
	"github.com/musterhq/muster/internal/config"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/engine/record"
	"github.com/musterhq/muster/internal/workload"
)

// TestTheDecisionLogOfALoopReplays: a replay of the recorded events of two runs gives the recorded decisions.
func TestTheDecisionLogOfALoopReplays(t *testing.T) {
	path := filepath.Join(t.TempDir(), "decisions.log")
	for range 2 {
		log, err := openDecisionLog(path, translate.EngineOptions(config.Default()))
		if err != nil {
			t.Fatal(err)
		}
		r, stop := startRecorded(t, log, admissiontest.Namespace.DeepCopy(), admissiontest.NewFlavor("f"),
			admissiontest.NewClusterQueue("cq", "4"), admissiontest.NewLocalQueue("q", "cq"),
			admissiontest.NewWorkload("a", 3, quantities("cpu", "1")), admissiontest.NewWorkload("b", 2, quantities("cpu", "1")),
			admissiontest.NewWorkload("c", 5, quantities("cpu", "1")))
		r.waitFor("a", isAdmitted)
		r.updateStatus("a", func(w *kueue.Workload) {
			w.Status.Conditions = append(w.Status.Conditions,
				metav1.Condition{Type: kueue.WorkloadFinished, Status: metav1.ConditionTrue})
		})
		r.waitFor("b", isAdmitted)
		stop()
	}

	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode of the log = %v (%v), want 0600: it names the jobs of all users", info.Mode(), err)
	}
	got, err := record.Replay(file)
	if err != nil || got.Difference != nil || got.Cut != "" {
		t.Fatalf("replay = %+v, %v, want no difference", got, err)
	}
	if got.Runs != 2 || got.Decisions < 6 {
		t.Errorf("got %d runs and %d decisions, want 2 and 3 each at least", got.Runs, got.Decisions)
	}
}

// TestTheEngineLearnsOfEachRunOnce: of one that ended before the start, and of one that ends later.
func TestTheEngineLearnsOfEachRunOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "decisions.log")
	log, err := openDecisionLog(path, translate.EngineOptions(config.Default()))
	if err != nil {
		t.Fatal(err)
	}
	finish := func(w *kueue.Workload) {
		workload.SetCondition(w, kueue.WorkloadFinished, metav1.ConditionTrue, kueue.WorkloadFinishedReasonSucceeded, "",
			admissiontest.Now.Add(1000*time.Hour))
	}
	old := admissiontest.AdmittedWorkload("old")
	finish(old)
	r, stop := startRecorded(t, log, admissiontest.Namespace.DeepCopy(), admissiontest.NewFlavor("f"),
		admissiontest.NewClusterQueue("cq", "4"), admissiontest.NewLocalQueue("q", "cq"), old,
		admissiontest.NewWorkload("a", 3, quantities("cpu", "1")), admissiontest.NewWorkload("b", 2, quantities("cpu", "1")))
	r.waitFor("a", isAdmitted)
	r.updateStatus("a", func(w *kueue.Workload) {
		w.Status.Conditions = slices.DeleteFunc(w.Status.Conditions, func(c metav1.Condition) bool {
			return c.Type == kueue.WorkloadAdmitted
		})
		workload.SetCondition(w, kueue.WorkloadAdmitted, metav1.ConditionTrue, "Admitted", "", admissiontest.Now)
		finish(w)
	})
	r.waitFor("b", isAdmitted)
	r.updateStatus("old", func(*kueue.Workload) {})
	stop()
	written, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(written), `"event":"RunEnded"`); n != 2 {
		t.Errorf("the engine was told of %d runs, want of 2", n)
	}
}

// disk is a file whose writes block until released.
type disk struct {
	strings.Builder
	release chan struct{}
}

func (d *disk) Write(text []byte) (int, error) {
	<-d.release
	return d.Builder.Write(text)
}
func (d *disk) Close() error { return nil }

func TestAStalledDiskEndsTheLogButNotTheLoop(t *testing.T) {
	still := &disk{release: make(chan struct{})}
	log := &decisionLog{file: newBacklog(still, 1000)}
	var err error
	if log.log, err = record.Begin(log.file, engine.Options{}); err != nil {
		t.Fatal(err)
	}
	for range 1000 {
		log.recordEvent(engine.FlavorDeleted{Name: "f"}) // returns at once
	}
	close(still.release)
	log.close()
	got, err := record.Replay(strings.NewReader(still.String()))
	if err != nil || got.Cut != errSlowDisk.Error() {
		t.Errorf("replay = %+v, %v, want a log that was cut", got, err)
	}
}

type fullDisk struct{ disk }

func (*fullDisk) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func TestAFullDiskEndsTheLog(t *testing.T) {
	b := newBacklog(&fullDisk{}, 1000)
	if _, err := b.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err == nil {
		t.Error("Close returned no error, want that of the full disk")
	}
}

// hiccup is a file whose first write fails, and no other.
type hiccup struct {
	disk
	writes chan struct{}
	failed bool
}

func (h *hiccup) Write(text []byte) (int, error) {
	if h.failed {
		return h.disk.Write(text)
	}
	h.failed = true
	h.writes <- struct{}{}
	<-h.release
	return 0, errors.New("no space left")
}

// TestNothingFollowsAGapInTheLog: a replay of it would find differences that there are not.
func TestNothingFollowsAGapInTheLog(t *testing.T) {
	d := &hiccup{disk: disk{release: make(chan struct{})}, writes: make(chan struct{})}
	b := newBacklog(d, 1000)
	for i, text := range []string{"lost", "waits meanwhile"} {
		if _, err := b.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			<-d.writes
		}
	}
	close(d.release)
	if err := b.Close(); err == nil || d.String() != "" {
		t.Errorf("Close returned %v, and %q was written, want an error and nothing", err, d.String())
	}
}

func TestALogThatCannotBeOpenedIsRefused(t *testing.T) {
	if _, err := openDecisionLog(t.TempDir(), engine.Options{}); err == nil ||
		!strings.Contains(err.Error(), "opening the decision log") {
		t.Errorf("got error %v, want one about opening the log", err)
	}
}
