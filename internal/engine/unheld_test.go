package engine

import "testing"

// TestPodsWithoutQuotaCountUntilTheyAreGone: what such pods use is not given to others, and the workload itself is not
// admitted, until they are gone.
func TestPodsWithoutQuotaCountUntilTheyAreGone(t *testing.T) {
	e := New(Options{})
	runs := job("runs", "q", 3, 1, 0, 0)
	runs.Unheld = true
	if got := decisionsAfter(e, defaultFlavor, queueOf("q", "", 4), localOf("q"), runs); len(got) != 1 {
		t.Fatalf("got decisions %q, want one reason for the workload whose pods are being stopped", got)
	}
	if got := decisionsAfter(e, job("other", "q", 2, 1, 9, 1)); len(got) != 1 || e.Holds(Key{Namespace: "ns", Name: "other"}) != nil {
		t.Errorf("got decisions %q, want the quota of the pods given to no other", got)
	}
	runs.Unheld = false
	if got := decisionsAfter(e, runs); len(got) != 2 || got[0] != "admit other in q" {
		t.Errorf("after the pods are gone: got decisions %q, want the first in order admitted", got)
	}
}
