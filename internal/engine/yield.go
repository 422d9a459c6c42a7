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
// names, with what one pod of each takes. It is not changed once it is made.
type troupe struct {
	jobs    []elastic.Job
	members []*workload
	at      []int
	each    []quota.Vector
	policy  elastic.Policy
	// steps are the ways in which they yield to a priority.
	steps map[int32][]elastic.Step
}

// troupeOf lists those of the queue.
func (e *Engine) troupeOf(q *clusterQueue) *troupe {
	if q.troupe != nil {
		return q.troupe
	}
	t := &troupe{policy: e.options.Elastic, steps: map[int32][]elastic.Step{}}
	for _, key := range slices.SortedFunc(maps.Keys(q.elastic), order.CompareKeys) {
		w := q.elastic[key]
		if job, at, ok := w.elasticJob(); ok {
			t.jobs, t.members, t.at = append(t.jobs, job), append(t.members, w), append(t.at, at)
			t.each = append(t.each, e.vectorOfPods(&w.held.PodSets[at], 1))
		}
	}
	q.troupe = t
	return t
}

// yieldsTo are the steps in which they yield to somebody of a priority.
func (t *troupe) yieldsTo(priority int32) []elastic.Step {
	steps, known := t.steps[priority]
	if !known {
		steps = t.policy.Yields(t.jobs, priority)
		t.steps[priority] = steps
	}
	return steps
}

// yieldsBelow are those of them that jobs of lower priorities take, which come first.
func (t *troupe) yieldsBelow(priority int32) []elastic.Step {
	steps := t.yieldsTo(priority)
	n := slices.IndexFunc(steps, func(s elastic.Step) bool { return t.jobs[s.Index].Priority >= priority })
	if n < 0 {
		return steps
	}
	return steps[:n]
}

// sizesAfter are the sizes of all once the steps were taken.
func (t *troupe) sizesAfter(steps []elastic.Step) []int32 {
	out := make([]int32, len(t.jobs))
	for i := range t.jobs {
		out[i] = t.jobs[i].Size
	}
	for _, step := range steps {
		out[step.Index] = step.To
	}
	return out
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
	t := e.troupeOf(q)
	steps := t.yieldsTo(w.Priority)
	fits := func(n int) bool {
		e.yielding(q, t, t.sizesAfter(steps[:n]), func() { found = e.consider(w, c, least) })
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
	found.victims, found.yields = t.told(q, t.sizesAfter(steps[:n]))
	return found, true
}

// told are those who have to stop, and those who get smaller, for others to have those
// sizes.
func (t *troupe) told(q *clusterQueue, sizes []int32) (victims []preempt.Victim, yields []yield) {
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

// yielding runs f as if those of the troupe had the sizes and their pods were gone.
func (e *Engine) yielding(q *clusterQueue, t *troupe, sizes []int32, f func()) {
	freed := map[quota.Index]int64{}
	for i, w := range t.members {
		switch size := t.jobs[i].Size; {
		case sizes[i] == size:
		case sizes[i] == 0:
			for _, a := range w.charged.planned {
				freed[a.Index] = quota.Add(freed[a.Index], a.Value)
			}
		default:
			for _, a := range t.each[i] {
				freed[a.Index] = quota.Add(freed[a.Index], quota.Times(a.Value, size-sizes[i]))
			}
		}
	}
	var amounts []quota.Amount
	for index, value := range freed {
		amounts = append(amounts, quota.Amount{Index: index, Value: value})
	}
	released := quota.VectorOf(amounts...)
	e.tree.Release(q.Name, quota.Planned, released)
	e.departing++
	defer func() {
		e.departing--
		e.tree.Charge(q.Name, quota.Planned, released)
	}()
	if len(e.topologies) == 0 {
		f()
		return
	}
	e.places.Try(func() {
		for i, w := range t.members {
			switch {
			case sizes[i] == t.jobs[i].Size || !w.held.onNodes() && e.crews[w.Key] == 0:
			case sizes[i] == 0:
				e.places.Hold(w.Key, e.holding(w, placed{by: w.held, leaving: true}))
			default:
				e.places.Hold(w.Key, e.holding(w, placed{by: w.held.sized(t.at[i], sizes[i], nil)}))
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
