package engine

import (
	"fmt"
	"testing"
)

// TestALargeWorkloadIsNotStarvedByBorrowers (L2): what others gave back of its queue's
// own quota is kept for it, piece by piece.
func TestALargeWorkloadIsNotStarvedByBorrowers(t *testing.T) {
	e := New(Options{})
	steps := []Event{defaultFlavor, queueOf("own", "lab", 4), queueOf("other", "lab", 4), localOf("own"), localOf("other")}
	for i := range 8 {
		steps = append(steps, job(fmt.Sprintf("small%d", i), "other", 1, 1, 0, i))
	}
	story(e, steps...)
	story(e, job("large", "own", 4, 1, 0, 100))
	for i := range 4 {
		if e.Holds(Key{Namespace: "ns", Name: "large"}) != nil {
			t.Fatalf("large was admitted after %d ended", i)
		}
		story(e, job(fmt.Sprintf("next%d", i), "other", 1, 1, 9, i), gone(fmt.Sprintf("small%d", i)))
		if e.Holds(Key{Namespace: "ns", Name: fmt.Sprintf("next%d", i)}) != nil {
			t.Errorf("next%d borrows what large waits for", i)
		}
	}
	if e.Holds(Key{Namespace: "ns", Name: "large"}) == nil {
		t.Error("large waits though its queue's own quota is free")
	}
}

func TestTheRestOfAQueueSeesThroughWhatIsKeptForItsFirst(t *testing.T) {
	e := New(Options{})
	story(e, defaultFlavor, queueOf("own", "lab", 4), queueOf("other", "lab", 4), localOf("own"), localOf("other"),
		job("running", "other", 6, 1, 0, 0))
	if got := story(e, job("large", "own", 4, 1, 0, 1), job("small", "own", 1, 1, 0, 2)); len(got) != 2 || got[0] != "admit small in own" {
		t.Errorf("got %q, want small admitted under BestEffortFIFO", got)
	}
}

func TestWhatWasKeptIsLentAgainOnceNobodyWaitsForIt(t *testing.T) {
	e := New(Options{})
	story(e, defaultFlavor, queueOf("own", "lab", 4), queueOf("other", "lab", 4), localOf("own"), localOf("other"),
		job("running", "other", 6, 1, 0, 0))
	story(e, job("large", "own", 4, 1, 0, 1))
	if got := story(e, job("b", "other", 2, 1, 0, 2)); len(got) != 1 || e.Holds(Key{Namespace: "ns", Name: "b"}) != nil {
		t.Errorf("b borrows what large waits for: %q", got)
	}
	if got := story(e, gone("large")); len(got) != 1 || got[0] != "admit b in other" {
		t.Errorf("once large is gone: %q", got)
	}
}
