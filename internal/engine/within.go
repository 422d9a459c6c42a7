package engine

import (
	"maps"
	"slices"

	"github.com/musterhq/muster/internal/engine/order"
	"github.com/musterhq/muster/internal/engine/place"
)

// An assignment that somebody else made may name domains and no nodes. For the engine's own
// account its pods are on nodes all the same: those that are there on theirs, the others
// where there is room in their domain. Nothing of that is written, and nobody is told to go
// because of it: where its pods go is that other's to say.

// followWithin has the nodes looked for in the next pass on which the pods of the workload are
// counted, if its assignment names none.
func (e *Engine) followWithin(w *workload) {
	if w.held.isWithin() {
		e.within.Insert(w.Key)
	} else {
		w.within = nil
	}
}

// isWithin reports whether pods have domains and no nodes.
func (a *Admission) isWithin() bool {
	return a != nil && slices.ContainsFunc(a.PodSets, func(a Assignment) bool { return len(a.Within) > 0 && len(a.Places) == 0 })
}

// settleWithin finds those nodes.
func (e *Engine) settleWithin() {
	for _, key := range slices.SortedFunc(maps.Keys(e.within), order.CompareKeys) {
		delete(e.within, key)
		w := e.workloads[key]
		if w == nil || !w.held.isWithin() {
			continue
		}
		before := w.within
		w.within = e.nodesWithin(w)
		if !maps.EqualFunc(before, w.within, slices.Equal) {
			w.placed.shape = nil
			e.settlePlaces(w)
		}
	}
}

// nodesWithin are the nodes for the pods of each pod set that has domains only. Pods for
// which there is no room count nothing.
func (e *Engine) nodesWithin(w *workload) map[string][]place.NodeCount {
	out := map[string][]place.NodeCount{}
	e.places.Try(func() {
		e.places.Hold(w.Key, nil)
		for i := range w.held.PodSets {
			a := &w.held.PodSets[i]
			n := slices.IndexFunc(w.PodSets, func(ps PodSet) bool { return ps.Name == a.PodSet })
			if n < 0 || len(a.Places) > 0 {
				continue
			}
			ended := -a.Count
			for _, d := range a.Within {
				ended += d.Count
			}
			for _, d := range a.Within {
				there := e.places.PodNodes(w.Key, a.PodSet, d.Labels)
				missing := d.Count
				for _, at := range there {
					missing -= at.Count
				}
				gone := max(0, min(ended, missing))
				ended, missing = ended-gone, missing-gone
				nodes := append(there, e.roomWithin(&w.PodSets[n], a, d.Labels, missing)...)
				out[a.PodSet] = merge(out[a.PodSet], nodes)
				w.within = out // so that the next finds what is left
				e.places.Hold(w.Key, e.holding(w, placed{by: w.held}))
			}
		}
	})
	return out
}

// roomWithin finds nodes with the labels for so many pods.
func (e *Engine) roomWithin(ps *PodSet, a *Assignment, labels map[string]string, pods int32) []place.NodeCount {
	ask, ok := e.askOf(ps, a)
	if !ok || pods <= 0 {
		return nil
	}
	ask.Count, ask.Level, ask.Mandatory, ask.Slices, ask.Group, ask.ExclusiveKey = pods, "", false, nil, "", ""
	ask.NodeSelector = maps.Clone(ask.NodeSelector)
	if ask.NodeSelector == nil {
		ask.NodeSelector = map[string]string{}
	}
	maps.Copy(ask.NodeSelector, labels)
	found, fault := e.places.Find([]place.Ask{ask}, place.Now)
	if fault != nil {
		return nil
	}
	return found[0].Nodes
}

// merge adds up what is on the same nodes.
func merge(a, b []place.NodeCount) []place.NodeCount {
	for _, more := range b {
		if n := slices.IndexFunc(a, func(at place.NodeCount) bool { return at.Node == more.Node }); n >= 0 {
			a[n].Count += more.Count
		} else {
			a = append(a, more)
		}
	}
	return a
}
