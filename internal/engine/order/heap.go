package order

import "container/heap"

// Heap gives access to the first of its members. Each member stores its Place, so that it can be moved or removed:
// Put, Pop and Remove take time logarithmic in Len. Create one with NewHeap.
type Heap[T any] struct{ members members[T] }

// Place is the position of a member in a Heap; the zero Place means that it is in none.
type Place struct {
	after int // one more than the index
}

// In reports whether the member is in the heap.
func (p Place) In() bool { return p.after > 0 }

// IsFirst reports whether the member is the first of its heap.
func (p Place) IsFirst() bool { return p.after == 1 }

// NewHeap returns an empty heap ordered by before. place returns where a member stores its Place, which only the heap
// may change.
func NewHeap[T any](before func(a, b T) bool, place func(T) *Place) Heap[T] {
	return Heap[T]{members[T]{before: before, place: place}}
}

// Len returns the number of members.
func (h *Heap[T]) Len() int { return len(h.members.list) }

// First returns the first member. The heap must not be empty.
func (h *Heap[T]) First() T { return h.members.list[0] }

// All returns the members in no particular order. The slice must be neither modified nor retained.
func (h *Heap[T]) All() []T { return h.members.list }

// While calls do with the first member and, in no particular order, with those after each one for which it returns
// true. So it finds all that satisfy a condition without a look at all others, if those before any such member satisfy
// it too.
func (h *Heap[T]) While(do func(T) bool) { h.while(0, do) }

func (h *Heap[T]) while(at int, do func(T) bool) {
	if at < h.Len() && do(h.members.list[at]) {
		h.while(2*at+1, do)
		h.while(2*at+2, do)
	}
}

// Sorted yields the members in order. It takes time for those that it yields, not for the others.
func (h *Heap[T]) Sorted(yield func(T) bool) {
	if h.Len() == 0 {
		return
	}
	next := frontier[T]{of: h, at: []int{0}}
	for next.Len() > 0 {
		i := heap.Pop(&next).(int)
		if !yield(h.members.list[i]) {
			return
		}
		for child := 2*i + 1; child <= 2*i+2 && child < h.Len(); child++ {
			heap.Push(&next, child)
		}
	}
}

// frontier is the indices of members of a heap of which those above were yielded.
type frontier[T any] struct {
	of *Heap[T]
	at []int
}

func (f *frontier[T]) Len() int           { return len(f.at) }
func (f *frontier[T]) Less(i, j int) bool { return f.of.members.Less(f.at[i], f.at[j]) }
func (f *frontier[T]) Swap(i, j int)      { f.at[i], f.at[j] = f.at[j], f.at[i] }
func (f *frontier[T]) Push(x any)         { f.at = append(f.at, x.(int)) }
func (f *frontier[T]) Pop() any {
	last := len(f.at) - 1
	out := f.at[last]
	f.at = f.at[:last]
	return out
}

// Put adds the member, or updates its position if it is already in the heap.
func (h *Heap[T]) Put(member T) {
	if p := h.members.place(member); p.In() {
		heap.Fix(&h.members, p.after-1)
		return
	}
	heap.Push(&h.members, member)
}

// Pop removes and returns the first member. The heap must not be empty.
func (h *Heap[T]) Pop() T { return heap.Pop(&h.members).(T) }

// Remove removes the member if it is in the heap.
func (h *Heap[T]) Remove(member T) {
	if p := h.members.place(member); p.In() {
		heap.Remove(&h.members, p.after-1)
	}
}

// Rearrange restores the order after the keys of several members may have changed.
func (h *Heap[T]) Rearrange() { heap.Init(&h.members) }

// members implements heap.Interface.
type members[T any] struct {
	list   []T
	before func(a, b T) bool
	place  func(T) *Place
}

func (m *members[T]) Len() int           { return len(m.list) }
func (m *members[T]) Less(i, j int) bool { return m.before(m.list[i], m.list[j]) }
func (m *members[T]) Swap(i, j int) {
	m.list[i], m.list[j] = m.list[j], m.list[i]
	m.place(m.list[i]).after, m.place(m.list[j]).after = i+1, j+1
}
func (m *members[T]) Push(x any) {
	m.list = append(m.list, x.(T))
	m.place(x.(T)).after = len(m.list)
}
func (m *members[T]) Pop() any {
	last := len(m.list) - 1
	out := m.list[last]
	clear(m.list[last:]) // let it be collected
	m.list = m.list[:last]
	m.place(out).after = 0
	return out
}
