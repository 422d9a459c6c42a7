package order

import "container/heap"

// Heap has the first of its members at hand. Each member knows its place, so that one of them can be moved or taken out: Put,
// Pop and Remove take time logarithmic in Len. Make one with NewHeap.
type Heap[T any] struct{ members members[T] }

// Place is that of a member in a Heap; the zero Place is that of who is in none.
type Place struct {
	after int // one more than the index
}

// In reports whether the member is in the heap.
func (p Place) In() bool { return p.after > 0 }

// IsFirst reports whether nobody goes before the member.
func (p Place) IsFirst() bool { return p.after == 1 }

// NewHeap gives an empty heap whose order before tells. A member keeps its place in the heap where place says, for nobody else
// to change.
func NewHeap[T any](before func(a, b T) bool, place func(T) *Place) Heap[T] {
	return Heap[T]{members[T]{before: before, place: place}}
}

// Len is the number of members.
func (h *Heap[T]) Len() int { return len(h.members.list) }

// First is the member that goes before all others. The heap must not be empty.
func (h *Heap[T]) First() T { return h.members.list[0] }

// All lists the members, in no order. Not to be changed, nor kept.
func (h *Heap[T]) All() []T { return h.members.list }

// Put adds the member, or moves it to where it belongs by now if it is in the heap.
func (h *Heap[T]) Put(member T) {
	if p := h.members.place(member); p.In() {
		heap.Fix(&h.members, p.after-1)
		return
	}
	heap.Push(&h.members, member)
}

// Pop takes the first member. The heap must not be empty.
func (h *Heap[T]) Pop() T { return heap.Pop(&h.members).(T) }

// Remove takes the member out if it is in the heap.
func (h *Heap[T]) Remove(member T) {
	if p := h.members.place(member); p.In() {
		heap.Remove(&h.members, p.after-1)
	}
}

// Rearrange has all members find their places anew: more than one of them may belong elsewhere by now.
func (h *Heap[T]) Rearrange() { heap.Init(&h.members) }

// members is what container/heap asks for.
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
	clear(m.list[last:]) // it is not kept alive
	m.list = m.list[:last]
	m.place(out).after = 0
	return out
}
