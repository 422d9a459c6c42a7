package engine

import "testing"

// TestWhoGoesBeforeAPromiseInAStrictQueueIsLookedAt: and who goes behind it is told so.
func TestWhoGoesBeforeAPromiseInAStrictQueueIsLookedAt(t *testing.T) {
	e := New(Options{})
	q := strict(queueOf("q", "", 4))
	q.Preemption.WithinQueue = 1 // LowerPriority
	story(e, defaultFlavor, q, localOf("q"), job("low", "q", 3, 1, 0, 0))
	confirmed := job("low", "q", 3, 1, 0, 0)
	confirmed.Admission = e.Holds(confirmed.Key)
	story(e, confirmed)
	story(e, job("promised", "q", 2, 1, 5, 1))
	if got := story(e, job("behind", "q", 1, 1, 0, 2)); len(got) != 1 {
		t.Errorf("who stands behind was told %q", got)
	}
	if got := story(e, job("urgent", "q", 1, 1, 9, 3)); len(got) != 1 || got[0] != "admit urgent in q" {
		t.Errorf("who goes before was told %q", got)
	}
}
