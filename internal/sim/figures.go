package sim

import (
	"slices"
	"time"
)

// Figures sum up how jobs fared. Waits are those of the jobs that started.
type Figures struct {
	Jobs int
	// Unstarted and Unended count the jobs that never started, and those that started and never ended.
	Unstarted, Unended              int
	Mean, Median, P90, P99, Longest time.Duration
	// Slowdown is the mean bounded slowdown of the jobs that ended: how many times as long as its run a job took from
	// its arrival to its end, where runs below 10 s count as 10 s, and at least one.
	Slowdown float64
	// Used is how much of the resource jobs held until the last job of all arrived, or ended if all arrive at once, in
	// units times seconds. Within is how long that was.
	Used   float64
	Within time.Duration
	// Kept and Delayed count the promised starts.
	Kept, Delayed int
}

// shortRun is the run time below which slowdowns are not told apart.
const shortRun = 10 * time.Second

// Figures sums up the jobs for which only returns true, and how much of the resource they used.
func (r Result) Figures(jobs []Job, resource string, only func(*Job) bool) Figures {
	f := Figures{Within: r.arrivals(jobs)}
	counts := make([]bool, len(jobs))
	var waits []time.Duration
	sum, slowdown := 0.0, 0.0
	for i := range jobs {
		if counts[i] = only(&jobs[i]); !counts[i] {
			continue
		}
		f.Jobs++
		if r.Waited[i] < 0 {
			f.Unstarted++
			continue
		}
		waits = append(waits, r.Waited[i])
		sum += float64(r.Waited[i])
		if r.Took[i] < 0 {
			f.Unended++
			continue
		}
		slowdown += max(1, float64(r.Took[i])/float64(max(r.Took[i]-r.Waited[i], shortRun)))
	}
	slices.Sort(waits)
	f.Mean = time.Duration(sum / float64(max(1, len(waits))))
	f.Slowdown = slowdown / float64(max(1, len(waits)-f.Unended))
	f.Median, f.P90 = quantile(waits, 0.5), quantile(waits, 0.9)
	f.P99, f.Longest = quantile(waits, 0.99), quantile(waits, 1)
	f.Used = r.used(jobs, counts, resource, f.Within)
	for _, p := range r.Promises {
		switch {
		case !counts[p.Job]:
		case p.Started > p.At:
			f.Delayed++
		default:
			f.Kept++
		}
	}
	return f
}

// arrivals returns the time within which the jobs arrive, or within which they end if all arrive at once.
func (r Result) arrivals(jobs []Job) time.Duration {
	last := time.Duration(0)
	for i := range jobs {
		last = max(last, jobs[i].Arrives)
	}
	if last == 0 {
		return r.Makespan
	}
	return last
}

// used returns how much of the resource these jobs held until the given time, in units times seconds.
func (r Result) used(jobs []Job, counts []bool, resource string, until time.Duration) (sum float64) {
	since := make([]Step, len(jobs))
	add := func(job int, before Step, at time.Duration) {
		pods := float64(before.Held) * max(0, min(at, until)-before.At).Seconds()
		sum += pods * float64(jobs[job].perPod()[resource])
	}
	for _, s := range r.Steps {
		if counts[s.Job] {
			add(s.Job, since[s.Job], s.At)
			since[s.Job] = s
		}
	}
	for i, s := range since {
		add(i, s, until)
	}
	return sum
}
