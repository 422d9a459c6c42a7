package engine

import (
	"maps"
	"slices"
	"sort"

	"github.com/musterhq/muster/internal/engine/elastic"
	"github.com/musterhq/muster/internal/engine/order"
	"github.com/musterhq/muster/internal/engine/place"
	"github.com/musterhq/muster/internal/engine/preempt"
	"github.com/musterhq/muster/internal/engine/quota"
)

// yield is a smaller size of somebody who runs.
type yield struct {
	w     *workload
	at    int
	given *Admission
}

// troupe is the elastic workloads of a queue whose size may change now, in the order of
// names.
type troupe struct {
	jobs    []elastic.Job
	members []*workload
	at      []int
}

// troupeOf lists those of the queue that are fit for it.
func (e *Engine) troupeOf(q *clusterQueue, fit func(*elastic.Job) bool) *troupe {
	t := &troupe{}
	for _, key := range slices.SortedFunc(maps.Keys(q.elastic), order.CompareKeys) {
		w := q.elastic[key]
		if job, at, ok := w.elasticJob(); ok && fit(&job) {
			t.jobs, t.members, t.at = append(t.jobs, job), append(t.members, w), append(t.at, at)
		}
	}
	return t
}

// byYielding looks for those of the queue who have to get smaller, or to stop, so that the
// class's first one can have its minimum: no more of them than it takes. If there is room
// for it without anybody it gives that up.
func (e *Engine) byYielding(w *workload, c *class) (found outcome, ok bool) {
	q := c.queue
	if len(q.elastic) == 0 {
		return outcome{}, false
	}
	form := e.formOf(c)
	least := form.ReducedBy(form.Reducible())
	if form.Reducible() > 0 {
		if alone := e.consider(w, c, least); alone.verdict == admissible || alone.verdict == promisable {
			return outcome{}, false
		}
	}
	t := e.troupeOf(q, func(job *elastic.Job) bool {
		return job.Priority < w.Priority || job.Priority == w.Priority && job.Size > job.Min
	})
	steps := elastic.Yields(t.jobs, w.Priority)
	fits := func(n int) bool {
		e.yielding(q, t, sizesAfter(steps[:n]), func() { found = e.consider(w, c, least) })
		return found.verdict == promisable || found.verdict == admissible
	}
	if len(steps) == 0 || !fits(len(steps)) {
		return outcome{}, false
	}
	n := sort.Search(len(steps), func(n int) bool { return fits(n) })
	if !fits(n) {
		return outcome{}, false // room on nodes may be less for more
	}
	found.verdict = preempting
	found.victims, found.yields = t.told(q, sizesAfter(steps[:n]))
	return found, true
}

// sizesAfter are the sizes of those who took steps.
func sizesAfter(steps []elastic.Step) map[int]int32 {
	out := map[int]int32{}
	for _, step := range steps {
		out[step.Index] = step.To
	}
	return out
}

// told are those who have to stop, and those who get smaller, for others to have those
// sizes.
func (t *troupe) told(q *clusterQueue, sizes map[int]int32) (victims []preempt.Victim, yields []yield) {
	for _, i := range slices.Sorted(maps.Keys(sizes)) {
		w := t.members[i]
		if sizes[i] == 0 {
			victims = append(victims, preempt.Victim{Holder: w.charged.holder, Queue: q.node, Cause: preempt.InQueue})
		} else {
			yields = append(yields, yield{w, t.at[i], w.held.sized(t.at[i], sizes[i], nil)})
		}
	}
	return victims, yields
}

// yielding runs f as if those of the troupe had the sizes and their pods were gone.
func (e *Engine) yielding(q *clusterQueue, t *troupe, sizes map[int]int32, f func()) {
	var released []quota.Vector
	release := func(v quota.Vector) {
		e.tree.Release(q.Name, quota.Planned, v)
		released = append(released, v)
	}
	e.departing++
	defer func() {
		e.departing--
		for _, v := range released {
			e.tree.Charge(q.Name, quota.Planned, v)
		}
	}()
	e.places.Try(func() {
		for _, i := range slices.Sorted(maps.Keys(sizes)) {
			w, at := t.members[i], t.at[i]
			if sizes[i] == 0 {
				release(w.charged.planned)
				e.places.Hold(w.Key, e.holding(w, placed{by: w.held, leaving: true}))
				continue
			}
			release(e.vectorOfPods(&w.held.PodSets[at], w.held.PodSets[at].Count-sizes[i]))
			if given := w.held.sized(at, sizes[i], nil); given.onNodes() {
				e.places.Hold(w.Key, e.holding(w, placed{by: given}))
			}
		}
		f()
	})
}

// moreOnNodes finds nodes for so many more pods of what is held, at those nodes or others
// where it is all the same, in the domain of the others where it is not.
func (e *Engine) moreOnNodes(w *workload, at int, pods int32, on place.Ledger) ([]place.NodeCount, bool) {
	a := &w.held.PodSets[at]
	n := slices.IndexFunc(w.PodSets, func(ps PodSet) bool { return ps.Name == a.PodSet })
	ask, ok := e.askOf(&w.PodSets[n], a)
	if !ok || len(a.Places) == 0 {
		return nil, true // a matter of quota alone
	}
	ask.Count, ask.Avoid = pods, w.avoid
	if ask.Mandatory {
		domain, known := e.places.LabelOf(a.Places[0].Node, ask.Level)
		if !known {
			return nil, false
		}
		ask.NodeSelector = maps.Clone(ask.NodeSelector)
		if ask.NodeSelector == nil {
			ask.NodeSelector = map[string]string{}
		}
		ask.NodeSelector[ask.Level] = domain
	}
	found, fault := e.places.Find([]place.Ask{ask}, on)
	if fault != nil {
		return nil, false
	}
	return found[0].Nodes, true
}
