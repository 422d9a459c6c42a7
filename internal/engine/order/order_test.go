package order

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestQueueGivesBackInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var q Queue
		want := map[Key]Rank{}
		for range rapid.IntRange(0, 50).Draw(t, "operations") {
			r := Rank{
				Priority: rapid.Int32Range(-2, 2).Draw(t, "priority"),
				Since:    time.Unix(rapid.Int64Range(0, 3).Draw(t, "since"), 0),
				Key:      Key{Name: rapid.StringMatching("[a-e]").Draw(t, "name")},
			}
			if rapid.Bool().Draw(t, "remove") {
				_, there := want[r.Key]
				if got := q.Remove(r.Key); got != there {
					t.Fatalf("Remove(%v) = %v, want %v", r.Key, got, there)
				}
				delete(want, r.Key)
			} else {
				q.Push(r)
				want[r.Key] = r
			}
		}
		var got []Rank
		for q.Len() > 0 {
			head, _ := q.Peek()
			if popped := q.Pop(); popped != head {
				t.Fatalf("Peek returned %v, Pop %v", head, popped)
			} else {
				got = append(got, popped)
			}
		}
		if len(got) != len(want) || !slices.IsSortedFunc(got, Compare) {
			t.Fatalf("popped %v, want %v in order", got, want)
		}
	})
}
