package order

import (
	"cmp"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

type item struct {
	turn, name int
	place      Place
}

func (i *item) before(other *item) bool { return compareItems(i, other) < 0 }

func compareItems(a, b *item) int {
	return cmp.Or(cmp.Compare(a.turn, b.turn), cmp.Compare(a.name, b.name))
}

// TestHeapIsASortedList: after any additions, moves, removals and changes of several keys, the heap has the members of
// a list, the first of them first, and each member knows whether it is in the heap and whether it is the first.
func TestHeapIsASortedList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		guests := make([]*item, 8)
		for i := range guests {
			guests[i] = &item{name: i}
		}
		heap := NewHeap((*item).before, func(g *item) *Place { return &g.place })
		var list []*item
		drop := func(g *item) { list = slices.DeleteFunc(list, func(o *item) bool { return o == g }) }
		some := func(t *rapid.T) *item { return rapid.SampledFrom(guests).Draw(t, "item") }
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
					t.Skip("the heap is empty")
				}
				if g, want := heap.Pop(), slices.MinFunc(list, compareItems); g != want {
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
					t.Fatalf("Len = %d, All has %d, want %d", heap.Len(), len(heap.All()), len(list))
				}
				for _, g := range guests {
					if in := slices.Contains(list, g); g.place.In() != in {
						t.Fatalf("item %d: In = %v, want %v", g.name, g.place.In(), in)
					}
				}
				if got := slices.Collect(heap.Sorted); !slices.IsSortedFunc(got, compareItems) || len(got) != len(list) {
					t.Fatalf("Sorted yields %d items, want %d in order", len(got), len(list))
				}
				before, found := rapid.IntRange(0, 5).Draw(t, "before"), 0
				heap.While(func(g *item) bool {
					if g.turn < before {
						found++
					}
					return g.turn < before
				})
				if want := len(slices.DeleteFunc(slices.Clone(list),
					func(g *item) bool { return g.turn >= before })); found != want {
					t.Fatalf("While found %d items before turn %d, want %d", found, before, want)
				}
				if len(list) == 0 {
					return
				}
				first := slices.MinFunc(list, compareItems)
				if heap.First() != first || !first.place.IsFirst() {
					t.Fatalf("first = item %d, want item %d, whose IsFirst = %v", heap.First().name, first.name, first.place.IsFirst())
				}
			},
		})
	})
}
