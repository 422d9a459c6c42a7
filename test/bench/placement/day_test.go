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
	"github.com/musterhq/muster/test/bench/figure"
)

const (
	dayBlocks  = 4
	daySeconds = 24 * 3600
	daySeeds   = 20
	dayRatio   = 1.2
	// dayLoad is how much of all GPUs the jobs would use on average.
	dayLoad = 0.8
)

// TestDay: for a day jobs of one GPU to sixteen nodes come and go on 1,024 nodes of 8
// GPUs. Then it is asked which large gangs would fit, and the same of a cluster that was
// given the same jobs by first fit: each pod on the first node that has room, of a gang
// in one rack the first rack.
func TestDay(t *testing.T) {
	var ratios, ours, theirs []float64
	for seed := range uint64(daySeeds) {
		jobs := dayOfJobs(seed)
		best, first := newBestFit(), newFirstFit()
		play(jobs, best)
		play(jobs, first)
		a, b := shareThatFits(best), shareThatFits(first)
		ours, theirs = append(ours, a), append(theirs, b)
		ratios = append(ratios, a/max(b, 0.01))
		if testing.Verbose() {
			fmt.Printf("seed %d: %.2f of the large gangs fit, by first fit %.2f; jobs refused %d and %d\n", seed, a, b, best.refused, first.refused)
		}
	}
	figure.Note("share of large gangs that fit after a day, median", fmt.Sprintf("%.2f", median(ours)))
	figure.Note("the same by first fit", fmt.Sprintf("%.2f", median(theirs)))
	figure.Reach(t, fmt.Sprintf("one to the other, median of %d seeds", daySeeds), fmt.Sprintf("%.2f", median(ratios)), fmt.Sprintf("%.1f", dayRatio), median(ratios) >= dayRatio)
}

func median(of []float64) float64 {
	s := slices.Sorted(slices.Values(of))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}

// job is some pods of some GPUs for some time; those of several nodes are in one rack.
type job struct {
	name        string
	at, lasts   float64
	pods        int32
	gpus        int64
	withinARack bool
}

// dayOfJobs are jobs in the order in which they come.
func dayOfJobs(seed uint64) []job {
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
	every := gpuSeconds / (dayLoad * dayBlocks * perBlock * gpusEach)
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

// cluster is what takes jobs in.
type cluster interface {
	// start gives the job places, or refuses it.
	start(j job) bool
	end(j job)
	// free is how many GPUs no job has.
	free() int64
}

// ends is a heap of running jobs, the next to end first.
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

// shareThatFits is of as many gangs of whole racks as there are free GPUs for.
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

// bestFit is a Map.
type bestFit struct {
	m       *place.Map
	left    int64
	refused int
}

func newBestFit() *bestFit {
	return &bestFit{m: cluster15k(dayBlocks * perBlock), left: dayBlocks * perBlock * gpusEach}
}

func ask(pods int32, gpus int64, level string) place.Ask {
	return place.Ask{PodSet: "main", Flavor: "gpu", Count: pods, PerPod: map[string]int64{gpu: gpus}, Level: level, Mandatory: level != ""}
}

func (b *bestFit) start(j job) bool {
	level := ""
	if j.withinARack {
		level = "rack"
	}
	a := ask(j.pods, j.gpus, level)
	placed, short := b.m.Find([]place.Ask{a}, place.Now)
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

// firstFit takes nodes as they come.
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

// find is the first nodes of the first domain of so many nodes that holds all.
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
