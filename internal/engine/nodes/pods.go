package nodes

import (
	"maps"
	"slices"
	"strings"

	"github.com/musterhq/muster/internal/engine/flavor"
	"github.com/musterhq/muster/internal/engine/order"
	"github.com/musterhq/muster/internal/engine/place"
	"github.com/musterhq/muster/internal/engine/state"
)

// PodLeft updates the state after a pod stopped using capacity.
func (n *Nodes) PodLeft(pod order.Key) {
	n.PlacesVersion++
	of := n.WorkloadOfPod[pod]
	n.UncountPod(pod)
	n.RecountWithin(of)
	n.UpdateShrinking(of)
}

// RecountWithin schedules a recount of the nodes used by a workload whose admission names domains only.
func (n *Nodes) RecountWithin(of order.Key) {
	if w := n.workloads[of]; w != nil && w.Held.IsWithin() {
		n.Within.Insert(of)
	}
}

// CountPod and UncountPod keep the number of existing pods of each workload.
func (n *Nodes) CountPod(pod, of order.Key) {
	if of == (order.Key{}) {
		return
	}
	n.WorkloadOfPod[pod] = of
	if n.PodCounts[of]++; n.PodCounts[of] == 1 {
		n.podCountChanged(of)
	}
}

// UncountPod notes that a pod is gone.
func (n *Nodes) UncountPod(pod order.Key) {
	of, known := n.WorkloadOfPod[pod]
	if !known {
		return
	}
	delete(n.WorkloadOfPod, pod)
	if n.PodCounts[of]--; n.PodCounts[of] == 0 {
		delete(n.PodCounts, of)
		n.podCountChanged(of)
	}
}

// podCountChanged updates places when the first pod of a workload appears, or the last one is gone.
func (n *Nodes) podCountChanged(of order.Key) {
	if w := n.workloads[of]; w != nil {
		n.UpdatePlaces(w)
	} else if n.Lingering.Has(of) && n.PodCounts[of] == 0 {
		n.Lingering.Delete(of)
		n.Departing--
		n.Places.Hold(of, nil)
	}
}

// UpdateShrinking updates places after a pod of the workload was bound or is gone.
func (n *Nodes) UpdateShrinking(of order.Key) {
	if w := n.workloads[of]; w != nil && w.ElasticSet() >= 0 && (w.Placed.Releases || n.hasPodsBeyondPlaces(w)) {
		n.Refresh(w)
	}
}

// An assignment made by another controller may name domains instead of nodes. The engine still counts the pods on
// nodes: existing pods where they are, the others where their domain has capacity. Nothing of this is written, and no
// workload is evicted for it: the placement is up to that controller.

// CountWithin finds these nodes.
func (n *Nodes) CountWithin() {
	for _, key := range order.SortedKeys(n.Within) {
		delete(n.Within, key)
		w := n.workloads[key]
		if w == nil || !w.Held.IsWithin() {
			continue
		}
		before := w.Within
		w.Within = n.nodesWithin(w)
		if !maps.EqualFunc(before, w.Within, slices.Equal) {
			n.Refresh(w)
		}
	}
}

// nodesWithin returns the nodes for the pods of each pod set that has domains only. Pods for which there is no
// capacity are not counted.
func (n *Nodes) nodesWithin(w *state.Workload) map[string][]place.NodeCount {
	out := map[string][]place.NodeCount{}
	n.Places.Try(func() {
		n.Places.Hold(w.Key, nil)
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
				there := n.Places.PodNodes(w.Key, a.PodSet, d.Labels)
				missing := d.Count - CountOf(there)
				gone := max(0, min(ended, missing))
				ended, missing = ended-gone, missing-gone
				nodes := append(there, n.headroomWithin(ps, a, d.Labels, missing)...)
				out[a.PodSet] = Merge(out[a.PodSet], nodes)
				w.Within = out // so that the next domain sees what is left
				n.HoldAs(w, state.Placed{By: w.Held})
			}
		}
	})
	return out
}

// headroomWithin finds nodes with the labels for this number of pods.
func (n *Nodes) headroomWithin(ps *flavor.PodSet, a *flavor.Assignment, labels map[string]string,
	pods int32) []place.NodeCount {
	ask, ok := n.AskOf(ps, a, &state.Avoidance{})
	if !ok || pods <= 0 {
		return nil
	}
	ask.Count, ask.Level, ask.Mandatory, ask.Slices, ask.Group, ask.ExclusiveKey = pods, "", false, nil, "", ""
	ask.Bounds = nil // the other controller has decided on the domains
	ask.NodeSelector = writable(ask.NodeSelector)
	maps.Copy(ask.NodeSelector, labels)
	found, ok := n.Finder.TryFind([]place.Ask{ask}, place.Now)
	if !ok {
		return nil
	}
	return found[0].Nodes
}

// Merge adds b to a, summing the counts of the same node.
func Merge(a, b []place.NodeCount) []place.NodeCount {
	for _, more := range b {
		if n := slices.IndexFunc(a, func(at place.NodeCount) bool { return at.Node == more.Node }); n >= 0 {
			a[n].Count += more.Count
		} else {
			a = append(a, more)
		}
	}
	return a
}

// MostOn returns how many pods of the workload the node may get after kube-scheduler refused one more, 0 if the node is
// to be avoided. Where pods of the workload run, the node is good for these. Where kube-scheduler minds other pods, and
// the node was to have several of the workload, these may be the pods that it minds: the next trial is with half of
// them.
func (n *Nodes) MostOn(w *state.Workload, node, why string) int32 {
	if there := n.Places.PodsOn(w.Key, node); there > 0 {
		return there
	}
	if !mindsOtherPods(why) {
		return 0
	}
	given := int32(0)
	for _, a := range w.Held.Places() {
		for _, at := range a.Nodes {
			if at.Node == node {
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
