package sim

import (
	"container/heap"
	"time"
)

// clock runs scheduled functions in the order of their times, and of scheduling for the same time.
type clock struct {
	now   time.Duration
	count int
	due   schedule
}

// at schedules a function for a time, or for now if that is past.
func (c *clock) at(when time.Duration, what func()) {
	c.count++
	heap.Push(&c.due, scheduled{max(when, c.now), c.count, what})
}

// next advances to the next scheduled time and runs all functions of that time; it reports whether there were any.
func (c *clock) next() bool {
	if len(c.due) == 0 {
		return false
	}
	c.now = c.due[0].when
	for len(c.due) > 0 && c.due[0].when == c.now {
		heap.Pop(&c.due).(scheduled).what()
	}
	return true
}

// scheduled is a scheduled function.
type scheduled struct {
	when  time.Duration
	order int
	what  func()
}

// schedule is a heap of scheduled functions.
type schedule []scheduled

func (s schedule) Len() int { return len(s) }
func (s schedule) Less(i, j int) bool {
	return s[i].when < s[j].when || s[i].when == s[j].when && s[i].order < s[j].order
}
func (s schedule) Swap(i, j int) { s[i], s[j] = s[j], s[i] }
func (s *schedule) Push(x any)   { *s = append(*s, x.(scheduled)) }
func (s *schedule) Pop() any {
	last := len(*s) - 1
	out := (*s)[last]
	*s = (*s)[:last]
	return out
}
