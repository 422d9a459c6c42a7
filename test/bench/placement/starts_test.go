//go:build bench

package placement

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/engine/durations"
	"github.com/musterhq/muster/internal/engine/flavor"
	"github.com/musterhq/muster/internal/engine/place"
	"github.com/musterhq/muster/internal/engine/quota"
	"github.com/musterhq/muster/internal/sim"
	"github.com/musterhq/muster/test/bench/figure"
)

const (
	startsNodes = 4 * perRack
	startsLoad  = 0.9
	// startsSeeds is the number of days. They differ much, as a day has one gang of a whole rack: over 20 days the ratios
	// below still vary by a tenth from one set of days to the next.
	startsSeeds = 200
)

// waits is what became of the jobs of one day, or of several.
type waits struct {
	// all are the waits of all jobs, gangs those of the jobs that must be in one rack, racks those of a whole rack.
	all, gangs, racks []time.Duration
	// used is the share of GPU time that was used until the last arrival, summed over days.
	used              float64
	days              int
	promised, delayed int
}

// add adds a day.
func (w *waits) add(jobs []sim.Job, waited []time.Duration) {
	last, used := jobs[len(jobs)-1].Arrives, 0.0
	for i, j := range jobs {
		w.all = append(w.all, waited[i])
		if j.Pod.Topology != nil {
			w.gangs = append(w.gangs, waited[i])
		}
		if j.Min == perRack {
			w.racks = append(w.racks, waited[i])
		}
		begins := min(j.Arrives+waited[i], last)
		used += float64(min(begins+j.Work, last)-begins) * float64(gpusOf(j))
	}
	w.used += used / (float64(last) * startsNodes * gpusEach)
	w.days++
}

func mean(of []time.Duration) float64 {
	sum := time.Duration(0)
	for _, d := range of {
		sum += d
	}
	return sum.Seconds() / float64(max(1, len(of)))
}

func gpusOf(j sim.Job) int64 { return int64(j.Min) * j.Pod.PerPod[gpu] }

// print prints the row of a policy: seconds, but for the share that was used.
func (w *waits) print(policy string) {
	fmt.Printf("64 nodes %s rack-mean=%.0f rack-longest=%.0f gangs-mean=%.0f gangs-longest=%.0f mean=%.0f used=%.4f "+
		"kept=%d delayed=%d\n", policy, mean(w.racks), slices.Max(w.racks).Seconds(), mean(w.gangs),
		slices.Max(w.gangs).Seconds(), mean(w.all),
		w.used/float64(w.days), w.promised-w.delayed, w.delayed)
}

// jobsWithLimits returns the jobs of a day of the fragmentation benchmark, with limits of twice their run time.
func jobsWithLimits(seed uint64) (out []sim.Job) {
	for i, j := range dayOfJobs(seed, startsNodes, startsLoad) {
		lasts := max(time.Second, time.Duration(j.lasts)*time.Second)
		pod := engine.PodSet{PerPod: map[string]int64{gpu: j.gpus}}
		if j.withinARack {
			pod.Topology = &flavor.TopologyRequest{Level: "rack", Mandatory: true}
		}
		out = append(out, sim.Job{Name: fmt.Sprintf("job-%04d", i), Arrives: time.Duration(j.at) * time.Second, Min: j.pods,
			Max: j.pods, Work: lasts, Pod: &pod, Time: durations.Known{Limit: 2 * lasts}})
	}
	return out
}

// clusterOfNodes returns a cluster of one queue for all GPUs of the nodes.
func clusterOfNodes(backfill bool) sim.Cluster {
	const all = startsNodes * gpusEach
	out := []engine.Event{engine.TopologySet{Topology: place.Topology{Name: "t",
		Levels: []string{"block", "rack", place.Hostname}}}}
	for i := range startsNodes {
		out = append(out, engine.NodeSet{Node: node(i)})
	}
	return sim.Cluster{Objects: append(out,
		engine.FlavorSet{Flavor: engine.Flavor{Name: "gpu", Topology: "t"}},
		engine.ClusterQueueSet{ClusterQueue: engine.ClusterQueue{
			Name: "gangs", Strategy: engine.BestEffort, Backfill: backfill,
			Namespaces: &metav1.LabelSelector{},
			Groups:     []flavor.Group{{Resources: []string{gpu}, Flavors: []string{"gpu"}}},
			Quotas: quota.Quotas{{Flavor: "gpu", Resource: gpu}: {Nominal: all, Borrowing: quota.Unlimited,
				Lending: quota.Unlimited}},
		}},
		engine.LocalQueueSet{LocalQueue: engine.LocalQueue{Key: engine.Key{Namespace: sim.Namespace, Name: "default"},
			ClusterQueue: "gangs"}})}
}

// passTimes are how long the passes of the engine took.
type passTimes []time.Duration

// measure measures a pass.
func (p *passTimes) measure(pass func()) {
	began := time.Now()
	pass()
	*p = append(*p, time.Since(began))
}

// TestPlannedStarts lets jobs of one GPU to sixteen nodes come for a day on 64 nodes of 8 GPUs, with limits of twice
// their run time. It compares the engine that plans starts with first fit, which is the engine that plans none, and
// with a plain EASY.
func TestPlannedStarts(t *testing.T) {
	var planned, first, easy waits
	var took passTimes
	for seed := range uint64(startsSeeds) {
		jobs := jobsWithLimits(seed)
		c := clusterOfNodes(true)
		c.Around = took.measure
		r := c.Run(jobs)
		planned.add(jobs, r.Waited)
		planned.promised, planned.delayed = planned.promised+r.Promised, planned.delayed+r.Delayed
		first.add(jobs, clusterOfNodes(false).Run(jobs).Waited)
		plain := newPlainEASY(jobs)
		plain.run()
		easy.add(jobs, plain.waited)
		easy.promised, easy.delayed = easy.promised+plain.promised, easy.delayed+plain.delayed
	}
	planned.print("planned")
	first.print("first-fit")
	easy.print("easy")
	took.print(len(planned.all))
	reach := func(what string, got, most float64) {
		figure.Reach(t, what, fmt.Sprintf("%.3f", got), fmt.Sprintf("%.2f", most), got <= most)
	}
	reach("wait of gangs of a whole rack, times that by plain EASY", mean(planned.racks)/mean(easy.racks), 1.05)
	reach("wait of all gangs within a rack, times that by plain EASY", mean(planned.gangs)/mean(easy.gangs), 1.05)
	reach("wait of all jobs, times that by first fit", mean(planned.all)/mean(first.all), 1.1)
	less := (first.used - planned.used) / float64(first.days)
	reach("share used until the last arrival, below that by first fit", less, 0.01)
	reach("promised starts that were delayed", float64(planned.delayed), 0)
	if planned.promised == 0 {
		t.Error("no start was promised")
	}
}

// print prints what the passes took for this number of jobs.
func (p passTimes) print(jobs int) {
	sum := time.Duration(0)
	for _, d := range p {
		sum += d
	}
	figure.Note("time of all passes, a job", (sum / time.Duration(jobs)).String())
	figure.Note("  the longest pass", slices.Max(p).String())
}

// plainEASY is EASY with places: nodes are free counts. The first job that does not fit gets the earliest time by
// limits at which it fits as close as it must be. Others pass, the shortest limit first, if they end by then by their
// limit, or if the first fits then beside them.
type plainEASY struct {
	jobs     []sim.Job
	now      time.Duration
	free     []int64
	running  []running
	queue    []int
	waited   []time.Duration
	promises map[int]time.Duration

	promised, delayed int
}

// running is a job that runs on these nodes, one for each pod.
type running struct {
	job         int
	ends, limit time.Duration
	on          []int
}

func newPlainEASY(jobs []sim.Job) *plainEASY {
	e := &plainEASY{jobs: jobs, waited: make([]time.Duration, len(jobs)), promises: map[int]time.Duration{}}
	for range startsNodes {
		e.free = append(e.free, gpusEach)
	}
	return e
}

// run runs all jobs.
func (p *plainEASY) run() {
	for next := 0; next < len(p.jobs) || len(p.running) > 0; p.decide() {
		p.now = time.Duration(1 << 62)
		if next < len(p.jobs) {
			p.now = p.jobs[next].Arrives
		}
		for _, r := range p.running {
			p.now = min(p.now, r.ends)
		}
		p.running = slices.DeleteFunc(p.running, func(r running) bool {
			if r.ends > p.now {
				return false
			}
			p.take(p.free, r.job, r.on, -1)
			return true
		})
		for ; next < len(p.jobs) && p.jobs[next].Arrives == p.now; next++ {
			p.queue = append(p.queue, next)
		}
	}
}

// decide starts what may start.
func (p *plainEASY) decide() {
	for len(p.queue) > 0 {
		on := p.find(p.free, p.queue[0])
		if on == nil {
			break
		}
		p.start(p.queue[0], on)
	}
	if len(p.queue) == 0 {
		return
	}
	head := p.queue[0]
	at := p.earliest(head)
	if was, some := p.promises[head]; !some || at < was {
		p.promises[head] = at
	}
	behind := slices.Clone(p.queue[1:])
	slices.SortStableFunc(behind, func(a, b int) int { return cmp.Compare(p.jobs[a].Time.Limit, p.jobs[b].Time.Limit) })
	for _, job := range behind {
		if on := p.find(p.free, job); on != nil {
			if p.now+p.jobs[job].Time.Limit <= at || p.find(p.freeAt(at, job, on), head) != nil {
				p.start(job, on)
			}
		}
	}
}

// start starts a job.
func (p *plainEASY) start(job int, on []int) {
	p.queue = slices.DeleteFunc(p.queue, func(other int) bool { return other == job })
	p.take(p.free, job, on, 1)
	p.waited[job] = p.now - p.jobs[job].Arrives
	p.running = append(p.running, running{job, p.now + p.jobs[job].Work, p.now + p.jobs[job].Time.Limit, on})
	if at, some := p.promises[job]; some {
		if p.promised++; p.now > at {
			p.delayed++
		}
	}
}

// take takes what the job needs of these nodes, times of them.
func (p *plainEASY) take(free []int64, job int, on []int, times int64) {
	for _, n := range on {
		free[n] -= times * p.jobs[job].Pod.PerPod[gpu]
	}
}

// earliest returns the earliest time by limits at which the job fits.
func (p *plainEASY) earliest(job int) time.Duration {
	slices.SortFunc(p.running, func(a, b running) int { return cmp.Compare(a.limit, b.limit) })
	for _, r := range p.running {
		if p.find(p.freeAt(r.limit, -1, nil), job) != nil {
			return r.limit
		}
	}
	panic("a job never fits")
}

// freeAt returns what is free at a time by limits, if the other job, if not negative, starts now, and lasts longer.
func (p *plainEASY) freeAt(at time.Duration, other int, on []int) []int64 {
	free := slices.Clone(p.free)
	if other >= 0 {
		p.take(free, other, on, 1)
	}
	for _, r := range p.running {
		if r.limit <= at {
			p.take(free, r.job, r.on, -1)
		}
	}
	return free
}

// find returns a node for each pod: the fullest ones, in the fullest rack that has room if the job must be in one.
func (p *plainEASY) find(free []int64, job int) (best []int) {
	domain, least := startsNodes, int64(1<<62)
	if p.jobs[job].Pod.Topology != nil {
		domain = perRack
	}
	for from := 0; from < startsNodes; from += domain {
		sum, in := int64(0), []int{}
		for n := from; n < from+domain; n++ {
			sum, in = sum+free[n], append(in, n)
		}
		slices.SortStableFunc(in, func(a, b int) int { return cmp.Compare(free[a], free[b]) })
		var on []int
		for _, n := range in {
			for left := free[n]; left >= p.jobs[job].Pod.PerPod[gpu] && len(on) < int(p.jobs[job].Min); {
				on, left = append(on, n), left-p.jobs[job].Pod.PerPod[gpu]
			}
		}
		if len(on) == int(p.jobs[job].Min) && sum < least {
			best, least = on, sum
		}
	}
	return best
}
