package durations

import (
	"fmt"
	"testing"
	"time"
)

// TestTheLastRunsCount: older ones are forgotten, so that a kind that became slower is known to be slow soon.
func TestTheLastRunsCount(t *testing.T) {
	l := NewLearner()
	known := &Known{Kind: "a"}
	if _, _, ok := l.About(known); ok {
		t.Error("something is known of a kind without runs")
	}
	for range 20 {
		l.Note(known, time.Second)
	}
	for range remembered {
		l.Note(known, time.Hour)
	}
	if usual, cautious, ok := l.About(known); !ok || usual != time.Hour || cautious != 90*time.Minute {
		t.Errorf("usual %s, cautious %s, known %v; want 1h, 1h30m", usual, cautious, ok)
	}
}

// TestQuantilesAreOfWholeRuns: three of four runs are within the usual time, nine of ten within two thirds of the
// cautious one.
func TestQuantilesAreOfWholeRuns(t *testing.T) {
	l := NewLearner()
	for i, want := range []struct{ usual, longest time.Duration }{{1, 1}, {2, 2}, {3, 3}, {3, 4}, {4, 5}, {5, 6}, {6, 7},
		{6, 8}} {
		l.Note(&Known{Wider: "u"}, time.Duration(i+1)*time.Minute)
		usual, cautious, _ := l.About(&Known{Kind: "unknown", Wider: "u"})
		if usual != want.usual*time.Minute || cautious != want.longest*time.Minute*3/2 {
			t.Errorf("after %d runs: usual %s, cautious %s, want %d and %d minutes times 1.5", i+1, usual, cautious,
				want.usual, want.longest)
		}
	}
}

// TestMemoryIsBounded: the kind whose last run is longest ago is forgotten first.
func TestMemoryIsBounded(t *testing.T) {
	l := NewLearner()
	kind := func(i int) *Known { return &Known{Kind: fmt.Sprint(i)} }
	for i := range mostKinds {
		l.Note(kind(i), time.Minute)
	}
	l.Note(kind(0), time.Minute)
	l.Note(kind(mostKinds), time.Minute)
	if l.Len() != mostKinds {
		t.Errorf("%d kinds are remembered, want %d", l.Len(), mostKinds)
	}
	for i, want := range map[int]bool{0: true, 1: false, 2: true, mostKinds: true} {
		if _, _, ok := l.About(kind(i)); ok != want {
			t.Errorf("kind %d is remembered %v, want %v", i, ok, want)
		}
	}
	l.Note(&Known{}, time.Hour)
	if l.Len() != mostKinds {
		t.Error("a workload without a kind is remembered")
	}
}
