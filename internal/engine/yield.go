package engine

import (
	"slices"

	"github.com/musterhq/muster/internal/engine/place"
	"github.com/musterhq/muster/internal/engine/quota"
)

// yield is a smaller size for a running workload.
type yield struct {
	w     *workload
	at    int
	given *Admission
}

// byYielding looks for the smallest set of workloads of the queue that have to shrink or stop so that the head of the
// class can have its minimum. If the minimum fits without that, ok is false.
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
	t := e.resizableOf(q)
	y := t.yieldsTo(w.Priority)
	fits := func(n int) bool {
		e.yielding(q, t, y.Sizes(n), func() { found = e.consider(w, c, least) })
		return found.verdict == promisable || found.verdict == admissible
	}
	if y.Len() == 0 || !fits(y.Len()) {
		return outcome{}, false
	}
	n := smallest(y.Len(), fits)
	if !fits(n) {
		return outcome{}, false // more free capacity need not mean more places
	}
	found.verdict = preempting
	found.victims, found.yields = t.changes(q, y.Sizes(n))
	return found, true
}

// yielding runs f as if the resizable workloads had these sizes and the other pods were gone.
func (e *Engine) yielding(q *clusterQueue, t *resizable, sizes []int32, f func()) {
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
	released := vectorOfSums(freed)
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
			case sizes[i] == t.jobs[i].Size || !w.held.onNodes() && e.podCounts[w.Key] == 0:
			case sizes[i] == 0:
				e.places.Hold(w.Key, e.holding(w, placed{by: w.held, leaving: true}))
			default:
				e.places.Hold(w.Key, e.holding(w, placed{by: w.held.sized(t.at[i], sizes[i], nil)}))
			}
		}
		f()
	})
}

// moreOnNodes finds nodes for more pods of a held pod set. If the pod set must be in one domain, they are in that
// domain.
func (e *Engine) moreOnNodes(w *workload, at int, pods int32, on place.Ledger) ([]place.NodeCount, bool) {
	a := &w.held.PodSets[at]
	ask, ok := e.askOf(w.podSet(a.PodSet), a)
	if !ok || len(a.Places) == 0 {
		return nil, true // a matter of quota alone
	}
	ask.Count, ask.Avoid = pods, w.avoid.nodes
	if ask.Mandatory && !e.staysIn(&ask, a.Places[0].Node) {
		return nil, false
	}
	found, ok := e.places.TryFind([]place.Ask{ask}, on)
	if !ok {
		return nil, false
	}
	return found[0].Nodes, true
}

// staysIn restricts an ask to the domain of its level that contains the node, which the levels above distinguish from
// others of the same name. It reports whether the node has these labels.
func (e *Engine) staysIn(ask *place.Ask, node string) bool {
	levels := e.topologies[e.flavors[ask.Flavor].Topology]
	ask.NodeSelector = writable(ask.NodeSelector)
	if at := slices.Index(levels, ask.Level); at >= 0 {
		levels = levels[:at]
	}
	for _, level := range append(slices.Clone(levels), ask.Level) {
		domain, known := e.places.LabelOf(node, level)
		if !known {
			return false
		}
		ask.NodeSelector[level] = domain
	}
	return true
}
