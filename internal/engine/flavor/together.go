package flavor

import (
	"cmp"
	"math"
	"slices"

	"github.com/musterhq/muster/internal/engine/quota"
)

// A workload may need a number of pods, whichever of its pod sets they are of. Each of these pod sets may have no pods.

// setTogether sets together, and spreads it over the pod sets as the smallest size of the workload: the first ones in
// order have as many pods as they can, of those that some flavor accepts.
func (f *Form) setTogether(podSets []PodSet) {
	var ended, all int64
	for i, ps := range podSets {
		f.together = max(f.together, int64(ps.Together))
		f.sets[i].mayHaveNone = ps.Together > 0
		ended, all = ended+int64(ps.Reclaimable), all+int64(ps.Needed())
	}
	if f.together == 0 {
		return
	}
	f.together = min(max(1, f.together-ended), all)
	left := f.together
	for i := range f.sets {
		left -= int64(f.sets[i].fewest)
	}
	for _, refused := range []bool{false, true} {
		for i := range f.sets {
			if set := &f.sets[i]; set.mayHaveNone && set.isRefused() == refused {
				set.fewest = int32(max(0, min(left, int64(set.needed))))
				left -= int64(set.fewest)
			}
		}
	}
	for i := range f.sets { // the others make up for what these do not have
		more := max(0, min(left, int64(f.sets[i].needed-f.sets[i].fewest)))
		f.sets[i].fewest += int32(more)
		left -= more
	}
}

// isRefused reports whether no flavor of a group accepts the pods.
func (f *formSet) isRefused() bool {
	return slices.ContainsFunc(f.choices, func(g formGroup) bool {
		return !slices.ContainsFunc(g.flavors, func(known formFlavor) bool { return known.refusal == "" })
	})
}

// choicesOf returns what this count of the pod set is given flavors for: nothing if the workload starts without it.
func (f *formSet) choicesOf(count int32) []formGroup {
	if f.mayHaveNone && count == 0 {
		return nil
	}
	return f.choices
}

// Together returns with how many pods of whichever pod sets the workload can start at least, 0 if each pod set needs
// some.
func (f *Form) Together() int64 { return f.together }

// Needs returns how many pods the pod set at the index has in any size of the workload, and how many at most.
func (f *Form) Needs(set int) (least, most int32) {
	if f.sets[set].mayHaveNone {
		return 0, f.sets[set].needed
	}
	return f.sets[set].fewest, f.sets[set].needed
}

// InOrder returns the indices of the pod sets.
func (f *Form) InOrder() []int {
	order := make([]int, len(f.sets))
	for i := range order {
		order[i] = i
	}
	return order
}

// BySize returns the indices of the pod sets, those with the smallest pods first: by the largest part that one pod
// takes of what the queue may ever have of a resource.
func (f *Form) BySize(queue *quota.Node) []int {
	sizes := make([]float64, len(f.sets))
	for i := range f.sets {
		for g := range f.sets[i].choices {
			sizes[i] = max(sizes[i], f.sets[i].choices[g].sizeIn(queue))
		}
	}
	order := f.InOrder()
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(sizes[a], sizes[b]) })
	return order
}

// sizeIn returns the part that one pod takes of the flavor of which it takes least.
func (fg *formGroup) sizeIn(queue *quota.Node) float64 {
	least := math.Inf(1)
	for _, known := range fg.flavors {
		if known.refusal != "" {
			continue
		}
		var size float64
		for r, index := range known.indices {
			if fg.perPod[r] > 0 {
				size = max(size, float64(fg.perPod[r])/float64(max(1, queue.Capacity(index))))
			}
		}
		least = min(least, size)
	}
	return least
}

// PodsIn returns the sum of the counts.
func PodsIn(counts []int32) (sum int64) {
	for _, n := range counts {
		sum += int64(n)
	}
	return sum
}
