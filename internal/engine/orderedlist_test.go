package engine

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestOrderedListKeepsTheOrderOfAdding: whatever is removed in between.
func TestOrderedListKeepsTheOrderOfAdding(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r, other := &orderedList{}, &orderedList{}
		var want []*workload
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			switch kind := rapid.IntRange(0, 5).Draw(t, "kind"); {
			case kind < 3 || len(want) == 0:
				w := &workload{}
				w.queueEntry.w = w
				r.add(&w.queueEntry)
				want = append(want, w)
			case kind < 5:
				at := rapid.IntRange(0, len(want)-1).Draw(t, "struck off")
				want[at].queueEntry.remove()
				want = slices.Delete(want, at, at+1)
			default:
				r.moveTo(other)
				r, other = other, r
			}
			if r.len() != len(want) || len(want) > 0 && r.first() != want[0] {
				t.Fatalf("%d on the list, want %d; the first one is wrong", r.len(), len(want))
			}
		}
		for _, w := range want {
			if r.first() != w {
				t.Fatal("the order is lost")
			}
			w.queueEntry.remove()
		}
		if r.first() != nil || r.len() != 0 {
			t.Fatal("a workload is left")
		}
	})
}
