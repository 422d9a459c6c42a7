package flavor

import (
	"iter"
	"maps"

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
		if !g.could(&g.flavors[i], counts[set], nil, queue) {
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

// could reports whether the flavor could take so many pods beside what is taken if nobody else used anything.
func (g *formGroup) could(known *formFlavor, count int32, taken []quota.Amount, queue *quota.Node) bool {
	if known.refusal != "" {
		return false
	}
	for r, index := range known.indices {
		if quota.Add(sumOf(taken, index), quota.Times(g.perPod[r], count)) > queue.Capacity(index) {
			return false
		}
	}
	return true
}

// misfit is a group that none of its flavors could serve for a pod set if nobody used anything, and what earlier pod sets take then.
type misfit struct {
	set   *formSet
	group *formGroup
	count int32
	taken []quota.Amount
}

// misfit finds the first one for so many pods. What a pod set takes where one flavor alone could serve it is not there for later ones. Of
// a choice it is not known what it leaves: that is for Split to try.
func (f *Form) misfit(counts []int32, queue *quota.Node) (found misfit, none bool) {
	var taken []quota.Amount
	for i := range f.sets {
		set := &f.sets[i]
		for n := range set.choices {
			g := &set.choices[n]
			var only *formFlavor
			possible := 0
			for at := range g.flavors {
				if g.could(&g.flavors[at], counts[i], taken, queue) {
					only = &g.flavors[at]
					possible++
				}
			}
			switch last := i == len(f.sets)-1; {
			case possible == 0:
				return misfit{set, g, counts[i], taken}, false
			case possible == 1 && !last: // nothing is allocated for one pod set
				for r, index := range only.indices {
					taken = append(taken, quota.Amount{Index: index, Value: quota.Times(g.perPod[r], counts[i])})
				}
			}
		}
	}
	return misfit{}, true
}
