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

// byYielding looks for the workloads of the queue that have to shrink or stop so that the head of the class can have its
// minimum: as few as possible, in the order of elastic.Yielding. If the minimum fits without that, ok is false.
func (ev *evaluator) byYielding(w *workload, c *class) (found outcome, ok bool) {
	q := c.queue
	if len(q.elastic) == 0 {
		return outcome{}, false
	}
	form := ev.formOf(c)
	least := form.ReducedBy(form.Reducible())
	if form.Reducible() > 0 {
		if alone := ev.consider(w, c, least); alone.verdict == admissible || alone.verdict == nominable {
			return outcome{}, false
		}
	}
	t := ev.growths.resizableOf(q)
	y := t.yieldsTo(w.Priority)
	var sizes []int32
	ev.growths.tryYields(q, t, func(trial *yieldTrial) {
		fits := func(sizes []int32) bool {
			trial.release(sizes, func() {
				if found = (outcome{}); form.MayFit(least, q.node) {
					trial.takeOffNodes()
					found = ev.consider(w, c, least)
				}
			})
			return found.verdict == nominable || found.verdict == admissible
		}
		if y.Len() > 0 && fits(y.Sizes(y.Len())) {
			sizes = y.Sizes(smallest(y.Len(), func(n int) bool { return fits(y.Sizes(n)) }))
			if ok = fits(sizes); ok { // more free capacity need not mean more places
				sizes = t.spare(sizes, fits)
				ok = fits(sizes)
			}
		}
		ev.tried += trial.tried
	})
	if !ok {
		return outcome{}, false
	}
	found.verdict = preempting
	found.victims, found.yields = t.changes(q, sizes)
	return found, true
}

// yieldTrial is a search for sizes of the resizable workloads of a queue. In thousands of them, most have the same size
// in one step of the search as in the last, and stay as they are on the nodes.
type yieldTrial struct {
	growths *growths
	q       *clusterQueue
	t       *resizable
	// sizes are the sizes that are tried, OnNodes those that the nodes have.
	sizes, onNodes []int32
	// tried counts the changes on nodes.
	tried int
}

// tryYields runs a search, and then undoes what it did.
func (g *growths) tryYields(q *clusterQueue, t *resizable, search func(*yieldTrial)) {
	trial := &yieldTrial{growths: g, q: q, t: t, onNodes: t.sizes()}
	if len(g.nodes.topologies) == 0 {
		search(trial)
		return
	}
	g.nodes.places.Try(func() { search(trial) })
}

// release runs f as if the workloads had these sizes, and the quota of the other pods were free.
func (y *yieldTrial) release(sizes []int32, f func()) {
	y.sizes = sizes
	freed := map[quota.Index]int64{}
	for i, w := range y.t.members {
		switch size := y.t.jobs[i].Size; {
		case sizes[i] == size:
		case sizes[i] == 0:
			for _, a := range w.charged.planned {
				freed[a.Index] = quota.Add(freed[a.Index], a.Value)
			}
		default:
			for _, a := range y.t.each[i] {
				freed[a.Index] = quota.Add(freed[a.Index], quota.Times(a.Value, size-sizes[i]))
			}
		}
	}
	released := vectorOfSums(freed)
	y.growths.tree.Release(y.q.Name, quota.Planned, released)
	y.growths.nodes.departing++
	defer func() {
		y.growths.nodes.departing--
		y.growths.tree.Charge(y.q.Name, quota.Planned, released)
	}()
	f()
}

// takeOffNodes makes the nodes have the sizes that are tried.
func (y *yieldTrial) takeOffNodes() {
	if len(y.growths.nodes.topologies) == 0 {
		return
	}
	for i, w := range y.t.members {
		to := y.sizes[i]
		if to == y.onNodes[i] || !w.held.OnNodes() && y.growths.nodes.podCounts[w.Key] == 0 {
			continue
		}
		y.onNodes[i] = to
		y.tried++
		switch to {
		case y.t.jobs[i].Size:
			y.growths.nodes.places.Hold(w.Key, y.growths.nodes.holding(w, w.placed))
		case 0:
			y.growths.nodes.places.Hold(w.Key, y.growths.nodes.holding(w, placed{by: w.held, leaving: true}))
		default:
			y.growths.nodes.places.Hold(w.Key, y.growths.nodes.holding(w, placed{by: w.held.Sized(y.t.at[i], to, nil)}))
		}
	}
}

// moreOnNodes finds nodes for more pods of a held pod set. If the pod set must be in one domain, they are in that
// domain.
func (n *nodes) moreOnNodes(w *workload, at int, pods int32, on place.Ledger) ([]place.NodeCount, bool) {
	a := &w.held.PodSets[at]
	ask, ok := n.askOf(w.podSet(a.PodSet), a)
	if !ok || len(a.Places) == 0 {
		return nil, true // a matter of quota alone
	}
	ask.Count, ask.Avoid, ask.Limits = pods, w.avoid.nodes, w.avoid.limits
	if len(ask.Bounds)+len(ask.Limits) > 0 {
		ask.Kept = w.held.Places()
	}
	if ask.Mandatory && !n.staysIn(&ask, a.Places[0].Node) {
		return nil, false
	}
	found, ok := n.finder.TryFind([]place.Ask{ask}, on)
	if !ok {
		return nil, false
	}
	return found[0].Nodes, true
}

// staysIn restricts an ask to the domain of its level that contains the node, which the levels above distinguish from
// others of the same name. It reports whether the node has these labels.
func (n *nodes) staysIn(ask *place.Ask, node string) bool {
	levels := n.topologies[n.flavors[ask.Flavor].Topology]
	ask.NodeSelector = writable(ask.NodeSelector)
	if at := slices.Index(levels, ask.Level); at >= 0 {
		levels = levels[:at]
	}
	for _, level := range append(slices.Clone(levels), ask.Level) {
		domain, known := n.places.LabelOf(node, level)
		if !known {
			return false
		}
		ask.NodeSelector[level] = domain
	}
	return true
}
