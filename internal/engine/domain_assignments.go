package engine

import (
	"maps"
	"slices"

	"github.com/musterhq/muster/internal/engine/order"
	"github.com/musterhq/muster/internal/engine/place"
)

// An assignment made by another controller may name domains instead of nodes. The engine still counts the pods on
// nodes: existing pods where they are, the others where their domain has capacity. Nothing of this is written, and no
// workload is evicted for it: the placement is up to that controller.

// scheduleWithin schedules the search for the nodes on which the workload's pods are counted, if its assignment names
// none.
func (n *nodes) scheduleWithin(w *workload) {
	if w.held.IsWithin() {
		n.within.Insert(w.Key)
	} else {
		w.within = nil
	}
}

// countWithin finds these nodes.
func (n *nodes) countWithin() {
	for _, key := range slices.SortedFunc(maps.Keys(n.within), order.CompareKeys) {
		delete(n.within, key)
		w := n.workloads[key]
		if w == nil || !w.held.IsWithin() {
			continue
		}
		before := w.within
		w.within = n.nodesWithin(w)
		if !maps.EqualFunc(before, w.within, slices.Equal) {
			w.placed.shape = nil
			n.updatePlaces(w)
		}
	}
}

// nodesWithin returns the nodes for the pods of each pod set that has domains only. Pods for which there is no
// capacity are not counted.
func (n *nodes) nodesWithin(w *workload) map[string][]place.NodeCount {
	out := map[string][]place.NodeCount{}
	n.places.Try(func() {
		n.places.Hold(w.Key, nil)
		for i := range w.held.PodSets {
			a := &w.held.PodSets[i]
			ps := w.podSet(a.PodSet)
			if ps == nil || len(a.Places) > 0 {
				continue
			}
			ended := -a.Count
			for _, d := range a.Within {
				ended += d.Count
			}
			for _, d := range a.Within {
				there := n.places.PodNodes(w.Key, a.PodSet, d.Labels)
				missing := d.Count
				for _, at := range there {
					missing -= at.Count
				}
				gone := max(0, min(ended, missing))
				ended, missing = ended-gone, missing-gone
				nodes := append(there, n.headroomWithin(ps, a, d.Labels, missing)...)
				out[a.PodSet] = merge(out[a.PodSet], nodes)
				w.within = out // so that the next domain sees what is left
				n.places.Hold(w.Key, n.holding(w, placed{by: w.held}))
			}
		}
	})
	return out
}

// headroomWithin finds nodes with the labels for this number of pods.
func (n *nodes) headroomWithin(ps *PodSet, a *Assignment, labels map[string]string, pods int32) []place.NodeCount {
	ask, ok := n.askOf(ps, a)
	if !ok || pods <= 0 {
		return nil
	}
	ask.Count, ask.Level, ask.Mandatory, ask.Slices, ask.Group, ask.ExclusiveKey = pods, "", false, nil, "", ""
	ask.Bounds = nil // the other controller has decided on the domains
	ask.NodeSelector = writable(ask.NodeSelector)
	maps.Copy(ask.NodeSelector, labels)
	found, ok := n.finder.TryFind([]place.Ask{ask}, place.Now)
	if !ok {
		return nil
	}
	return found[0].Nodes
}

// merge adds b to a, summing the counts of the same node.
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
