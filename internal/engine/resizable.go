package engine

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

// resizable is the elastic workloads of a queue whose size may change now, sorted by key, with what one pod of each
// takes. It is a snapshot that resizableOf updates: later changes of its members show at the next call.
type resizable struct {
	jobs    []elastic.Job
	members []*workload
	at      []int
	each    []quota.Vector
	// grows says which workloads may be larger if there is ever enough capacity, planned for how many more pods of each
	// quota is planned already.
	grows   []bool
	planned []int32
	policy  elastic.Policy
	// yieldings caches how they shrink for a priority, growers what those of higher priorities could take.
	yieldings map[int32]*elastic.Yielding
	growers   map[int32]*growers
}

// growers is the members that may be larger, highest priority first, and what they could take in total beyond what is
// planned.
type growers struct {
	indices []int
	all     quota.Vector
}

// insert makes room for an entry, and remove deletes one.
func (r *resizable) insert(n int) {
	r.jobs, r.members, r.at = slices.Insert(r.jobs, n, elastic.Job{}), slices.Insert(r.members, n, nil), slices.Insert(r.at, n, 0)
	r.each, r.grows = slices.Insert(r.each, n, nil), slices.Insert(r.grows, n, false)
	r.planned = slices.Insert(r.planned, n, 0)
}

func (r *resizable) remove(n int) {
	r.jobs, r.members, r.at = slices.Delete(r.jobs, n, n+1), slices.Delete(r.members, n, n+1), slices.Delete(r.at, n, n+1)
	r.each, r.grows = slices.Delete(r.each, n, n+1), slices.Delete(r.grows, n, n+1)
	r.planned = slices.Delete(r.planned, n, n+1)
}

// has reports whether the entry of the workload is up to date.
func (r *resizable) has(w *workload) bool {
	job, at, ok := w.elasticJob()
	n, known := r.find(w.Key)
	if !ok || !known {
		return !ok && !known
	}
	return r.members[n] == w && r.at[n] == at && r.jobs[n].Equal(&job) && slices.Equal(r.each[n], w.charged.holder.Pod) && r.grows[n] == w.couldGrow(&job) && r.planned[n] == w.podsPlanned()
}

// yieldsTo returns how the members shrink for a workload of a priority.
func (r *resizable) yieldsTo(priority int32) *elastic.Yielding {
	y, known := r.yieldings[priority]
	if !known {
		y = r.policy.Yielding(r.jobs, priority)
		r.yieldings[priority] = y
	}
	return y
}

// yieldsOnceTo is yieldsTo for the growth of those at the indices, without the members that have already shrunk or
// stopped for one of them.
func (r *resizable) yieldsOnceTo(priority int32, indices []int) *elastic.Yielding {
	var spared []int
	for _, i := range indices {
		for key, uid := range r.members[i].preempted {
			if n, known := r.find(key); known && r.members[n].UID == uid {
				spared = append(spared, n)
			}
		}
	}
	if len(spared) == 0 {
		return r.yieldsTo(priority)
	}
	return r.policy.Yielding(r.jobs, priority, spared...)
}

// find returns the index of a workload in the list.
func (r *resizable) find(key Key) (int, bool) {
	return slices.BinarySearchFunc(r.members, key, func(m *workload, key Key) int { return order.CompareKeys(m.Key, key) })
}

// above returns the members of a higher priority that may be larger.
func (r *resizable) above(priority int32) *growers {
	out, known := r.growers[priority]
	if known {
		return out
	}
	out = &growers{}
	sums := map[quota.Index]int64{}
	for i := range r.jobs {
		if r.grows[i] && r.jobs[i].Priority > priority {
			out.indices = append(out.indices, i)
			for _, a := range r.each[i] {
				sums[a.Index] = quota.Add(sums[a.Index], quota.Times(a.Value, max(0, r.jobs[i].Max-r.jobs[i].Size-r.planned[i])))
			}
		}
	}
	out.all = vectorOfSums(sums)
	slices.SortStableFunc(out.indices, func(a, b int) int { return cmp.Compare(r.jobs[b].Priority, r.jobs[a].Priority) })
	r.growers[priority] = out
	return out
}

// sizes returns the sizes of the members.
func (r *resizable) sizes() []int32 {
	sizes := make([]int32, len(r.jobs))
	for i := range r.jobs {
		sizes[i] = r.jobs[i].Size
	}
	return sizes
}

// spare returns sizes that are enough, as the given ones are, at which members keep what those that yield after them make
// unnecessary: these may release more than is still missing. One that would stop keeps its minimum if it can. Of many
// members, only the first few are tried.
func (r *resizable) spare(sizes []int32, enough func(sizes []int32) bool) []int32 {
	var changed []int
	for i := range r.jobs {
		if sizes[i] != r.jobs[i].Size {
			changed = append(changed, i)
		}
	}
	if len(changed) < 2 {
		return sizes // it could not yield less
	}
	slices.SortStableFunc(changed, func(a, b int) int {
		return cmp.Or(cmp.Compare(min(sizes[a], 1), min(sizes[b], 1)), cmp.Compare(r.jobs[b].Priority, r.jobs[a].Priority), r.jobs[a].QueuedAt.Compare(r.jobs[b].QueuedAt))
	})
	for _, i := range changed[:min(len(changed), maxSpared)] {
		with := func(size int32) []int32 {
			out := slices.Clone(sizes)
			out[i] = size
			return out
		}
		least, most := max(sizes[i]+1, r.jobs[i].Min), r.jobs[i].Size
		if least > most || !enough(with(least)) {
			continue
		}
		sizes = with(most - int32(sort.Search(int(most-least), func(fewer int) bool { return enough(with(most - int32(fewer))) })))
	}
	return sizes
}

// maxSpared bounds how many members spare tries.
const maxSpared = 8

// changes returns the members that have to stop, and those that have to shrink, to get to the given sizes.
func (r *resizable) changes(q *clusterQueue, sizes []int32) (victims []preempt.Victim, yields []yield) {
	for i, w := range r.members {
		switch sizes[i] {
		case r.jobs[i].Size:
		case 0:
			victims = append(victims, preempt.Victim{Holder: w.charged.holder, Queue: q.node, Cause: preempt.InQueue})
		default:
			yields = append(yields, yield{w, r.at[i], w.held.Sized(r.at[i], sizes[i], nil)})
		}
	}
	return victims, yields
}

// smallest returns the smallest n from 1 to most for which enough is true. enough must be true for most, and for each
// number above one for which it is. The search starts from below, as the result is usually small.
func smallest(most int, enough func(n int) bool) int {
	low, high := 0, 1
	for high < most && !enough(high) {
		low, high = high, min(most, 2*min(high, math.MaxInt/2))
	}
	return low + 1 + sort.Search(high-low-1, func(n int) bool { return enough(low + 1 + n) })
}
