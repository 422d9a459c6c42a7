package jobs

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	lattice "github.com/musterhq/muster/api/lattice/v1alpha1"
)

// TestStatusDelay checks that a status with only counts is always held back, one that users may wait for while the API
// server is busy, and one that writes depend on never.
func TestStatusDelay(t *testing.T) {
	const every = 5 * time.Second
	for name, tc := range map[string]struct {
		plan        Plan
		quiet, busy time.Duration
	}{
		"news":                            {Plan{}, 0, 0},
		"counts":                          {Plan{StatusCanWait: true}, every, every},
		"people may wait for it":          {Plan{StatusYields: true}, 0, busyStatusDelay},
		"they may, and nobody does":       {Plan{StatusCanWait: true, StatusYields: true}, every, busyStatusDelay},
		"they may, but the writes cannot": {Plan{StatusFirst: true, StatusYields: true}, 0, 0},
	} {
		if quiet, busy := tc.plan.statusDelay(every, false), tc.plan.statusDelay(every, true); quiet != tc.quiet || busy != tc.busy {
			t.Errorf("%s: %s, and %s while the API server is busy; want %s and %s", name, quiet, busy, tc.quiet, tc.busy)
		}
	}
}

// TestYieldingStatusIsWrittenOnceTheAPIServerIsQuiet, with its events, or when it has waited for long enough, and from
// then on without delay.
func TestYieldingStatusIsWrittenOnceTheAPIServerIsQuiet(t *testing.T) {
	began := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	job := &lattice.LatticeJob{ObjectMeta: metav1.ObjectMeta{Name: "job", Namespace: "ns"}}
	told := job.DeepCopy()
	told.Status.Phase = lattice.Running
	var c deferrals
	look := func(after time.Duration, busy bool) Plan {
		plan := Plan{Status: told, StatusYields: true, Events: []Event{{Reason: "Submitted", WithStatus: true}}}
		return c.holdBackStatus(job, plan, plan.statusDelay(0, busy), began.Add(after))
	}
	for _, round := range []string{"first", "second"} {
		kept := look(0, true)
		if kept.Status != nil || len(kept.Events) != 0 || !kept.Due.Equal(began.Add(busyStatusDelay)) {
			t.Errorf("%s: while it is busy %v and %v are told, due %s", round, kept.Status, kept.Events, kept.Due)
		}
		if later := look(time.Second, true); later.Status != nil || !later.Due.Equal(began.Add(busyStatusDelay)) {
			t.Errorf("%s: a later look puts it off to %s", round, later.Due)
		}
		after := time.Second // it is quiet by then
		if round == "second" {
			after = busyStatusDelay
		}
		if now := look(after, round == "second"); now.Status == nil || len(now.Events) != 1 {
			t.Errorf("%s: then %v and %v are told", round, now.Status, now.Events)
		}
	}
}
