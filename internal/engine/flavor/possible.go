package flavor

import (
	"iter"
	"maps"
	"slices"

	"github.com/musterhq/muster/internal/engine/quota"
)

// Possible yields the ways in which so many pods could be given flavors if nobody used
// anything of the queue's, each pod set for itself, in the order of flavors. Usage is not
// filled in. What is yielded is changed by the next step.
func (f *Form) Possible(counts []int32, queue *quota.Node) iter.Seq[[]Assignment] {
	return func(yield func([]Assignment) bool) {
		given := make([]Assignment, len(f.sets))
		for i, s := range f.sets {
			given[i] = Assignment{PodSet: s.name, Count: counts[i]}
		}
		if f.fault.Code == "" {
			f.possible(counts, queue, given, 0, 0, yield)
		}
	}
}

// possible goes on from a group of a pod set. It reports whether more is asked for.
func (f *Form) possible(counts []int32, queue *quota.Node, given []Assignment, set, group int, yield func([]Assignment) bool) bool {
	switch {
	case set == len(f.sets):
		return yield(given)
	case group == len(f.sets[set].choices):
		return f.possible(counts, queue, given, set+1, 0, yield)
	}
	g := &f.sets[set].choices[group]
	before := given[set].Flavors
	defer func() { given[set].Flavors = before }()
	for i := range g.flavors {
		if !g.could(g.flavors[i], counts[set], queue) {
			continue
		}
		flavors := maps.Clone(before)
		if flavors == nil {
			flavors = map[string]string{}
		}
		for _, resource := range g.resources {
			flavors[resource] = g.flavors[i].name
		}
		given[set].Flavors = flavors
		if !f.possible(counts, queue, given, set, group+1, yield) {
			return false
		}
	}
	return true
}

// could reports whether the flavor could take so many pods if nobody used anything.
func (g *formGroup) could(known formFlavor, count int32, queue *quota.Node) bool {
	if known.refusal != "" {
		return false
	}
	for r, index := range known.indices {
		if quota.Times(g.perPod[r], count) > queue.Capacity(index) {
			return false
		}
	}
	return true
}

// couldAny reports whether any of the flavors could.
func (g *formGroup) couldAny(count int32, queue *quota.Node) bool {
	return slices.ContainsFunc(g.flavors, func(known formFlavor) bool { return g.could(known, count, queue) })
}
