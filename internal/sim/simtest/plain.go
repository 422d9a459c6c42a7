// Package simtest has a plain simulation of jobs in one queue, to which tests and benchmarks compare the engine.
package simtest

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/musterhq/muster/internal/sim"
)

// Policy says which jobs start.
type Policy int

const (
	// Strict starts jobs in order of arrival.
	Strict Policy = iota
	// FirstFit starts each job that fits, in order of arrival.
	FirstFit
	// EASY promises a start to the first job that does not fit, by the limits of those that run. Of the jobs behind it,
	// the one that usually ends first goes first, and passes if its limit ends before that start, or if both fit at that
	// time. All jobs must have limits.
	EASY
)

// Waits simulates rigid jobs, which are in order of arrival, and returns how long each waits, negative for ever.
func Waits(jobs []sim.Job, gpus int64, policy Policy) (waits []time.Duration) {
	var queue, running []int
	var now time.Duration
	waits, usual, took := make([]time.Duration, len(jobs)), make([]time.Duration, len(jobs)), map[string][]time.Duration{}
	start := func(i int) bool {
		if int64(jobs[i].Max) > gpus {
			return false
		}
		gpus, waits[i], running = gpus-int64(jobs[i].Max), now-jobs[i].Arrives, append(running, i)
		return true
	}
	ends := func(i int) time.Duration { return jobs[i].Arrives + waits[i] + jobs[i].Work }
	limit := func(i int) time.Duration { return jobs[i].Arrives + waits[i] + jobs[i].Time.Limit }
	for arrived := 0; arrived < len(jobs) || len(running) > 0; {
		now = math.MaxInt64
		for _, i := range running {
			now = min(now, ends(i))
		}
		for ; arrived < len(jobs) && jobs[arrived].Arrives <= now; arrived++ {
			now, waits[arrived], queue = jobs[arrived].Arrives, -1, append(queue, arrived)
			usual[arrived] = estimate(&jobs[arrived], took[jobs[arrived].Time.Kind])
		}
		for _, i := range running {
			if kind := jobs[i].Time.Kind; ends(i) == now {
				gpus, took[kind] = gpus+int64(jobs[i].Max), append(took[kind], jobs[i].Work)
			}
		}
		running = slices.DeleteFunc(running, func(i int) bool { return ends(i) == now })
		for len(queue) > 0 && start(queue[0]) {
			queue = queue[1:]
		}
		if len(queue) == 0 || policy == Strict {
			continue
		}
		behind, at, spare := slices.Clone(queue[1:]), time.Duration(math.MaxInt64), int64(0)
		if policy == EASY { // the first in the queue starts at this time, which leaves some GPUs to spare
			at, spare = now, gpus-int64(jobs[queue[0]].Max)
			byLimit := func(i, j int) int { return cmp.Compare(limit(i), limit(j)) }
			for _, i := range slices.SortedStableFunc(slices.Values(running), byLimit) {
				if spare < 0 || limit(i) == at {
					at, spare = limit(i), spare+int64(jobs[i].Max)
				}
			}
			slices.SortStableFunc(behind, func(i, j int) int { return cmp.Compare(usual[i], usual[j]) })
		}
		for _, i := range behind {
			stays, size := now+jobs[i].Time.Limit > at, int64(jobs[i].Max)
			if (!stays || size <= spare) && start(i) && stays {
				spare -= size
			}
		}
		queue = slices.DeleteFunc(queue, func(i int) bool { return waits[i] >= 0 })
	}
	return waits
}

// estimate returns the time within which three of four of the last eight jobs of the kind ended, else the limit or an
// hour. It is rounded up to steps, each a tenth longer than the one before.
func estimate(job *sim.Job, took []time.Duration) time.Duration {
	usual, step := cmp.Or(job.Time.Limit, time.Hour), time.Second
	if len(took) > 0 {
		last := slices.Sorted(slices.Values(took[max(0, len(took)-8):]))
		usual = last[(len(last)*3+3)/4-1]
	}
	for step < usual {
		step += max((step / 10).Truncate(time.Second), time.Second)
	}
	return min(step, cmp.Or(job.Time.Limit, step))
}
