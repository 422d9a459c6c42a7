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
	// writersOfAKind create, admit or finish side by side: enough to keep two cores busy. More
	// only make the API server slower, and with it the floor.
	writersOfAKind = 8
	// again is when a Workload that changed while it was to be finished is looked at anew.
	again = 10 * time.Millisecond
)

// driver plays a load: it creates Workloads when they are due, and marks each
// Finished its run time after its admission. One that is evicted before begins its
// run again when it is admitted again. One goroutine owns the state; it learns all
// of it from one watch, and leaves what it decides to writers.
type driver struct {
	*requests
	// admits has the driver admit as well, each Workload as soon as it is there.
	admits bool
	// atOnce has nothing wait: neither the creations for their time, nor the ends.
	atOnce bool

	jobs     map[string]*job
	due      dueHeap
	tally    tally
	admitted chan known // for the writers
	finished chan known
	conflict chan string
	failed   chan error
}

// job is a Workload in the eyes of the driver.
type job struct {
	arrival
	known
	created, admitted time.Time // admitted for the first time
	holds             bool      // it has an admission
	runs              bool      // and is not evicted
	evicted, done     bool
	turn              int // of its runs: a due time is for one of them
}

// result is what a driver saw.
type result struct {
	wall time.Duration
	// waits are the times from the first sight of a Workload to its first admission,
	// by class.
	waits map[string]time.Duration
	tally tally
}

func newDriver(r *requests) *driver { return &driver{requests: r, jobs: map[string]*job{}} }

// play plays the load to its end.
func (d *driver) play(ctx context.Context, load []arrival, version string) (result, error) {
	// What is being written when the last Workload is done is let be written.
	playing, stop := context.WithCancel(ctx)
	var writers sync.WaitGroup
	defer writers.Wait()
	defer stop()
	changes := d.watch(playing, version)
	for _, a := range load {
		d.jobs[a.name] = &job{arrival: a}
	}
	// A write has a place in its channel whatever the writers do: a Workload is admitted
	// and finished once, or a few times where it was evicted.
	d.admitted, d.finished = make(chan known, len(load)), make(chan known, 4*len(load))
	d.conflict, d.failed = make(chan string, 4*len(load)), make(chan error, 1)
	began := time.Now()
	turns := semaphore.NewWeighted(writersOfAKind) // in the order in which they are asked for
	for _, stream := range streams(load) {
		writers.Go(func() { d.arrive(playing, began, stream, turns) })
	}
	for range writersOfAKind {
		writers.Go(func() { work(playing, d.admitted, func(w known) { d.writeAdmission(ctx, w) }) })
		writers.Go(func() { work(playing, d.finished, func(w known) { d.writeEnd(ctx, w) }) })
	}
	ended, err := d.follow(ctx, changes)
	if err != nil {
		return result{}, err
	}
	return result{wall: ended.Sub(began), waits: d.waits(), tally: d.tally}, nil
}

// arrive creates each Workload of a stream when its time has come, one after the other: who submits waits for the answer. A
// stream that is behind its times takes its turn like all others.
func (d *driver) arrive(ctx context.Context, began time.Time, stream []arrival, turns *semaphore.Weighted) {
	for _, a := range stream {
		if wait := time.Until(began.Add(a.at)); wait > 0 && !d.atOnce {
			select {
			case <-time.After(wait):
			case <-ctx.Done():
				return
			}
		}
		if turns.Acquire(ctx, 1) != nil {
			return
		}
		err := d.create(ctx, a.body)
		turns.Release(1)
		d.report(ctx, err)
	}
}

// work does what comes until the context ends.
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
	j := d.jobs[w.name] // the map is not written any more, nor is what is read here
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
	default: // the first one is enough
	}
}

// follow keeps track of all Workloads until the last is done, and says when that was.
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
				heap.Push(&d.due, due{time.Now().Add(again), j, j.turn})
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

// see takes in a change, and reports whether it is the Workload's end.
func (d *driver) see(c change) bool {
	j := d.jobs[c.Object.Metadata.Name]
	if j == nil || c.Type == "DELETED" {
		return false
	}
	j.known = c.known()
	if c.Type == "ADDED" {
		j.created = c.seen
		if d.admits {
			d.admitted <- j.known
		}
	}
	finished := c.is(kueue.WorkloadFinished)
	d.tally.count(j, &c)
	j.holds, j.evicted = c.Object.Status.Admission != nil, c.is(kueue.WorkloadEvicted)
	if finished {
		ended := !j.done
		j.done, j.runs = true, false
		return ended
	}
	switch runs := c.is(kueue.WorkloadAdmitted) && j.holds && !j.evicted; {
	case runs && !j.runs:
		if j.admitted.IsZero() {
			j.admitted = c.seen
		}
		j.turn++
		run := j.class.run
		if d.atOnce {
			run = 0
		}
		heap.Push(&d.due, due{c.seen.Add(run), j, j.turn})
		j.runs = true
	case !runs:
		j.runs = false
	}
	return false
}

// finishDue has those finished whose run has come to its end.
func (d *driver) finishDue() {
	for now := time.Now(); len(d.due) > 0 && !d.due[0].at.After(now); {
		next := heap.Pop(&d.due).(due)
		if next.job.runs && next.job.turn == next.turn {
			d.finished <- next.job.known
		}
	}
}

// waits are the mean times to the first admission, by class.
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

// due is the end of a run.
type due struct {
	at   time.Time
	job  *job
	turn int
}

type dueHeap []due

func (h dueHeap) Len() int           { return len(h) }
func (h dueHeap) Less(i, j int) bool { return h[i].at.Before(h[j].at) }
func (h dueHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *dueHeap) Push(x any)        { *h = append(*h, x.(due)) }
func (h *dueHeap) Pop() any {
	last := len(*h) - 1
	next := (*h)[last]
	*h = (*h)[:last]
	return next
}
