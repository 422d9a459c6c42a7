package engine

import (
	"slices"
	"time"

	"github.com/musterhq/muster/internal/engine/order"
	"github.com/musterhq/muster/internal/engine/place"
)

// What kube-scheduler knows of a node and the map of places does not, such as volumes or who is beside whom, changes without a word. So
// a node that it refused to a pod is avoided for as long as the workload has places, and for some time after it lost them; then it is
// one like any other. A try may cost as many moves as there are nodes that refuse, so that the time grows with them, and with each try.

// longestAvoidance bounds for how long a workload that waits keeps away from nodes.
const longestAvoidance = time.Hour

// avoidance is the nodes that are no good for a workload, as kube-scheduler says.
type avoidance struct {
	// nodes as places name them, in order.
	nodes []string
	// why is what kube-scheduler said of the last one.
	why string
	// times counts how often they were forgotten. timed tells that it is known when they will be.
	times int
	timed bool
}

// Filled reports whether all places of a pod set on a node, as places name it, have a pod of it.
func (e *Engine) Filled(of place.PodSetKey, node string) bool { return e.places.Filled(of, node) }

func (ev PodUnschedulable) apply(e *Engine) {
	w := e.workloads[ev.Workload]
	if w == nil || w.held == nil || slices.Contains(w.avoid.nodes, ev.Node) {
		return
	}
	w.avoid.nodes = slices.Sorted(slices.Values(append(slices.Clone(w.avoid.nodes), ev.Node)))
	w.avoid.why = ev.Why
	w.placed.shape = nil
	e.settlePlaces(w)
}

// lasts is for how long the nodes are avoided by a workload that waits.
func (a *avoidance) lasts() time.Duration {
	return min(time.Duration(len(a.nodes))*retryAfter(a.times+1), longestAvoidance)
}

// beginToForget has a workload without places avoid nodes for a time only, from the end of the next Decide on.
func (e *Engine) beginToForget(w *workload) {
	if w.held == nil && len(w.avoid.nodes) > 0 && !w.avoid.timed {
		e.avoiding.Insert(w.Key)
	}
}

// timeAvoidance says until when those avoid nodes who have lost their places.
func (e *Engine) timeAvoidance(now time.Time) {
	for key := range e.avoiding {
		a := &e.workloads[key].avoid
		a.timed = true
		e.forgetting.Push(order.Rank{Since: now.Add(a.lasts()), Key: key})
	}
	clear(e.avoiding)
}

// forgetAvoidance has nodes be like any other for those who have avoided them for long enough. Who would have to for longer than
// anybody ever does began before the clock was set back.
func (e *Engine) forgetAvoidance(now time.Time) {
	for {
		next, ok := e.forgetting.Peek()
		if !ok || next.Since.After(now) && !next.Since.After(now.Add(longestAvoidance)) {
			return
		}
		e.forgetting.Pop()
		w := e.workloads[next.Key]
		w.avoid.timed = false
		if w.held != nil {
			continue // the time begins anew when it loses its places
		}
		w.avoid = avoidance{times: w.avoid.times + 1}
		if w.promise == nil {
			e.route(w)
			continue
		}
		w.promise.askedAt = -1 // others went for it: it keeps that, and may be given the nodes as well
		w.placed.shape = nil
		e.settlePlaces(w)
		w.queue.family.put()
	}
}
