//go:build bench

package admission

import (
	"container/heap"
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
)

const (
	// writersOfAKind is how many creations, admissions and finishes run at a time, each: enough to keep two cores busy.
	// More would only make the API server, and with it the floor, slower.
	writersOfAKind = 8
	// retryAfter is the delay before a Workload is finished again after a conflict.
	retryAfter = 10 * time.Millisecond
)

// driver plays a load: it creates Workloads when they are due, and marks each Finished when its run time has passed
// since its admission. A Workload that is evicted before that starts its run time again with its next admission. One
// goroutine owns the state, which it learns from one watch; writer goroutines make the requests.
type driver struct {
	*requests
	// admitsItself has the driver also admit each Workload as soon as it exists, in place of the operator.
	admitsItself bool
	// immediately makes all arrival times and run times zero.
	immediately bool

	jobs     map[string]*job
	due      dueHeap
	tally    tally
	toAdmit  chan known // for the writers
	toFinish chan known
	conflict chan string
	failed   chan error
}

// job is the driver's state of a Workload.
type job struct {
	arrival
	known
	created, admitted time.Time // when the watch first showed it, and first showed it admitted
	hasAdmission      bool      // status.admission is set
	runs              bool      // admitted and not evicted
	evicted, done     bool
	attempt           int // counts the runs; an entry of the heap is valid for one of them
}

// result holds the measurements of one play.
type result struct {
	wall time.Duration
	// waits holds the mean time from the creation of a Workload to its first admission, by class.
	waits map[string]time.Duration
	tally tally
}

func newDriver(r *requests) *driver { return &driver{requests: r, jobs: map[string]*job{}} }

// play plays the load until its last Workload is finished. version is the resource version from which it watches.
func (d *driver) play(ctx context.Context, load []arrival, version string) (result, error) {
	// Requests use ctx, so that those under way when the last Workload finishes are completed.
	playing, stop := context.WithCancel(ctx)
	var writers sync.WaitGroup
	defer writers.Wait()
	defer stop()
	changes := d.watch(playing, version)
	for _, a := range load {
		d.jobs[a.name] = &job{arrival: a}
	}
	// The channels are large enough that sending never blocks: a Workload is admitted and finished once, or a few
	// times if it is evicted.
	d.toAdmit, d.toFinish = make(chan known, len(load)), make(chan known, 4*len(load))
	d.conflict, d.failed = make(chan string, 4*len(load)), make(chan error, 1)
	began := time.Now()
	creations := semaphore.NewWeighted(writersOfAKind) // serves streams in the order of their requests
	for _, stream := range streams(load) {
		writers.Go(func() { d.arrive(playing, began, stream, creations) })
	}
	for range writersOfAKind {
		writers.Go(func() { work(playing, d.toAdmit, func(w known) { d.writeAdmission(ctx, w) }) })
		writers.Go(func() { work(playing, d.toFinish, func(w known) { d.writeEnd(ctx, w) }) })
	}
	ended, err := d.follow(ctx, changes)
	if err != nil {
		return result{}, err
	}
	return result{wall: ended.Sub(began), waits: d.waits(), tally: d.tally}, nil
}

// arrive creates the Workloads of a stream at their times, one after the other: the next creation waits for the
// response to the one before. A stream that is late gets no preference over others.
func (d *driver) arrive(ctx context.Context, began time.Time, stream []arrival, creations *semaphore.Weighted) {
	for _, a := range stream {
		if wait := time.Until(began.Add(a.at)); wait > 0 && !d.immediately {
			select {
			case <-time.After(wait):
			case <-ctx.Done():
				return
			}
		}
		if creations.Acquire(ctx, 1) != nil {
			return
		}
		err := d.create(ctx, a.body)
		creations.Release(1)
		d.report(ctx, err)
	}
}

// work calls do for each item until the context ends.
func work[T any](ctx context.Context, items <-chan T, do func(T)) {
	for {
		select {
		case item := <-items:
			do(item)
		case <-ctx.Done():
			return
		}
	}
}

func (d *driver) writeAdmission(ctx context.Context, w known) {
	j := d.jobs[w.name] // safe: neither the map nor these fields change after the start
	d.report(ctx, d.requests.admit(ctx, w, j.queue, j.class.cpu))
}

func (d *driver) writeEnd(ctx context.Context, w known) {
	err := d.finish(ctx, w)
	if apierrors.IsConflict(err) {
		d.conflict <- w.name
		return
	}
	d.report(ctx, err)
}

func (d *driver) report(ctx context.Context, err error) {
	if err == nil || ctx.Err() != nil {
		return
	}
	select {
	case d.failed <- err:
	default: // the first error ends the play
	}
}

// follow processes watch events and due finishes until the last Workload is finished, and returns when that was seen.
func (d *driver) follow(ctx context.Context, changes <-chan change) (time.Time, error) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for open := len(d.jobs); ; {
		select {
		case <-ctx.Done():
			return time.Time{}, fmt.Errorf("%w with %d of %d workloads unfinished", ctx.Err(), open, len(d.jobs))
		case err := <-d.failed:
			return time.Time{}, err
		case name := <-d.conflict:
			if j := d.jobs[name]; j.runs && !j.done {
				heap.Push(&d.due, due{time.Now().Add(retryAfter), j, j.attempt})
			}
		case c := <-changes:
			if c.err != nil {
				return time.Time{}, fmt.Errorf("watching Workloads: %w", c.err)
			}
			if d.see(c) {
				if open--; open == 0 {
					return c.seen, nil
				}
			}
		case <-timer.C:
		}
		d.finishDue()
		if len(d.due) > 0 {
			timer.Reset(time.Until(d.due[0].at))
		}
	}
}

// see updates the state from a change, and reports whether it is the one that finished the Workload.
func (d *driver) see(c change) bool {
	j := d.jobs[c.Object.Metadata.Name]
	if j == nil || c.Type == "DELETED" {
		return false
	}
	j.known = c.known()
	if c.Type == "ADDED" {
		j.created = c.seen
		if d.admitsItself {
			d.toAdmit <- j.known
		}
	}
	finished := c.is(kueue.WorkloadFinished)
	d.tally.count(j, &c)
	j.hasAdmission, j.evicted = c.Object.Status.Admission != nil, c.is(kueue.WorkloadEvicted)
	if finished {
		ended := !j.done
		j.done, j.runs = true, false
		return ended
	}
	switch runs := c.is(kueue.WorkloadAdmitted) && j.hasAdmission && !j.evicted; {
	case runs && !j.runs:
		if j.admitted.IsZero() {
			j.admitted = c.seen
		}
		j.attempt++
		run := j.class.run
		if d.immediately {
			run = 0
		}
		heap.Push(&d.due, due{c.seen.Add(run), j, j.attempt})
		j.runs = true
	case !runs:
		j.runs = false
	}
	return false
}

// finishDue passes the Workloads whose run time has ended to the writers.
func (d *driver) finishDue() {
	for now := time.Now(); len(d.due) > 0 && !d.due[0].at.After(now); {
		next := heap.Pop(&d.due).(due)
		if next.job.runs && next.job.attempt == next.attempt {
			d.toFinish <- next.job.known
		}
	}
}

// waits returns the mean time from creation to the first admission, by class.
func (d *driver) waits() map[string]time.Duration {
	sum, count := map[string]time.Duration{}, map[string]time.Duration{}
	for _, j := range d.jobs {
		sum[j.class.name] += j.admitted.Sub(j.created)
		count[j.class.name]++
	}
	for name := range sum {
		sum[name] /= count[name]
	}
	return sum
}

// due is the time at which a run of a job ends.
type due struct {
	at      time.Time
	job     *job
	attempt int
}

// dueHeap is a heap of the ends of runs, the earliest first.
type dueHeap []due

func (d dueHeap) Len() int           { return len(d) }
func (d dueHeap) Less(i, j int) bool { return d[i].at.Before(d[j].at) }
func (d dueHeap) Swap(i, j int)      { d[i], d[j] = d[j], d[i] }
func (d *dueHeap) Push(x any)        { *d = append(*d, x.(due)) }
func (d *dueHeap) Pop() any {
	last := len(*d) - 1
	next := (*d)[last]
	*d = (*d)[:last]
	return next
}
