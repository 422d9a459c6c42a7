package find

import (
	"slices"

	"github.com/musterhq/muster/internal/engine/order"
	"github.com/musterhq/muster/internal/engine/place"
)

// RepairResult is the result of Repair.
type RepairResult struct {
	// Assignments holds all places of the workload, kept ones included, in the order of its pod sets.
	Assignments []place.Assignment
	// Moved is the number of pods that get another place, and Gained has these places.
	Moved  int32
	Gained []place.Assignment
}

// Repair finds other places for the pods of the workload whose places are invalid, and changes nothing.
// The new places are near the rest: in the domain of a required level, and in that of the slice that a pod
// belongs to. Ranks that are not moved keep their nodes. A workload none of whose pods is present may get
// other places for all. It returns false if there are none.
func (f *Finder) Repair(workload order.Key) (RepairResult, bool) {
	return f.repairOn(workload, place.Now)
}

// RepairOnceGone finds other places as Repair does, of the capacity once all that is leaving is gone. What is nominated
// for other workloads stays theirs.
func (f *Finder) RepairOnceGone(workload order.Key) (RepairResult, bool) {
	return f.repairOn(workload, place.Planned)
}

func (f *Finder) repairOn(workload order.Key, on place.Ledger) (RepairResult, bool) {
	h := f.places.Holding(workload)
	if h == nil {
		return RepairResult{}, true
	}
	if isHuge(h) {
		return RepairResult{}, !f.hasInvalid(workload)
	}
	r := f.repairOf(workload, h)
	if r.moved == 0 {
		return r.gather(), true
	}
	f.boundLayouts()
	if h.Nominated {
		on = place.Planned
	}
	ok, scattered := false, f.scattered(workload, h)
	f.places.Try(func() {
		f.places.Hold(workload, r.kept())
		ok = !scattered && r.fillGaps(on)
		if !ok && !f.places.HasLivePod(workload) {
			f.places.Hold(workload, nil)
			ok = r.placeAll(on)
		}
	})
	if !ok && scattered { // at least replace the invalid places; the others stay as scattered as they are
		f.places.Try(func() {
			f.places.Hold(workload, r.kept())
			ok = r.fillGaps(on)
		})
	}
	if !ok {
		return RepairResult{}, false
	}
	return r.result(), true
}

// gather finds new places for a workload that is scattered. If there are none it keeps the ones that it
// has: its pods can use them, and they were near each other when it was admitted.
func (r *repair) gather() RepairResult {
	if !r.finder.scattered(r.workload, r.h) {
		return r.result()
	}
	r.finder.boundLayouts()
	found := false
	r.finder.places.Try(func() {
		r.finder.places.Hold(r.workload, nil)
		found = r.placeAll(place.Now)
	})
	if !found {
		return RepairResult{}
	}
	return r.result()
}

// maxRepairPods limits the number of pods for which ranks are listed one by one. Nothing that places pods
// writes more.
const maxRepairPods = 1 << 20

// isHuge reports whether a workload has too many places to repair them.
func isHuge(h *place.Holding) bool {
	sum := int64(0)
	for i := range h.PodSets {
		for _, at := range h.PodSets[i].Nodes {
			sum += int64(max(0, at.Count))
		}
	}
	return sum > maxRepairPods
}

// repair holds the places of one workload by rank; ranks that need a place are empty.
type repair struct {
	finder   *Finder
	workload order.Key
	h        *place.Holding
	ranks    [][]string
	// before holds the ranks before the repair, moved the number of ranks that were emptied.
	before [][]string
	moved  int32
}

// repairOf lists the ranks of the holder and empties those with invalid places.
func (f *Finder) repairOf(workload order.Key, h *place.Holding) *repair {
	r := &repair{finder: f, workload: workload, h: h}
	for i := range h.PodSets {
		ranks := place.RanksOf(h.PodSets[i].Nodes)
		r.before = append(r.before, slices.Clone(ranks))
		if !h.Leaving {
			r.moved += f.places.Vacate(workload, i, ranks)
		}
		r.ranks = append(r.ranks, ranks)
	}
	return r
}

// kept returns the holding without the empty ranks.
func (r *repair) kept() *place.Holding {
	out := *r.h
	out.PodSets = slices.Clone(out.PodSets)
	for i := range out.PodSets {
		out.PodSets[i].Nodes = place.Runs(r.ranks[i])
	}
	return &out
}

// result compares the ranks with those before the repair.
func (r *repair) result() RepairResult {
	var out RepairResult
	for i, ranks := range r.ranks {
		set := r.h.PodSets[i].Ask.PodSet
		out.Assignments = append(out.Assignments, place.Assignment{PodSet: set, Nodes: place.Runs(ranks)})
		gained := slices.Clone(ranks)
		for rank, name := range ranks {
			if name == r.before[i][rank] {
				gained[rank] = ""
			} else {
				out.Moved++
			}
		}
		if nodes := place.Runs(gained); len(nodes) > 0 {
			out.Gained = append(out.Gained, place.Assignment{PodSet: set, Nodes: nodes})
		}
	}
	return out
}

// placeAll finds places for the whole workload from scratch.
func (r *repair) placeAll(on place.Ledger) bool {
	asks := make([]place.Ask, len(r.ranks))
	for i := range asks {
		asks[i] = r.h.PodSets[i].Ask
		asks[i].Count = int32(len(r.ranks[i]))
	}
	placed, ok := r.finder.TryFind(asks, on)
	if !ok {
		return false
	}
	for i := range placed {
		r.fill(i, placed[i].Nodes, func(int) bool { return true })
	}
	return true
}

// fill assigns nodes, in order, to the ranks of a pod set that want one.
func (r *repair) fill(podSet int, nodes []place.NodeCount, wants func(rank int) bool) {
	for rank := range r.ranks[podSet] {
		if !wants(rank) {
			continue
		}
		for len(nodes) > 0 && nodes[0].Count == 0 {
			nodes = nodes[1:]
		}
		if len(nodes) == 0 {
			return
		}
		r.ranks[podSet][rank] = nodes[0].Node
		nodes[0].Count--
	}
}
