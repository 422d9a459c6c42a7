package engine

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestOrderedListKeepsTheOrderOfAdding: elements keep the order in which they were added, whatever is removed.
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
				at := rapid.IntRange(0, len(want)-1).Draw(t, "removed")
				want[at].queueEntry.remove()
				want = slices.Delete(want, at, at+1)
			default:
				r.moveTo(other)
				r, other = other, r
			}
			if r.len() != len(want) || len(want) > 0 && r.first() != want[0] {
				t.Fatalf("the list has %d elements, want %d, or its first element is wrong", r.len(), len(want))
			}
		}
		for _, w := range want {
			if r.first() != w {
				t.Fatal("the elements are not in the order of adding")
			}
			w.queueEntry.remove()
		}
		if r.first() != nil || r.len() != 0 {
			t.Fatal("the list is not empty after all elements were removed")
		}
	})
}
