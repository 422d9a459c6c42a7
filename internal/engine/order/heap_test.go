package order

import (
	"cmp"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

type guest struct {
	turn, name int
	place      Place
}

func (g *guest) before(other *guest) bool { return compareGuests(g, other) < 0 }

func compareGuests(a, b *guest) int {
	return cmp.Or(cmp.Compare(a.turn, b.turn), cmp.Compare(a.name, b.name))
}

// TestHeapIsASortedList: after any additions, moves, removals and changes of several keys, the heap has the same
// members as a list, the first of them first, and each knows whether it is in the heap and whether it is the first.
func TestHeapIsASortedList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		guests := make([]*guest, 8)
		for i := range guests {
			guests[i] = &guest{name: i}
		}
		heap := NewHeap((*guest).before, func(g *guest) *Place { return &g.place })
		var list []*guest
		drop := func(g *guest) { list = slices.DeleteFunc(list, func(o *guest) bool { return o == g }) }
		some := func(t *rapid.T) *guest { return rapid.SampledFrom(guests).Draw(t, "guest") }
		turn := rapid.IntRange(0, 4)
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				g := some(t)
				g.turn = turn.Draw(t, "turn")
				drop(g)
				list = append(list, g)
				heap.Put(g)
			},
			"remove": func(t *rapid.T) {
				g := some(t)
				drop(g)
				heap.Remove(g)
			},
			"pop": func(t *rapid.T) {
				if len(list) == 0 {
					t.Skip("nobody is there")
				}
				if g, want := heap.Pop(), slices.MinFunc(list, compareGuests); g != want {
					t.Fatalf("popped %d, want %d", g.name, want.name)
				} else {
					drop(g)
				}
			},
			"rearrange": func(t *rapid.T) {
				for _, g := range list {
					g.turn = turn.Draw(t, "turn")
				}
				heap.Rearrange()
			},
			"": func(t *rapid.T) {
				if heap.Len() != len(list) || len(heap.All()) != len(list) {
					t.Fatalf("%d members, %d listed, want %d", heap.Len(), len(heap.All()), len(list))
				}
				for _, g := range guests {
					if in := slices.Contains(list, g); g.place.In() != in {
						t.Fatalf("%d says that he is in the heap: %v, want %v", g.name, g.place.In(), in)
					}
				}
				if len(list) == 0 {
					return
				}
				first := slices.MinFunc(list, compareGuests)
				if heap.First() != first || !first.place.IsFirst() {
					t.Fatalf("%d is first, want %d, who says so of himself: %v", heap.First().name, first.name, first.place.IsFirst())
				}
			},
		})
	})
}
