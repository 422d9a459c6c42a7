package engine

import (
	"maps"
	"slices"
	"sort"
	"time"

	"github.com/musterhq/muster/internal/engine/elastic"
	"github.com/musterhq/muster/internal/engine/place"
	"github.com/musterhq/muster/internal/engine/quota"
	"github.com/musterhq/muster/internal/engine/reason"
)

// tryGrowth has those queues looked at in which somebody may grow by now who could not
// before.
func (e *Engine) tryGrowth(now time.Time) {
	for _, name := range slices.Sorted(maps.Keys(e.growths)) {
		if e.growths[name].After(now) {
			continue
		}
		delete(e.growths, name)
		if q := e.queues[name]; q != nil && q.family != nil {
			q.family.put()
		}
	}
}

// grow gives the elastic workloads of a family what is free and nobody who waits can have,
// and those of higher priority what lower ones have. It is the last that is done in a pass.
func (p *pass) grow(f *family) {
	for _, q := range f.queues {
		if len(q.elastic) == 0 || q.fault().Code != reason.None || p.mustWait(q).Code != reason.None {
			continue
		}
		p.keepAll(f)
		changes := p.growthsOf(q)
		p.letAllGo(f)
		for _, change := range changes {
			p.enlarge(change)
		}
		p.displaceForGrowth(q)
	}
}

// growth is a workload that may have more pods.
type growth struct {
	w  *workload
	at int
	to int32
}

// growthsOf shares what is free out, one replica at a time. It is for those who have rested
// since their last resize, and where it is worth the cost.
func (p *pass) growthsOf(q *clusterQueue) []growth {
	delete(p.growths, q.Name)
	t := p.troupeOf(q, func(job *elastic.Job) bool { return job.Size < job.Max })
	each := make([]quota.Vector, len(t.jobs))
	var may []int
	for i, w := range t.members {
		each[i] = p.vectorOfPods(&w.held.PodSets[t.at[i]], 1)
		if w.held.hasSurplus() {
			continue // its pods are on their way yet
		}
		waited := len(w.growing) > 0
		if waited {
			if !fits(q.node, w.growing) && q.family.leaving() > 0 {
				continue // those who make room are on their way yet
			}
			p.plan(w, nil)
		}
		to := min(int64(t.jobs[i].Max), int64(t.jobs[i].Size)+roomFor(q.node, each[i]))
		if to <= int64(t.jobs[i].Size) {
			continue
		}
		if at := p.options.Elastic.GrowsAt(&t.jobs[i], int32(to)); at.After(p.now) && !waited {
			p.growsLater(q, at)
			continue
		}
		may = append(may, i)
	}
	return p.share(q, t, each, may)
}

// share gives the room to those who may grow.
func (p *pass) share(q *clusterQueue, t *troupe, each []quota.Vector, may []int) []growth {
	jobs := make([]elastic.Job, len(may))
	for n, i := range may {
		jobs[n] = t.jobs[i]
	}
	var taken []quota.Vector
	elastic.Grow(jobs, func(n int) bool {
		v := each[may[n]]
		if roomFor(q.node, v) < 1 {
			return false
		}
		for _, ledger := range []quota.Ledger{quota.Held, quota.Planned} {
			p.tree.Charge(q.Name, ledger, v)
		}
		taken = append(taken, v)
		return true
	})
	for _, v := range taken {
		for _, ledger := range []quota.Ledger{quota.Held, quota.Planned} {
			p.tree.Release(q.Name, ledger, v)
		}
	}
	var out []growth
	for n, i := range may {
		if jobs[n].Size > t.jobs[i].Size {
			out = append(out, growth{t.members[i], t.at[i], jobs[n].Size})
		}
	}
	slices.SortStableFunc(out, func(a, b growth) int { return int(b.w.Priority) - int(a.w.Priority) })
	return out
}

// growsLater notes that somebody of the queue may grow from a time on.
func (p *pass) growsLater(q *clusterQueue, at time.Time) {
	if due, known := p.growths[q.Name]; !known || at.Before(due) {
		p.growths[q.Name] = at
	}
}

// roomFor is how often the amounts are free, now and in what is planned.
func roomFor(n *quota.Node, v quota.Vector) int64 {
	most := int64(1) << 31
	for _, a := range v {
		if a.Value > 0 {
			most = min(most, n.Available(quota.Held, a.Index)/a.Value, n.Available(quota.Planned, a.Index)/a.Value)
		}
	}
	return max(0, most)
}

// enlarge gives a workload as many more pods as there is room for on nodes, too.
func (p *pass) enlarge(g growth) {
	now := g.w.held.PodSets[g.at].Count
	var found []place.NodeCount
	find := func(pods int32) bool {
		nodes, ok := p.moreOnNodes(g.w, g.at, pods, place.Now)
		if ok {
			found = nodes
		}
		return ok
	}
	to := g.to
	if !find(to - now) {
		fewer := sort.Search(int(to-now), func(fewer int) bool { return fewer > 0 && find(to-now-int32(fewer)) })
		if to -= int32(fewer); to == now {
			return
		}
		find(to - now)
	}
	p.budget--
	p.resize(g.w, g.at, g.w.held.sized(g.at, to, found), Key{})
}

// plan has so much more be planned for the workload, as soon as others are gone.
func (p *pass) plan(w *workload, more quota.Vector) {
	w.growing = more
	p.settle(w)
}

// displaceForGrowth has elastic workloads of lower priority yield to those who could be
// larger: a priority has all it can use before a lower one has anything. Those grow once
// the others' pods are gone.
func (p *pass) displaceForGrowth(q *clusterQueue) {
	lowest, highest, mixed := q.prioritiesOfElastic()
	if !mixed || lowest == highest {
		return
	}
	t := p.troupeOf(q, func(job *elastic.Job) bool { return job.Size < job.Max && job.Priority > lowest })
	indices := make([]int, len(t.jobs))
	for i := range indices {
		indices[i] = i
	}
	slices.SortStableFunc(indices, func(a, b int) int {
		return int(t.jobs[b].Priority) - int(t.jobs[a].Priority)
	})
	for _, i := range indices {
		w := t.members[i]
		if len(w.growing) == 0 && !w.held.hasSurplus() {
			p.displaceFor(q, w, &t.jobs[i], t.at[i])
		}
	}
}

// displaceFor finds who has to yield so that the job can be as large as it may.
func (p *pass) displaceFor(q *clusterQueue, w *workload, job *elastic.Job, at int) {
	lower := p.troupeOf(q, func(other *elastic.Job) bool { return other.Priority < job.Priority })
	steps := slices.DeleteFunc(elastic.Yields(lower.jobs, job.Priority), func(s elastic.Step) bool { return lower.jobs[s.Index].Priority >= job.Priority })
	if len(steps) == 0 {
		return
	}
	each := p.vectorOfPods(&w.held.PodSets[at], 1)
	room := func(n int) (more int32) {
		p.yielding(q, lower, sizesAfter(steps[:n]), func() {
			free := int64(job.Max - job.Size)
			for _, a := range each {
				if a.Value > 0 {
					free = min(free, q.node.Available(quota.Planned, a.Index)/a.Value)
				}
			}
			more = int32(max(0, free))
			for more > 0 {
				if _, ok := p.moreOnNodes(w, at, more, place.Planned); ok {
					return
				}
				more--
			}
		})
		return more
	}
	free, most := room(0), room(len(steps))
	if most <= free {
		return
	}
	n := sort.Search(len(steps), func(n int) bool { return room(n) >= most })
	victims, yields := lower.told(q, sizesAfter(steps[:n]))
	p.budget -= len(victims) + len(yields)
	for _, v := range victims {
		p.evict(v, w)
	}
	for _, y := range yields {
		p.resize(y.w, y.at, y.given, w.Key)
	}
	p.plan(w, p.vectorOfPods(&w.held.PodSets[at], most))
}

// prioritiesOfElastic are the lowest and the highest of the elastic workloads that hold
// quota of the queue.
func (q *clusterQueue) prioritiesOfElastic() (lowest, highest int32, any bool) {
	for _, w := range q.elastic {
		if !any {
			lowest, highest, any = w.Priority, w.Priority, true
		}
		lowest, highest = min(lowest, w.Priority), max(highest, w.Priority)
	}
	return lowest, highest, any
}
