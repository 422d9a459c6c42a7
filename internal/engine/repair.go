package engine

import (
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"

	"github.com/musterhq/muster/internal/engine/nodes"
	"github.com/musterhq/muster/internal/engine/place"
	"github.com/musterhq/muster/internal/engine/place/find"
	"github.com/musterhq/muster/internal/engine/preempt"
	"github.com/musterhq/muster/internal/engine/state"
)

// repair replaces places that are no longer valid before any other workload is given capacity, the most urgent workload
// first. Replacements must be close enough to the rest of the gang. If there are none, an elastic workload continues
// without those pods if enough are left. Any other workload waits for places that evicted workloads are about to leave,
// and is evicted if there are no such places either.
func (r *repairPass) repair() {
	r.reviewReplacements()
	for _, key := range r.nodes.Finder.TakeInvalid() {
		if w := r.engine.workloads[key]; w != nil {
			r.nodes.ToRepair.Push(w.Rank())
		}
	}
	for r.nodes.ToRepair.Len() > 0 && r.pass.budget > 0 {
		if w := r.engine.workloads[r.nodes.ToRepair.Pop().Key]; w != nil {
			r.repairWorkload(w)
		}
	}
}

// repairUrgency makes the repair of a gang be written before all new work.
const repairUrgency = math.MaxInt32

// repairWorkload repairs the places of one workload.
func (r *repairPass) repairWorkload(w *state.Workload) {
	switch {
	case w.Leaving():
		return
	case w.Nomination != nil:
		w.ClusterQueue.Family.Enqueue() // the nomination is checked again
		return
	case w.Held == nil:
		return
	case w.Held.IsWithin():
		r.nodes.Within.Insert(w.Key)
		r.nodes.CountWithin()
		return
	case w.Assumed != state.Nothing, w.IsRefused(state.ReductionChange), w.IsRefused(state.PlacesChange):
		r.nodes.DeferredRepairs.Insert(w.Key)
		return
	}
	r.pass.budget--
	repaired, ok := r.repairPlaces(w)
	switch {
	case ok && repaired.Moved > 0:
		r.replace(w, repaired.Assignments)
	case ok:
		r.nodes.DropReplacement(w)
	case r.shrinkToValid(w), r.awaitReplacement(w):
	default:
		r.evictForNodes(w)
	}
}

// repairPlaces finds other places that are free now. What is nominated for the workload itself is free for it.
func (r *repairPass) repairPlaces(w *state.Workload) (out find.RepairResult, ok bool) {
	r.nodes.Places.Try(func() {
		r.nodes.Places.Hold(nodes.ReplacementKey(w.Key), nil)
		out, ok = r.nodes.Finder.Repair(w.Key)
	})
	return out, ok
}

// replace gives the workload other places.
func (r *repairPass) replace(w *state.Workload, found []place.Assignment) {
	given := w.Held.At(found)
	w.Before, w.Held = w.Held, given
	w.Assumed, w.DecidedOn = state.Replaces, w.Version
	r.engine.updateCharges(w)
	r.pass.addDecision(w, repairUrgency, Decision{Replace: given})
}

// shrinkToValid makes an elastic workload continue without those of its pods whose places are invalid and cannot be
// replaced. It reports whether enough pods are left for that.
func (r *repairPass) shrinkToValid(w *state.Workload) bool {
	at := w.ResizableSet()
	if at < 0 || !w.Admitted {
		return false
	}
	set := &w.Held.PodSets[at]
	var lost []place.NodeCount
	for _, invalid := range r.nodes.Places.InvalidPlaces(w.Key) {
		if invalid.PodSet == set.PodSet {
			lost = invalid.Nodes
		}
	}
	most := min(nodes.CountOf(lost), set.Count-w.LeastOf(at))
	fewer := int32(sort.Search(int(max(0, most)),
		func(n int) bool { return r.repairedWithout(w, at, lost, int32(n)+1) != nil })) + 1
	if fewer > most {
		return false
	}
	given, why := r.repairedWithout(w, at, lost, fewer), r.lostNodesMessage(w)
	r.pass.resize(w, at, given, Key{})
	r.pass.decisions[len(r.pass.decisions)-1].Resize.Detail = why
	return true
}

// repairedWithout returns the admission with so many of the lost pods fewer and the others at valid places, nil if that
// is not possible.
func (r *repairPass) repairedWithout(w *state.Workload, at int, lost []place.NodeCount, fewer int32) *Admission {
	given := w.Held.Sized(at, w.Held.PodSets[at].Count-fewer, nil)
	given.PodSets[at].Places = place.Shrink(w.Held.PodSets[at].Places, lost, fewer)
	var repaired find.RepairResult
	ok := false
	r.nodes.Places.Try(func() {
		r.nodes.HoldAs(w, state.Placed{By: given})
		repaired, ok = r.nodes.Finder.Repair(w.Key)
	})
	if !ok {
		return nil
	}
	return given.At(repaired.Assignments)
}

// evictForNodes evicts a workload because its nodes failed.
func (r *repairPass) evictForNodes(w *state.Workload) {
	detail := r.lostNodesMessage(w) // describes its present places
	w.Assumed, w.DecidedOn, w.NodesFailed = state.Evicts, w.Version, true
	r.engine.updateCharges(w)
	r.pass.addDecision(w, repairUrgency, Decision{Evict: &Eviction{
		Cause: preempt.NodeFailures, Path: w.ClusterQueue.Node.Path(), Detail: detail}})
}

// maxNodesNamed is how many nodes a message names.
const maxNodesNamed = 3

// lostNodesMessage says which nodes the gang can no longer use.
func (r *repairPass) lostNodesMessage(w *state.Workload) string {
	rest := r.noPlacesMessage(w)
	lost := r.nodes.Places.InvalidNodes(w.Key)
	if len(lost) == 0 {
		return "its places are no longer valid, " + rest
	}
	where := describeNodes(lost)
	refused := func(node string) bool { return slices.Contains(w.Avoid.Nodes, node) }
	if w.Avoid.Why != "" && slices.ContainsFunc(lost, refused) {
		return fmt.Sprintf("kube-scheduler does not bind its pods to %s (%s), %s", where, w.Avoid.Why, rest)
	}
	return fmt.Sprintf("its places on %s are no longer valid, %s", where, rest)
}

// noPlacesMessage says why there are no other places.
func (r *repairPass) noPlacesMessage(w *state.Workload) string {
	for i := range w.Held.PodSets {
		a := &w.Held.PodSets[i]
		if by := r.nodes.PlacedBy(a); len(a.Places) > 0 && !r.nodes.Places.IsPlaced(by) {
			return fmt.Sprintf("and flavor %s no longer has a topology for choosing others", by)
		}
	}
	return "and there is no other capacity close enough for its pods"
}

// describeNodes names the nodes, or the first of them if there are many.
func describeNodes(nodes []string) string {
	switch n := len(nodes); {
	case n > maxNodesNamed:
		return fmt.Sprintf("nodes %s and %d more", strings.Join(nodes[:maxNodesNamed], ", "), n-maxNodesNamed)
	case n > 1:
		return "nodes " + strings.Join(nodes, ", ")
	}
	return "node " + nodes[0]
}
