package order

import (
	"cmp"
	"container/heap"
	"maps"
	"slices"
	"strings"
	"time"
)

// Key identifies a namespaced object.
type Key struct {
	Namespace, Name string
}

// String returns namespace/name.
func (k Key) String() string { return k.Namespace + "/" + k.Name }

// CompareKeys orders by namespace, then by name.
func CompareKeys(a, b Key) int {
	if c := strings.Compare(a.Namespace, b.Namespace); c != 0 {
		return c
	}
	return strings.Compare(a.Name, b.Name)
}

// SortedKeys returns the keys of a map or a set in order, so that no result depends on the order of the map.
func SortedKeys[V any](m map[Key]V) []Key { return slices.SortedFunc(maps.Keys(m), CompareKeys) }

// Rank is the position of a workload in the order of its queue.
type Rank struct {
	Priority int32
	// First puts the workload before others of its priority.
	First bool
	// Since is when the workload was queued.
	Since time.Time
	// Key breaks ties.
	Key Key
}

// Compare is negative if a is served before b, positive if after, and zero only if all fields are equal.
func Compare(a, b Rank) int { return compare(&a, &b) }

// compare looks at each field only if those before it are equal.
func compare(a, b *Rank) int {
	if c := cmp.Compare(b.Priority, a.Priority); c != 0 {
		return c
	}
	if c := TrueFirst(a.First, b.First); c != 0 {
		return c
	}
	if c := a.Since.Compare(b.Since); c != 0 {
		return c
	}
	return CompareKeys(a.Key, b.Key)
}

// Outranks reports whether r goes before the other one whenever that was queued.
func (r Rank) Outranks(other Rank) bool {
	return r.Priority > other.Priority || r.Priority == other.Priority && r.First && !other.First
}

// TrueFirst orders true before false.
func TrueFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// Queue holds ranks in order, with logarithmic Push, Pop and Remove. The zero value is empty and ready to use. Each
// key is held once: pushing it again replaces its rank.
type Queue struct {
	ranks ranks
}

// Len returns the number of ranks.
func (q *Queue) Len() int { return len(q.ranks.list) }

// Push adds r, or replaces the rank of its key.
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

// Rank returns the rank of a key; ok is false if the queue does not have it.
func (q *Queue) Rank(key Key) (r Rank, ok bool) {
	i, ok := q.ranks.index[key]
	if ok {
		r = q.ranks.list[i]
	}
	return r, ok
}

// Peek returns the first rank without removing it; ok is false if there is none.
func (q *Queue) Peek() (r Rank, ok bool) {
	if q.Len() == 0 {
		return Rank{}, false
	}
	return q.ranks.list[0], true
}

// Before reports whether the first rank of q is served before that of other. An empty queue counts as the zero Rank.
func (q *Queue) Before(other *Queue) bool {
	var none Rank
	a, b := &none, &none
	if q.Len() > 0 {
		a = &q.ranks.list[0]
	}
	if other.Len() > 0 {
		b = &other.ranks.list[0]
	}
	return compare(a, b) < 0
}

// Pop removes and returns the first rank. The queue must not be empty.
func (q *Queue) Pop() Rank { return heap.Pop(&q.ranks).(Rank) }

// All returns the ranks in no particular order. The slice must be neither modified nor retained.
func (q *Queue) All() []Rank { return q.ranks.list }

// Remove removes the rank with the key and reports whether there was one.
func (q *Queue) Remove(key Key) bool {
	i, ok := q.ranks.index[key]
	if ok {
		heap.Remove(&q.ranks, i)
	}
	return ok
}

// ranks implements heap.Interface for Queue, with the position of each key.
type ranks struct {
	list  []Rank
	index map[Key]int
}

func (ra *ranks) Len() int           { return len(ra.list) }
func (ra *ranks) Less(i, j int) bool { return compare(&ra.list[i], &ra.list[j]) < 0 }
func (ra *ranks) Swap(i, j int) {
	ra.list[i], ra.list[j] = ra.list[j], ra.list[i]
	ra.index[ra.list[i].Key], ra.index[ra.list[j].Key] = i, j
}
func (ra *ranks) Push(x any) {
	r := x.(Rank)
	ra.index[r.Key] = len(ra.list)
	ra.list = append(ra.list, r)
}
func (ra *ranks) Pop() any {
	last := len(ra.list) - 1
	r := ra.list[last]
	ra.list = ra.list[:last]
	delete(ra.index, r.Key)
	return r
}
