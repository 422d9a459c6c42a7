package order

import (
	"cmp"
	"container/heap"
	"time"
)

// Key names an object of a namespace.
type Key struct {
	Namespace, Name string
}

// String is namespace/name.
func (k Key) String() string { return k.Namespace + "/" + k.Name }

// CompareKeys orders by namespace, then by name.
func CompareKeys(a, b Key) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// Rank is a workload's place in the order.
type Rank struct {
	Priority int32
	// First goes before the others of its priority.
	First bool
	// Since is when the workload was queued.
	Since time.Time
	// Key breaks ties.
	Key Key
}

// Compare is negative if a is served before b, positive if after, and zero only
// for the same key.
func Compare(a, b Rank) int {
	return cmp.Or(
		cmp.Compare(b.Priority, a.Priority),
		firstFirst(a.First, b.First),
		a.Since.Compare(b.Since),
		CompareKeys(a.Key, b.Key),
	)
}

func firstFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// Queue holds ranks in order, with logarithmic Push, Pop and Remove. The zero value
// is empty and ready. A key is held once: pushing it again replaces its rank.
type Queue struct {
	ranks ranks
}

// Len is the number of ranks held.
func (q *Queue) Len() int { return len(q.ranks.list) }

// Push adds r, or moves it if its key is already there.
func (q *Queue) Push(r Rank) {
	if i, ok := q.ranks.index[r.Key]; ok {
		q.ranks.list[i] = r
		heap.Fix(&q.ranks, i)
		return
	}
	if q.ranks.index == nil {
		q.ranks.index = map[Key]int{}
	}
	heap.Push(&q.ranks, r)
}

// Peek returns the first rank without taking it; ok is false if there is none.
func (q *Queue) Peek() (r Rank, ok bool) {
	if q.Len() == 0 {
		return Rank{}, false
	}
	return q.ranks.list[0], true
}

// Pop takes the first rank. The queue must not be empty.
func (q *Queue) Pop() Rank { return heap.Pop(&q.ranks).(Rank) }

// All lists the ranks held, in no order. Not to be changed, nor kept.
func (q *Queue) All() []Rank { return q.ranks.list }

// Remove takes the rank with the key out and reports whether it was there.
func (q *Queue) Remove(key Key) bool {
	i, ok := q.ranks.index[key]
	if ok {
		heap.Remove(&q.ranks, i)
	}
	return ok
}

// ranks is the heap under Queue, with the position of every key.
type ranks struct {
	list  []Rank
	index map[Key]int
}

func (h *ranks) Len() int           { return len(h.list) }
func (h *ranks) Less(i, j int) bool { return Compare(h.list[i], h.list[j]) < 0 }
func (h *ranks) Swap(i, j int) {
	h.list[i], h.list[j] = h.list[j], h.list[i]
	h.index[h.list[i].Key], h.index[h.list[j].Key] = i, j
}
func (h *ranks) Push(x any) {
	r := x.(Rank)
	h.index[r.Key] = len(h.list)
	h.list = append(h.list, r)
}
func (h *ranks) Pop() any {
	last := len(h.list) - 1
	r := h.list[last]
	h.list = h.list[:last]
	delete(h.index, r.Key)
	return r
}
