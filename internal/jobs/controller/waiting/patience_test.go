package waiting

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	lattice "github.com/musterhq/muster/api/lattice/v1alpha1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/write"
)

// TestStatusDelay checks that a status with only counts is always deferred, one that yields only while the API server
// is busy, and one that writes depend on never.
func TestStatusDelay(t *testing.T) {
	const every = 5 * time.Second
	for name, tc := range map[string]struct {
		plan        jobs.Plan
		quiet, busy time.Duration
	}{
		"other status":         {jobs.Plan{}, 0, 0},
		"counts":               {jobs.Plan{StatusCanWait: true}, every, every},
		"yields":               {jobs.Plan{StatusYields: true}, 0, busyStatusDelay},
		"counts, yields":       {jobs.Plan{StatusCanWait: true, StatusYields: true}, every, busyStatusDelay},
		"status first, yields": {jobs.Plan{Batch: write.Batch{StatusFirst: true}, StatusYields: true}, 0, 0},
	} {
		if quiet, busy := StatusDelayOf(tc.plan, every, false), StatusDelayOf(tc.plan, every, true); quiet != tc.quiet ||
			busy != tc.busy {
			t.Errorf("%s: %s, and %s while the API server is busy; want %s and %s", name, quiet, busy, tc.quiet, tc.busy)
		}
	}
}

// TestYieldingStatusIsWrittenOnceTheAPIServerIsQuiet, or when it has been deferred for busyStatusDelay, together with
// its events. Until then it is checked every few seconds whether the API server is still busy. The next status may be
// deferred for as long again.
func TestYieldingStatusIsWrittenOnceTheAPIServerIsQuiet(t *testing.T) {
	start := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	job := &lattice.LatticeJob{ObjectMeta: metav1.ObjectMeta{Name: "job", Namespace: "ns"}}
	running := job.DeepCopy()
	running.Status.Phase = lattice.Running
	var c Deferrals
	holdBack := func(after time.Duration, busy bool) jobs.Plan {
		plan := jobs.Plan{Batch: write.Batch{Status: running, Events: []write.Event{{Reason: "Submitted", WithStatus: true}}},
			StatusYields: true}
		return c.HoldBackStatus(job, plan, StatusDelayOf(plan, 0, busy), start.Add(after))
	}
	for _, round := range []string{"first", "second"} {
		for _, busy := range []struct{ after, due time.Duration }{
			{0, busyStatusCheck}, {time.Second, time.Second + busyStatusCheck}, {busyStatusDelay - time.Second, busyStatusDelay},
		} {
			if p := holdBack(busy.after, true); p.Status != nil || len(p.Events) != 0 || !p.Due.Equal(start.Add(busy.due)) {
				t.Errorf("%s, busy after %s: status %v and events %v are written, due %s; want neither, due after %s", round,
					busy.after, p.Status, p.Events, p.Due, busy.due)
			}
		}
		after := time.Second // not busy any more
		if round == "second" {
			after = busyStatusDelay
		}
		if now := holdBack(after, round == "second"); now.Status == nil || len(now.Events) != 1 {
			t.Errorf("%s, at last: status %v and events %v are written, want the status and one event", round,
				now.Status, now.Events)
		}
	}
}
