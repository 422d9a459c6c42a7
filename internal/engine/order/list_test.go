package order

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestListKeepsTheOrderOfAdding: members keep the order in which they were added, whatever is removed.
func TestListKeepsTheOrderOfAdding(t *testing.T) {
	type member struct{ entry Entry[*member] }
	rapid.Check(t, func(t *rapid.T) {
		list, other := &List[*member]{}, &List[*member]{}
		var want []*member
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			switch kind := rapid.IntRange(0, 5).Draw(t, "kind"); {
			case kind < 3 || len(want) == 0:
				m := &member{}
				m.entry.Of = m
				list.Add(&m.entry)
				want = append(want, m)
			case kind < 5:
				at := rapid.IntRange(0, len(want)-1).Draw(t, "removed")
				want[at].entry.Remove()
				want = slices.Delete(want, at, at+1)
			default:
				MoveAll(&list, &other)
				list, other = other, list
			}
			if list.Len() != len(want) || len(want) > 0 && list.First() != want[0] {
				t.Fatalf("the list has %d members, want %d, or its first member is wrong", list.Len(), len(want))
			}
		}
		for _, m := range want {
			if list.First() != m || m.entry.On() != list {
				t.Fatal("the members are not in the order of adding")
			}
			m.entry.Remove()
		}
		if list.First() != nil || list.Len() != 0 {
			t.Fatal("the list is not empty after all members were removed")
		}
	})
}
