package engine

import "testing"

// TestPodsWithoutQuotaCountUntilTheyAreGone: what they use is given to no others, and the workload itself waits until
// then.
func TestPodsWithoutQuotaCountUntilTheyAreGone(t *testing.T) {
	e := New(Options{})
	runs := job("runs", "q", 3, 1, 0, 0)
	runs.Unheld = true
	if got := story(e, defaultFlavor, queueOf("q", "", 4), localOf("q"), runs); len(got) != 1 {
		t.Fatalf("decided %q about one whose pods are being stopped", got)
	}
	if got := story(e, job("other", "q", 2, 1, 9, 1)); len(got) != 1 || e.Holds(Key{Namespace: "ns", Name: "other"}) != nil {
		t.Errorf("another was given what pods use: %q", got)
	}
	runs.Unheld = false
	if got := story(e, runs); len(got) != 2 || got[0] != "admit other in q" {
		t.Errorf("once they are gone: %q, want the first in order", got)
	}
}
