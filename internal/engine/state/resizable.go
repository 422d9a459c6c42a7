package state

import (
	"cmp"
	"math"
	"slices"
	"sort"

	"github.com/musterhq/muster/internal/engine/elastic"
	"github.com/musterhq/muster/internal/engine/order"
	"github.com/musterhq/muster/internal/engine/preempt"
	"github.com/musterhq/muster/internal/engine/quota"
)

// Resizable is the elastic workloads of a queue whose size may change now, sorted by key, with what one pod of each
// takes. It is a snapshot that ResizableOf of package growth updates: later changes of its members show at the next
// call.
type Resizable struct {
	Jobs    []elastic.Job
	Members []*Workload
	At      []int
	Each    []quota.Vector
	// Grows says which workloads may be larger if there is ever enough capacity, planned for how many more pods of each
	// quota is planned already.
	Grows   []bool
	Planned []int32
	Policy  elastic.Policy
	// Yieldings caches how they shrink for a priority, growers what those of higher priorities could take.
	Yieldings map[int32]*elastic.Yielding
	Growers   map[int32]*Growers
}

// Growers is the members that may be larger, highest priority first, and what they could take in total beyond what is
// planned.
type Growers struct {
	Indices []int
	All     quota.Vector
}

// Insert makes room for an entry at an index.
func (r *Resizable) Insert(n int) {
	r.Jobs, r.Members, r.At = slices.Insert(r.Jobs, n, elastic.Job{}), slices.Insert(r.Members, n, nil),
		slices.Insert(r.At, n, 0)
	r.Each, r.Grows = slices.Insert(r.Each, n, nil), slices.Insert(r.Grows, n, false)
	r.Planned = slices.Insert(r.Planned, n, 0)
}

// Remove deletes the entry at an index.
func (r *Resizable) Remove(n int) {
	r.Jobs, r.Members, r.At = slices.Delete(r.Jobs, n, n+1), slices.Delete(r.Members, n, n+1), slices.Delete(r.At, n, n+1)
	r.Each, r.Grows = slices.Delete(r.Each, n, n+1), slices.Delete(r.Grows, n, n+1)
	r.Planned = slices.Delete(r.Planned, n, n+1)
}

// Has reports whether the entry of the workload is up to date.
func (r *Resizable) Has(w *Workload) bool {
	job, at, ok := w.ElasticJob()
	n, known := r.Find(w.Key)
	if !ok || !known {
		return !ok && !known
	}
	return r.Members[n] == w && r.At[n] == at && r.Jobs[n].Equal(&job) && slices.Equal(r.Each[n], w.Charged.Holder.Pod) &&
		r.Grows[n] == w.CouldGrow(&job) && r.Planned[n] == w.PodsPlanned()
}

// YieldsTo returns how the members shrink for a workload of a priority.
func (r *Resizable) YieldsTo(priority int32) *elastic.Yielding {
	y, known := r.Yieldings[priority]
	if !known {
		y = r.Policy.Yielding(r.Jobs, priority)
		r.Yieldings[priority] = y
	}
	return y
}

// YieldsOnceTo is YieldsTo for the growth of those at the indices, without the members that have already shrunk or
// stopped for one of them.
func (r *Resizable) YieldsOnceTo(priority int32, indices []int) *elastic.Yielding {
	var spared []int
	for _, i := range indices {
		for key, uid := range r.Members[i].Preempted {
			if n, known := r.Find(key); known && r.Members[n].UID == uid {
				spared = append(spared, n)
			}
		}
	}
	if len(spared) == 0 {
		return r.YieldsTo(priority)
	}
	return r.Policy.Yielding(r.Jobs, priority, spared...)
}

// Find returns the index of a workload in the list.
func (r *Resizable) Find(key order.Key) (int, bool) { return find(r.Members, key) }

// find returns the index of a workload in a list that is sorted by key, or where it would be.
func find(sorted []*Workload, key order.Key) (at int, found bool) {
	return slices.BinarySearchFunc(sorted, key,
		func(w *Workload, key order.Key) int { return order.CompareKeys(w.Key, key) })
}

// Above returns the members of a higher priority that may be larger.
func (r *Resizable) Above(priority int32) *Growers {
	out, known := r.Growers[priority]
	if known {
		return out
	}
	out = &Growers{}
	sums := map[quota.Index]int64{}
	for i := range r.Jobs {
		if r.Grows[i] && r.Jobs[i].Priority > priority {
			out.Indices = append(out.Indices, i)
			for _, a := range r.Each[i] {
				sums[a.Index] = quota.Add(sums[a.Index], quota.Times(a.Value, max(0, r.Jobs[i].Max-r.Jobs[i].Size-r.Planned[i])))
			}
		}
	}
	out.All = VectorOfSums(sums)
	slices.SortStableFunc(out.Indices, func(a, b int) int { return cmp.Compare(r.Jobs[b].Priority, r.Jobs[a].Priority) })
	r.Growers[priority] = out
	return out
}

// Sizes returns the sizes of the members.
func (r *Resizable) Sizes() []int32 {
	sizes := make([]int32, len(r.Jobs))
	for i := range r.Jobs {
		sizes[i] = r.Jobs[i].Size
	}
	return sizes
}

// Spare returns sizes that are enough, as the given ones are, at which members keep what those that yield after them
// make unnecessary: these may release more than is still missing. One that would stop keeps its minimum if it can. Of
// many members, only the first few are tried.
func (r *Resizable) Spare(sizes []int32, enough func(sizes []int32) bool) []int32 {
	var changed []int
	for i := range r.Jobs {
		if sizes[i] != r.Jobs[i].Size {
			changed = append(changed, i)
		}
	}
	if len(changed) < 2 {
		return sizes // it could not yield less
	}
	slices.SortStableFunc(changed, func(a, b int) int {
		return cmp.Or(cmp.Compare(min(sizes[a], 1), min(sizes[b], 1)), cmp.Compare(r.Jobs[b].Priority, r.Jobs[a].Priority),
			r.Jobs[a].QueuedAt.Compare(r.Jobs[b].QueuedAt))
	})
	for _, i := range changed[:min(len(changed), maxSpared)] {
		with := func(size int32) []int32 {
			out := slices.Clone(sizes)
			out[i] = size
			return out
		}
		least, most := max(sizes[i]+1, r.Jobs[i].Min), r.Jobs[i].Size
		if least > most || !enough(with(least)) {
			continue
		}
		sizes =
			with(most - int32(sort.Search(int(most-least), func(fewer int) bool { return enough(with(most - int32(fewer))) })))
	}
	return sizes
}

// maxSpared bounds how many members spare tries.
const maxSpared = 8

// Changes returns the members that have to stop, and those that have to shrink, to get to the given sizes.
func (r *Resizable) Changes(q *ClusterQueue, sizes []int32) (victims []preempt.Victim, yields []Yield) {
	for i, w := range r.Members {
		switch sizes[i] {
		case r.Jobs[i].Size:
		case 0:
			victims = append(victims, preempt.Victim{Holder: w.Charged.Holder, Queue: q.Node, Cause: preempt.InQueue})
		default:
			yields = append(yields, Yield{w, r.At[i], w.Held.Sized(r.At[i], sizes[i], nil)})
		}
	}
	return victims, yields
}

// Smallest returns the smallest n from 1 to most for which enough is true. enough must be true for most, and for each
// number above one for which it is. The search starts from below, as the result is usually small.
func Smallest(most int, enough func(n int) bool) int {
	low, high := 0, 1
	for high < most && !enough(high) {
		low, high = high, min(most, 2*min(high, math.MaxInt/2))
	}
	return low + 1 + sort.Search(high-low-1, func(n int) bool { return enough(low + 1 + n) })
}

// AddElastic adds the workload to the elastic ones of the queue, which are sorted by key; RemoveElastic removes it.
func (cq *ClusterQueue) AddElastic(w *Workload) {
	at, _ := find(cq.Elastic, w.Key)
	cq.Elastic = slices.Insert(cq.Elastic, at, w)
}

// RemoveElastic takes the workload off that list.
func (cq *ClusterQueue) RemoveElastic(w *Workload) {
	if at, ok := find(cq.Elastic, w.Key); ok {
		cq.Elastic = slices.Delete(cq.Elastic, at, at+1)
		cq.MarkStale(w)
	}
}

// MarkStale notes that the workload's entry in the queue's resizable is stale.
func (cq *ClusterQueue) MarkStale(w *Workload) {
	if cq.Resizable != nil {
		cq.Stale = append(cq.Stale, w)
	}
}
