//go:build bench

package placement

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/musterhq/muster/internal/engine/order"
	"github.com/musterhq/muster/internal/engine/place"
	"github.com/musterhq/muster/internal/engine/place/find"
	"github.com/musterhq/muster/test/bench/figure"
)

const (
	dayBlocks  = 4
	daySeconds = 24 * 3600
	daySeeds   = 20
	dayRatio   = 1.2
	// dayLoad is the share of all GPUs that the jobs would use on average.
	dayLoad = 0.8
)

// TestFragmentation lets jobs of one GPU to sixteen nodes come and go for a day on 1,024 nodes of 8 GPUs,
// and then counts how many large gangs still fit. It compares this with first fit for the same jobs: each
// pod on the first node, and each gang that needs one rack in the first rack, that holds it.
func TestFragmentation(t *testing.T) {
	var ratios, bestShares, firstShares []float64
	for seed := range uint64(daySeeds) {
		jobs := dayOfJobs(seed, dayBlocks*perBlock, dayLoad)
		best, first := newBestFit(), newFirstFit()
		play(jobs, best)
		play(jobs, first)
		a, b := shareThatFits(best), shareThatFits(first)
		bestShares, firstShares = append(bestShares, a), append(firstShares, b)
		ratios = append(ratios, a/max(b, 0.01))
		if testing.Verbose() {
			fmt.Printf("seed %d: %.2f of the large gangs fit, by first fit %.2f; jobs refused %d and %d\n", seed, a, b,
				best.refused, first.refused)
		}
	}
	figure.Note("share of large gangs that fit after a day, median", fmt.Sprintf("%.2f", median(bestShares)))
	figure.Note("the same by first fit", fmt.Sprintf("%.2f", median(firstShares)))
	figure.Reach(t, fmt.Sprintf("ratio of the two, median of %d seeds", daySeeds), fmt.Sprintf("%.2f", median(ratios)),
		fmt.Sprintf("%.1f", dayRatio), median(ratios) >= dayRatio)
}

func median(of []float64) float64 {
	s := slices.Sorted(slices.Values(of))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}

// job is a number of pods that run for some time. If it needs several nodes, all are in one rack.
type job struct {
	name        string
	at, lasts   float64
	pods        int32
	gpus        int64
	withinARack bool
}

// dayOfJobs returns the jobs of a day for a number of nodes in order of arrival. load is the share of all GPUs that
// they would use on average.
func dayOfJobs(seed uint64, nodes int, load float64) []job {
	random := rand.New(rand.NewPCG(seed, 1))
	kinds := []struct {
		weight       float64
		pods         func() int32
		gpus         int64
		hours        float64
		averageInGPU float64
	}{
		{0.55, func() int32 { return 1 }, 1, 2, 1},
		{0.15, func() int32 { return 1 }, 2, 3, 2},
		{0.12, func() int32 { return 1 }, 4, 4, 4},
		{0.12, func() int32 { return 1 }, 8, 5, 8},
		{0.06, func() int32 { return 2 + random.Int32N(15) }, 8, 6, 72},
	}
	var gpuSeconds float64
	for _, k := range kinds {
		gpuSeconds += k.weight * k.averageInGPU * k.hours * 3600
	}
	every := gpuSeconds / (load * float64(nodes) * gpusEach)
	var out []job
	for at := random.ExpFloat64() * every; at < daySeconds; at += random.ExpFloat64() * every {
		draw := random.Float64()
		k := kinds[len(kinds)-1]
		for _, kind := range kinds {
			if draw < kind.weight {
				k = kind
				break
			}
			draw -= kind.weight
		}
		out = append(out, job{name: fmt.Sprint("job-", len(out)), at: at, lasts: random.ExpFloat64() * k.hours * 3600,
			pods: k.pods(), gpus: k.gpus, withinARack: k.averageInGPU > gpusEach})
	}
	return out
}

// cluster is a placement strategy.
type cluster interface {
	// start places the job; it returns false if it does not fit.
	start(j job) bool
	end(j job)
	// free returns the number of free GPUs.
	free() int64
}

// ends is a heap of running jobs, the next one to end first.
type ends []job

func (e ends) Len() int           { return len(e) }
func (e ends) Less(i, j int) bool { return e[i].at+e[i].lasts < e[j].at+e[j].lasts }
func (e ends) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }
func (e *ends) Push(x any)        { *e = append(*e, x.(job)) }
func (e *ends) Pop() any {
	last := len(*e) - 1
	j := (*e)[last]
	*e = (*e)[:last]
	return j
}

// play runs the jobs on a cluster.
func play(jobs []job, c cluster) {
	var running ends
	for _, j := range jobs {
		for len(running) > 0 && running[0].at+running[0].lasts <= j.at {
			c.end(heap.Pop(&running).(job))
		}
		if c.start(j) {
			heap.Push(&running, j)
		}
	}
}

// shareThatFits returns the share of rack-sized gangs that fit, of those for which there are free GPUs.
func shareThatFits(c cluster) float64 {
	gangs := c.free() / (perRack * gpusEach)
	large := job{name: "large", pods: perRack, gpus: gpusEach, withinARack: true}
	var fit int64
	for c.start(large) {
		fit++
		large.name += "+"
	}
	return float64(fit) / float64(max(1, gangs))
}

// bestFit places jobs with a find.Finder.
type bestFit struct {
	m       *place.Map
	finder  *find.Finder
	left    int64
	refused int
}

func newBestFit() *bestFit {
	m := cluster15k(dayBlocks * perBlock)
	return &bestFit{m: m, finder: find.New(m), left: dayBlocks * perBlock * gpusEach}
}

// ask returns what one pod set asks for, within one domain of the level, if any.
func ask(pods int32, gpus int64, level string) place.Ask {
	return place.Ask{PodSet: "main", Flavor: "gpu", Count: pods, PerPod: map[string]int64{gpu: gpus}, Level: level,
		Mandatory: level != ""}
}

func (b *bestFit) start(j job) bool {
	level := ""
	if j.withinARack {
		level = "rack"
	}
	a := ask(j.pods, j.gpus, level)
	placed, short := b.finder.Find([]place.Ask{a}, place.Now)
	if short != nil {
		b.refused++
		return false
	}
	b.m.Hold(keyOf(j.name), &place.Holding{PodSets: []place.HeldPodSet{{Ask: a, Nodes: placed[0].Nodes}}})
	b.left -= int64(j.pods) * j.gpus
	return true
}

func (b *bestFit) end(j job) {
	b.m.Hold(keyOf(j.name), nil)
	b.left += int64(j.pods) * j.gpus
}

func (b *bestFit) free() int64 { return b.left }

func keyOf(name string) order.Key { return order.Key{Namespace: "bench", Name: name} }

// firstFit uses the first nodes that have enough free GPUs.
type firstFit struct {
	left    []int64
	on      map[string][]int
	refused int
}

func newFirstFit() *firstFit {
	f := &firstFit{on: map[string][]int{}}
	for range dayBlocks * perBlock {
		f.left = append(f.left, gpusEach)
	}
	return f
}

func (f *firstFit) start(j job) bool {
	domain := len(f.left)
	if j.withinARack {
		domain = perRack
	}
	nodes := f.find(j.pods, j.gpus, domain)
	if nodes == nil {
		f.refused++
		return false
	}
	for _, n := range nodes {
		f.left[n] -= j.gpus
	}
	f.on[j.name] = append([]int{int(j.gpus)}, nodes...)
	return true
}

// find returns nodes for all pods in the first domain that holds them; domain is its number of nodes.
func (f *firstFit) find(pods int32, gpus int64, domain int) []int {
	for from := 0; from < len(f.left); from += domain {
		var nodes []int
		for n := from; n < min(from+domain, len(f.left)) && len(nodes) < int(pods); n++ {
			for left := f.left[n]; left >= gpus && len(nodes) < int(pods); left -= gpus {
				nodes = append(nodes, n)
			}
		}
		if len(nodes) == int(pods) {
			return nodes
		}
	}
	return nil
}

func (f *firstFit) end(j job) {
	on := f.on[j.name]
	for _, n := range on[1:] {
		f.left[n] += int64(on[0])
	}
	delete(f.on, j.name)
}

func (f *firstFit) free() int64 {
	var out int64
	for _, gpus := range f.left {
		out += gpus
	}
	return out
}
