package admission

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/musterhq/muster/internal/admission/admissiontest"
	"github.com/musterhq/muster/internal/admission/translate"
	"github.com/musterhq/muster/internal/config"
	"github.com/musterhq/muster/internal/metrics/metricstest"
)

// TestWaitingJobsAreCheckedOnceASecond: while a job waits, the loop comes back each second to check one, and records
// that in the decision log. Nothing is missed.
func TestWaitingJobsAreCheckedOnceASecond(t *testing.T) {
	w := admissiontest.NewWorld(t)
	clock := clocktesting.NewFakeClock(admissiontest.Now)
	l := newLoop(manager{feed: &feed{world: w}}, config.Default(), clock)
	path := filepath.Join(t.TempDir(), "decisions.log")
	log, err := openDecisionLog(path, translate.EngineOptions(config.Default()))
	if err != nil {
		t.Fatal(err)
	}
	l.log = log
	before := metricstest.Values(t)["muster_engine_missed_wakes_total"]
	for _, o := range []client.Object{admissiontest.Namespace.DeepCopy(), admissiontest.NewFlavor("f"),
		admissiontest.NewClusterQueue("cq", "4"), admissiontest.NewLocalQueue("q", "cq"),
		admissiontest.NewWorkload("large", 5, quantities("cpu", "1"))} {
		l.mailbox.put(message{changed: o})
	}
	for range 3 {
		l.turn()
		l.checkWaiting(t.Context())
		if want := clock.Now().Add(time.Second); !l.engine.CheckDue().Equal(want) {
			t.Errorf("the next check is due at %v, want %v", l.engine.CheckDue(), want)
		}
		clock.Step(time.Second)
	}
	log.close()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(text), `{"check":`); n != 3 {
		t.Errorf("%d checks in the decision log, want 3", n)
	}
	if missed := metricstest.Values(t)["muster_engine_missed_wakes_total"] - before; missed != 0 {
		t.Errorf("%v jobs were missed, want none", missed)
	}
}
