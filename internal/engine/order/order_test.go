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

// TestBefore: queues compare by their first ranks.
func TestBefore(t *testing.T) {
	var none, early, late Queue
	early.Push(Rank{Priority: 1, Key: Key{Name: "b"}})
	late.Push(Rank{Priority: 1, Key: Key{Name: "c"}})
	queues := []*Queue{&none, &early, &late}
	for i, a := range queues {
		for j, b := range queues {
			first, _ := a.Peek()
			second, _ := b.Peek()
			if got, want := a.Before(b), Compare(first, second) < 0; got != want {
				t.Errorf("queue %d before queue %d: %v, want %v", i, j, got, want)
			}
		}
	}
}
