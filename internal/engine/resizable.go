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

// resizable is the elastic workloads of a queue whose size may change now, in the order of
// names, with what one pod of each takes. It is as of when resizableOf was asked for it: what
// becomes of its members since shows when it is asked again, and not before.
type resizable struct {
	jobs    []elastic.Job
	members []*workload
	at      []int
	each    []quota.Vector
	// grows tells who may be larger if there is room, whenever that is.
	grows  []bool
	policy elastic.Policy
	// yieldings are the ways in which they yield to a priority, wants what those of higher
	// priorities could take.
	yieldings map[int32]*elastic.Yielding
	wants     map[int32]*wants
}

// wants are those of the resizable who may be larger, the highest priority first, and what they
// could take all together.
type wants struct {
	indices []int
	all     quota.Vector
}

// resizableOf lists those of the queue. Where a few of them are not what they were, these alone
// are looked at.
func (e *Engine) resizableOf(q *clusterQueue) *resizable {
	switch t := q.resizable; {
	case t == nil || len(q.toList) > fewToList+len(q.elastic)/manyToList:
		q.resizable = e.listResizable(q)
	case len(q.toList) == 0:
		return t
	default:
		for _, w := range q.toList {
			e.listAgain(t, q, w)
		}
		clear(t.yieldings)
		clear(t.wants)
	}
	clear(q.toList)
	q.toList = q.toList[:0]
	q.listings++
	return q.resizable
}

// Where so many have changed, and one of so many more, it is less work to list all again than
// to find the place of each one.
const fewToList, manyToList = 4, 32

// listResizable lists all of the queue whose size may change.
func (e *Engine) listResizable(q *clusterQueue) *resizable {
	n := len(q.elastic)
	t := &resizable{policy: e.options.Elastic, yieldings: map[int32]*elastic.Yielding{}, wants: map[int32]*wants{},
		jobs: make([]elastic.Job, 0, n), members: make([]*workload, 0, n), at: make([]int, 0, n), each: make([]quota.Vector, 0, n), grows: make([]bool, 0, n)}
	for _, w := range q.elastic {
		if job, at, ok := w.elasticJob(); ok {
			t.insert(len(t.members))
			e.write(t, len(t.members)-1, w, job, at)
		}
	}
	return t
}

// listAgain has the list of the queue have the workload as it is: it may be new, another one of
// that name, changed, or not one of them any more.
func (e *Engine) listAgain(t *resizable, q *clusterQueue, w *workload) {
	n, known := t.find(w.Key)
	job, at, ok := w.elasticJob()
	switch ok = ok && w.listedIn == q; {
	case ok:
		if !known {
			t.insert(n)
		}
		e.write(t, n, w, job, at)
	case known && t.members[n] == w:
		t.remove(n)
	}
}

// write notes what the member at that place is.
func (e *Engine) write(t *resizable, n int, w *workload, job elastic.Job, at int) {
	job.Speeds = e.speeds.Of(job.Exponent, job.Max)
	t.jobs[n], t.members[n], t.at[n], t.each[n], t.grows[n] = job, w, at, w.charged.holder.Pod, w.couldGrow(&job)
}

// insert makes a place for one more, and remove takes a member out.
func (t *resizable) insert(n int) {
	t.jobs, t.members, t.at = slices.Insert(t.jobs, n, elastic.Job{}), slices.Insert(t.members, n, nil), slices.Insert(t.at, n, 0)
	t.each, t.grows = slices.Insert(t.each, n, nil), slices.Insert(t.grows, n, false)
}

func (t *resizable) remove(n int) {
	t.jobs, t.members, t.at = slices.Delete(t.jobs, n, n+1), slices.Delete(t.members, n, n+1), slices.Delete(t.at, n, n+1)
	t.each, t.grows = slices.Delete(t.each, n, n+1), slices.Delete(t.grows, n, n+1)
}

// couldGrow reports whether it may be larger, if there is room for it, whenever that is.
func (w *workload) couldGrow(job *elastic.Job) bool {
	return job.Size < job.Max && len(w.growing) == 0 && !w.held.hasSurplus() && !w.gaveUp && w.mayGrow()
}

// has reports whether the list has the workload as it is.
func (t *resizable) has(w *workload) bool {
	job, at, ok := w.elasticJob()
	n, known := t.find(w.Key)
	if !ok || !known {
		return !ok && !known
	}
	return t.members[n] == w && t.at[n] == at && t.jobs[n].Equal(&job) && slices.Equal(t.each[n], w.charged.holder.Pod) && t.grows[n] == w.couldGrow(&job)
}

// yieldsTo is how they yield to somebody of a priority.
func (t *resizable) yieldsTo(priority int32) *elastic.Yielding {
	y, known := t.yieldings[priority]
	if !known {
		y = t.policy.Yielding(t.jobs, priority)
		t.yieldings[priority] = y
	}
	return y
}

// yieldsOnceTo is the same for those at the indices to grow, without those who have yielded
// for the growth of one of them before.
func (t *resizable) yieldsOnceTo(priority int32, indices []int) *elastic.Yielding {
	var spared []int
	for _, i := range indices {
		for key, uid := range t.members[i].displaced {
			if n, known := t.find(key); known && t.members[n].UID == uid {
				spared = append(spared, n)
			}
		}
	}
	if len(spared) == 0 {
		return t.yieldsTo(priority)
	}
	return t.policy.Yielding(t.jobs, priority, spared...)
}

// find is the place of a workload in the list.
func (t *resizable) find(key Key) (int, bool) {
	return slices.BinarySearchFunc(t.members, key, func(m *workload, key Key) int { return order.CompareKeys(m.Key, key) })
}

// above are those who may be larger of higher priorities than that.
func (t *resizable) above(priority int32) *wants {
	out, known := t.wants[priority]
	if known {
		return out
	}
	out = &wants{}
	sums := map[quota.Index]int64{}
	for i := range t.jobs {
		if t.grows[i] && t.jobs[i].Priority > priority {
			out.indices = append(out.indices, i)
			for _, a := range t.each[i] {
				sums[a.Index] = quota.Add(sums[a.Index], quota.Times(a.Value, t.jobs[i].Max-t.jobs[i].Size))
			}
		}
	}
	out.all = vectorOfSums(sums)
	slices.SortStableFunc(out.indices, func(a, b int) int { return cmp.Compare(t.jobs[b].Priority, t.jobs[a].Priority) })
	t.wants[priority] = out
	return out
}

// vectorOfSums is the same as a vector.
func vectorOfSums(sums map[quota.Index]int64) quota.Vector {
	amounts := make([]quota.Amount, 0, len(sums))
	for index, value := range sums {
		amounts = append(amounts, quota.Amount{Index: index, Value: value})
	}
	return quota.VectorOf(amounts...)
}

// told are those who have to stop, and those who get smaller, for others to have those
// sizes.
func (t *resizable) told(q *clusterQueue, sizes []int32) (victims []preempt.Victim, yields []yield) {
	for i, w := range t.members {
		switch sizes[i] {
		case t.jobs[i].Size:
		case 0:
			victims = append(victims, preempt.Victim{Holder: w.charged.holder, Queue: q.node, Cause: preempt.InQueue})
		default:
			yields = append(yields, yield{w, t.at[i], w.held.sized(t.at[i], sizes[i], nil)})
		}
	}
	return victims, yields
}

// fewest is the smallest number from 1 to the most that is enough, where the most is and
// every larger one than an enough one. It is sought from below: mostly few are.
func fewest(most int, enough func(n int) bool) int {
	low, high := 0, 1
	for high < most && !enough(high) {
		low, high = high, min(most, 2*min(high, math.MaxInt/2))
	}
	return low + 1 + sort.Search(high-low-1, func(n int) bool { return enough(low + 1 + n) })
}
