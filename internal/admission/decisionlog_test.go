package admission

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/config"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/engine/record"
)

// TestTheDecisionLogOfALoopReplays: the recorded events of two runs give the recorded decisions.
func TestTheDecisionLogOfALoopReplays(t *testing.T) {
	path := filepath.Join(t.TempDir(), "decisions.log")
	for range 2 {
		log, err := openDecisionLog(path, engineOptions(config.Default()))
		if err != nil {
			t.Fatal(err)
		}
		r, stop := startRecorded(t, log, namespace.DeepCopy(), newFlavor("f"), newClusterQueue("cq", "4"), newLocalQueue("q", "cq"),
			newWorkload("a", 3, quantities("cpu", "1")), newWorkload("b", 2, quantities("cpu", "1")), newWorkload("c", 5, quantities("cpu", "1")))
		r.says("a", isAdmitted)
		r.changes("a", func(w *kueue.Workload) {
			w.Status.Conditions = append(w.Status.Conditions, metav1.Condition{Type: kueue.WorkloadFinished, Status: metav1.ConditionTrue})
		})
		r.says("b", isAdmitted)
		stop()
	}

	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the log has mode %v (%v), and names everybody's work", info.Mode(), err)
	}
	got, err := record.Replay(file)
	if err != nil || got.Difference != nil || got.Cut != "" {
		t.Fatalf("the replay gives %+v, %v", got, err)
	}
	if got.Runs != 2 || got.Decisions < 6 {
		t.Errorf("got %d runs and %d decisions, want 2 and 3 each at least", got.Runs, got.Decisions)
	}
}

// disk is a file whose writes block until it is released.
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
		t.Errorf("the replay gives %+v, %v; want a log that was cut", got, err)
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
		t.Error("nobody was told")
	}
}

func TestALogThatCannotBeOpenedIsRefused(t *testing.T) {
	if _, err := openDecisionLog(t.TempDir(), engine.Options{}); err == nil || !strings.Contains(err.Error(), "opening the decision log") {
		t.Errorf("got %v", err)
	}
}
