package progress

import (
	"slices"
	"time"
)

const (
	// Interval is the least time between two writes of expected ends, of all jobs together.
	Interval = time.Second
	// maxBackoff is the longest pause of a Workload whose writes fail.
	maxBackoff = 5 * time.Minute
)

// Key identifies a Workload.
type Key struct{ Namespace, Name, UID string }

// Write is what is to be written for one Workload: what is known of the rest of its run, or, if that is nothing, the
// removal of what is written.
type Write struct {
	Key Key
	Outlook
	// failures is how often in a row it has failed.
	failures int
}

// Writes are the writes that wait, at most one for each Workload, with the latest value. They are made in the order in
// which the Workloads came to wait, so that a job whose end moves all the time delays no other by more than one write.
// The zero value is ready for use.
type Writes struct {
	order   []Key
	waiting map[Key]waiting
	// last is when the last write began.
	last time.Time
}

// waiting is a write that waits, and when it may be tried at the earliest.
type waiting struct {
	Write
	notBefore time.Time
}

// Put has the value written instead of another one that waits for the Workload.
func (w *Writes) Put(key Key, value Outlook) { w.put(Write{Key: key, Outlook: value}) }

// put lets the write wait. If one waits already, only its value changes.
func (w *Writes) put(write Write) {
	if w.waiting == nil {
		w.waiting = map[Key]waiting{}
	}
	now, waits := w.waiting[write.Key]
	if !waits {
		w.order = append(w.order, write.Key)
		now.Write = write
	}
	now.Outlook = write.Outlook
	w.waiting[write.Key] = now
}

// Drop has nothing written for the Workload any more.
func (w *Writes) Drop(key Key) {
	if w.Waits(key) {
		delete(w.waiting, key)
		w.order = slices.DeleteFunc(w.order, func(other Key) bool { return other == key })
	}
}

// Waits reports whether a write for the Workload waits.
func (w *Writes) Waits(key Key) bool {
	_, waits := w.waiting[key]
	return waits
}

// Next takes the next write that may be made now. If there is none, it returns when to ask again, zero if nothing
// waits.
func (w *Writes) Next(now time.Time) (next Write, ok bool, again time.Time) {
	due := w.last.Add(Interval)
	if pause := !w.last.After(now) && now.Before(due); pause && len(w.order) > 0 { // a clock that was set back is no pause
		return Write{}, false, due
	}
	for _, key := range w.order {
		first := w.waiting[key]
		if !now.Before(first.notBefore) {
			w.Drop(key)
			w.last = now
			return first.Write, true, time.Time{}
		}
		if again.IsZero() || first.notBefore.Before(again) {
			again = first.notBefore
		}
	}
	return Write{}, false, again
}

// Failed has a write tried again, with a later value if one waits by now, after a pause that doubles with each failure
// in a row.
func (w *Writes) Failed(write Write, now time.Time) {
	write.failures++
	if !w.Waits(write.Key) {
		w.put(write)
	}
	again := w.waiting[write.Key]
	again.failures, again.notBefore = write.failures, now.Add(min(Interval<<min(write.failures, 20), maxBackoff))
	w.waiting[write.Key] = again
}
