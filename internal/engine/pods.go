package engine

import (
	"maps"
	"slices"
	"strings"

	"github.com/musterhq/muster/internal/engine/order"
	"github.com/musterhq/muster/internal/engine/place"
	"github.com/musterhq/muster/internal/engine/state"
)

// podLeft updates the state after a pod stopped using capacity.
func (n *nodes) podLeft(pod Key) {
	n.placesVersion++
	of := n.workloadOfPod[pod]
	n.uncountPod(pod)
	n.recountWithin(of)
	n.updateShrinking(of)
}

// recountWithin schedules a recount of the nodes used by a workload whose admission names domains only.
func (n *nodes) recountWithin(of Key) {
	if w := n.workloads[of]; w != nil && w.Held.IsWithin() {
		n.within.Insert(of)
	}
}

// countPod and uncountPod keep the number of existing pods of each workload.
func (n *nodes) countPod(pod, of Key) {
	if of == (Key{}) {
		return
	}
	n.workloadOfPod[pod] = of
	if n.podCounts[of]++; n.podCounts[of] == 1 {
		n.podCountChanged(of)
	}
}

func (n *nodes) uncountPod(pod Key) {
	of, known := n.workloadOfPod[pod]
	if !known {
		return
	}
	delete(n.workloadOfPod, pod)
	if n.podCounts[of]--; n.podCounts[of] == 0 {
		delete(n.podCounts, of)
		n.podCountChanged(of)
	}
}

// podCountChanged updates places when the first pod of a workload appears, or the last one is gone.
func (n *nodes) podCountChanged(of Key) {
	if w := n.workloads[of]; w != nil {
		n.updatePlaces(w)
	} else if n.lingering.Has(of) && n.podCounts[of] == 0 {
		n.lingering.Delete(of)
		n.departing--
		n.places.Hold(of, nil)
	}
}

// updateShrinking updates places after a pod of the workload was bound or is gone.
func (n *nodes) updateShrinking(of Key) {
	if w := n.workloads[of]; w != nil && w.ElasticSet() >= 0 && (w.Placed.Releases || n.hasPodsBeyondPlaces(w)) {
		w.Placed.Shape = nil
		n.updatePlaces(w)
	}
}

// An assignment made by another controller may name domains instead of nodes. The engine still counts the pods on
// nodes: existing pods where they are, the others where their domain has capacity. Nothing of this is written, and no
// workload is evicted for it: the placement is up to that controller.

// countWithin finds these nodes.
func (n *nodes) countWithin() {
	for _, key := range slices.SortedFunc(maps.Keys(n.within), order.CompareKeys) {
		delete(n.within, key)
		w := n.workloads[key]
		if w == nil || !w.Held.IsWithin() {
			continue
		}
		before := w.Within
		w.Within = n.nodesWithin(w)
		if !maps.EqualFunc(before, w.Within, slices.Equal) {
			w.Placed.Shape = nil
			n.updatePlaces(w)
		}
	}
}

// nodesWithin returns the nodes for the pods of each pod set that has domains only. Pods for which there is no
// capacity are not counted.
func (n *nodes) nodesWithin(w *state.Workload) map[string][]place.NodeCount {
	out := map[string][]place.NodeCount{}
	n.places.Try(func() {
		n.places.Hold(w.Key, nil)
		for i := range w.Held.PodSets {
			a := &w.Held.PodSets[i]
			ps := w.PodSet(a.PodSet)
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
				w.Within = out // so that the next domain sees what is left
				n.places.Hold(w.Key, n.holding(w, state.Placed{By: w.Held}))
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

// mostOn returns how many pods of the workload the node may get after kube-scheduler refused one more, 0 if the node is to
// be avoided. Where pods of the workload run, the node is good for these. Where kube-scheduler minds other pods, and the
// node was to have several of the workload, these may be the pods that it minds: the next trial is with half of them.
func (n *nodes) mostOn(w *state.Workload, ev PodUnschedulable) int32 {
	if there := n.places.PodsOn(w.Key, ev.Node); there > 0 {
		return there
	}
	if !mindsOtherPods(ev.Why) {
		return 0
	}
	given := int32(0)
	for _, a := range w.Held.Places() {
		for _, at := range a.Nodes {
			if at.Node == ev.Node {
				given += at.Count
			}
		}
	}
	return given / 2
}

// mindsOtherPods reports whether kube-scheduler refuses nodes for the sake of other pods, by labels.
func mindsOtherPods(why string) bool {
	return slices.ContainsFunc([]string{"anti-affinity rules", "pod affinity rules", "topology spread constraints"},
		func(said string) bool { return strings.Contains(why, said) })
}
