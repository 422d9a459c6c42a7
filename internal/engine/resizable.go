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

// resizableOf returns the snapshot for the queue. If only a few workloads have changed, only their entries are
// updated.
func (g *growths) resizableOf(q *clusterQueue) *resizable {
	switch t := q.resizable; {
	case t == nil || len(q.stale) > fewStale+len(q.elastic)/elasticPerStale:
		q.resizable = g.listResizable(q)
	case len(q.stale) == 0:
		return t
	default:
		for _, w := range q.stale {
			g.refreshEntry(t, q, w)
		}
		clear(t.yieldings)
		clear(t.growers)
	}
	clear(q.stale)
	q.stale = q.stale[:0]
	q.listings++
	if q.family != nil {
		q.family.listings++
	}
	return q.resizable
}

// fewStale and elasticPerStale bound the entries that are updated in place: with more stale ones than fewStale plus one
// in elasticPerStale, it is less work to rebuild the list.
const fewStale, elasticPerStale = 4, 32

// listResizable builds the list for the queue.
func (g *growths) listResizable(q *clusterQueue) *resizable {
	n := len(q.elastic)
	t := &resizable{policy: g.policy, yieldings: map[int32]*elastic.Yielding{}, growers: map[int32]*growers{},
		jobs: make([]elastic.Job, 0, n), members: make([]*workload, 0, n), at: make([]int, 0, n), each: make([]quota.Vector, 0, n), grows: make([]bool, 0, n), planned: make([]int32, 0, n)}
	for _, w := range q.elastic {
		if job, at, ok := w.elasticJob(); ok {
			t.insert(len(t.members))
			g.setEntry(t, len(t.members)-1, w, job, at)
		}
	}
	return t
}

// refreshEntry updates the entry of the workload, which may be new, changed, replaced by another of its name, or no
// longer resizable.
func (g *growths) refreshEntry(t *resizable, q *clusterQueue, w *workload) {
	n, known := t.find(w.Key)
	job, at, ok := w.elasticJob()
	switch ok = ok && w.listedIn == q; {
	case ok:
		if !known {
			t.insert(n)
		}
		g.setEntry(t, n, w, job, at)
	case known && t.members[n] == w:
		t.remove(n)
	}
}

// setEntry sets the entry at an index.
func (g *growths) setEntry(t *resizable, n int, w *workload, job elastic.Job, at int) {
	job.Speeds = g.speeds.Of(job.Exponent, job.Max)
	t.jobs[n], t.members[n], t.at[n], t.each[n], t.grows[n], t.planned[n] = job, w, at, w.charged.holder.Pod, w.couldGrow(&job), w.podsPlanned()
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

// couldGrow reports whether the workload may be larger if there is ever enough capacity.
func (w *workload) couldGrow(job *elastic.Job) bool {
	return job.Size < job.Max && !w.held.HasSurplus() && !w.growthFailed && w.mayGrow()
}

// podsPlanned returns for how many more pods of a resizable workload quota is planned.
func (w *workload) podsPlanned() int32 {
	if len(w.growing) == 0 {
		return 0
	}
	first := w.growing[0]
	return int32(first.Value / max(1, w.charged.holder.Pod.Of(first.Index)))
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

// vectorOfSums converts the sums to a vector.
func vectorOfSums(sums map[quota.Index]int64) quota.Vector {
	amounts := make([]quota.Amount, 0, len(sums))
	for index, value := range sums {
		amounts = append(amounts, quota.Amount{Index: index, Value: value})
	}
	return quota.VectorOf(amounts...)
}

// sizes returns the sizes of the members.
func (r *resizable) sizes() []int32 {
	sizes := make([]int32, len(r.jobs))
	for i := range r.jobs {
		sizes[i] = r.jobs[i].Size
	}
	return sizes
}

// sizesAfter returns the sizes of the members once the outcome has evicted and shrunk others; ok is false if these are
// not all members.
func (r *resizable) sizesAfter(q *clusterQueue, found *outcome) (sizes []int32, ok bool) {
	sizes = r.sizes()
	for _, v := range found.victims {
		i, known := r.find(v.Key)
		if !known || v.Queue != q.node {
			return nil, false
		}
		sizes[i] = 0
	}
	for _, y := range found.yields {
		i, known := r.find(y.w.Key)
		if !known || y.w.queue != q {
			return nil, false
		}
		sizes[i] = y.given.PodSets[y.at].Count
	}
	return sizes, true
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
