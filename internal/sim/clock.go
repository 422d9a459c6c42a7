package sim

import (
	"container/heap"
	"time"
)

// clock runs scheduled functions in the order of their times, and of scheduling for the same time.
type clock struct {
	now   time.Duration
	noted int
	due   agenda
}

// at schedules a function for a time, or for now if that is past.
func (c *clock) at(when time.Duration, what func()) {
	c.noted++
	heap.Push(&c.due, happening{max(when, c.now), c.noted, what})
}

// next advances to the next scheduled time and runs all functions of that time; it reports whether there were any.
func (c *clock) next() bool {
	if len(c.due) == 0 {
		return false
	}
	c.now = c.due[0].when
	for len(c.due) > 0 && c.due[0].when == c.now {
		heap.Pop(&c.due).(happening).what()
	}
	return true
}

// happening is a scheduled function.
type happening struct {
	when  time.Duration
	order int
	what  func()
}

// agenda is a heap of scheduled functions.
type agenda []happening

func (a agenda) Len() int { return len(a) }
func (a agenda) Less(i, j int) bool {
	return a[i].when < a[j].when || a[i].when == a[j].when && a[i].order < a[j].order
}
func (a agenda) Swap(i, j int) { a[i], a[j] = a[j], a[i] }
func (a *agenda) Push(x any)   { *a = append(*a, x.(happening)) }
func (a *agenda) Pop() any {
	last := len(*a) - 1
	out := (*a)[last]
	*a = (*a)[:last]
	return out
}
