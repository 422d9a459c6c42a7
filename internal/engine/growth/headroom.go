package growth

import (
	"cmp"
	"maps"
	"slices"
	"sort"

	"github.com/musterhq/muster/internal/engine/elastic"
	"github.com/musterhq/muster/internal/engine/place"
	"github.com/musterhq/muster/internal/engine/quota"
	"github.com/musterhq/muster/internal/engine/state"
)

// MoreOnNodes finds nodes for more pods of a held pod set, which do not delay a planned start.
func (g *Growths) MoreOnNodes(w *state.Workload, at int, pods int32, on place.Ledger) ([]place.NodeCount, bool) {
	found, ok := g.nodes.MoreOnNodes(w, at, pods, on)
	if ok && pods > 0 && g.Delays != nil && g.Delays(w, at, pods, found) {
		return nil, false
	}
	return found, ok
}

// PodsOn returns how many more pods of a resizable workload, up to most, fit on nodes in a ledger.
func (g *Growths) PodsOn(on place.Ledger, t *state.Resizable, i int, most int32) int32 {
	fits := func(pods int32) bool {
		_, ok := g.MoreOnNodes(t.Members[i], t.At[i], pods, on)
		return ok
	}
	switch {
	case most == 0 || fits(most):
		return most
	case most == 1 || !fits(1): // the usual case on full nodes
		return 0
	}
	return 1 + int32(sort.Search(int(most-2), func(n int) bool { return !fits(int32(n) + 2) }))
}

// Headroom is the capacity of the nodes for growth: up to which size they hold each resizable workload of a queue. The
// other workloads of the queue keep their sizes, or, once the nodes are limited, grow as well. The size of a workload
// is found when it is asked for.
type Headroom struct {
	growths *Growths
	queue   *state.ClusterQueue
	of      *state.Resizable
	on      place.Ledger
	sizes   map[int]int32
}

// HeadroomOf returns what the members of the list may take, in a ledger of the nodes.
func (g *Growths) HeadroomOf(q *state.ClusterQueue, t *state.Resizable, on place.Ledger) *Headroom {
	return &Headroom{growths: g, queue: q, of: t, on: on, sizes: map[int]int32{}}
}

// hold reports whether the nodes hold the workload at the index with this size.
func (h *Headroom) hold(i int, size int32) bool {
	most, known := h.sizes[i]
	if !known {
		job := &h.of.Jobs[i]
		most = job.Size + h.growths.PodsOn(h.on, h.of, i, job.Max-job.Size)
		h.sizes[i] = most
	}
	if size > most {
		h.queue.Cramped = true
	}
	return size <= most
}

// Share shares out what is free, one pod at a time, among the workloads at the indices, and then among those at the
// later ones, each before lower priorities. It returns them all with their sizes after that.
func (h *Headroom) Share(first, later []int, free func(quota.Index) int64) []elastic.Job {
	indices := slices.Concat(first, later)
	ranks := h.ranks(indices)
	jobs := make([]elastic.Job, len(indices))
	for tries := 0; ; tries++ {
		for n, i := range indices {
			jobs[n] = h.of.Jobs[i]
			if jobs[n].Priority = ranks[jobs[n].Priority]; n >= len(first) {
				jobs[n].Priority--
			}
		}
		taken := freeAmounts{}
		var steps []int
		h.growths.Policy.Grow(jobs, func(n int) bool {
			i := indices[n]
			if !h.hold(i, jobs[n].Size+1) || !taken.take(h.of.Each[i], free) {
				return false
			}
			steps = append(steps, i)
			return true
		})
		if tries == maxSharedGrowths || !h.limit(steps) {
			return jobs
		}
	}
}

// ranks returns even numbers in the order of the priorities of the workloads at the indices.
func (h *Headroom) ranks(indices []int) map[int32]int32 {
	out := map[int32]int32{}
	for _, i := range indices {
		out[h.of.Jobs[i].Priority] = 0
	}
	for n, priority := range slices.Sorted(maps.Keys(out)) {
		out[priority] = 2 * int32(n)
	}
	return out
}

// maxSharedGrowths and maxSharedPods bound how many workloads share nodes evenly, and how many pods they get at once:
// of more than that, the first ones have what they can use.
const maxSharedGrowths, maxSharedPods = 4, 128

// limit limits the size of one workload if the nodes hold each of those that grow, but not all of them together: the
// first in the order of the steps that has no nodes beside what those before it were given. It reports whether there is
// one. Each step is one more pod for the workload at that index.
func (h *Headroom) limit(steps []int) bool {
	if len(h.growths.nodes.Topologies) == 0 || len(steps) > maxSharedPods || h.holdTogether(steps) {
		return false
	}
	n := sort.Search(len(steps)-1, func(n int) bool { return !h.holdTogether(steps[:n+1]) })
	last := steps[n]
	h.sizes[last] = h.of.Jobs[last].Size
	for _, i := range steps[:n] {
		if i == last {
			h.sizes[last]++
		}
	}
	h.queue.Cramped = true
	return true
}

// holdTogether reports whether the nodes hold all these pods, in the order in which workloads are enlarged; also if
// there are too many workloads to tell.
func (h *Headroom) holdTogether(steps []int) (fit bool) {
	more := map[int]int32{}
	for _, i := range steps {
		more[i]++
	}
	if len(more) < 2 || len(more) > maxSharedGrowths {
		return true
	}
	jobs := slices.SortedFunc(maps.Keys(more), func(a, b int) int {
		return cmp.Or(cmp.Compare(h.of.Jobs[b].Priority, h.of.Jobs[a].Priority), cmp.Compare(a, b))
	})
	h.growths.nodes.Places.Try(func() {
		fit = !slices.ContainsFunc(jobs, func(i int) bool { return !h.enlarge(i, more[i]) })
	})
	return fit
}

// enlarge gives the workload more pods on nodes, within a Try. It reports whether the nodes hold them.
func (h *Headroom) enlarge(i int, pods int32) bool {
	w, at := h.of.Members[i], h.of.At[i]
	nodes, ok := h.growths.MoreOnNodes(w, at, pods, h.on)
	if len(nodes) > 0 {
		h.growths.nodes.HoldAs(w, state.Placed{By: w.Held.Sized(at, w.Held.PodSets[at].Count+pods, nodes)})
	}
	return ok
}

// freeAmounts has what is left of each amount of which something was taken.
type freeAmounts map[quota.Index]int64

// take takes the amounts if they are available. at returns what was available at first, and is called once per
// amount.
func (f freeAmounts) take(v quota.Vector, at func(quota.Index) int64) bool {
	for _, a := range v {
		if _, known := f[a.Index]; !known {
			f[a.Index] = at(a.Index)
		}
		if f[a.Index] < a.Value {
			return false
		}
	}
	for _, a := range v {
		f[a.Index] = quota.Sub(f[a.Index], a.Value)
	}
	return true
}
