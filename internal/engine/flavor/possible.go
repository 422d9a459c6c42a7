package flavor

import (
	"iter"
	"maps"
	"slices"

	"github.com/musterhq/muster/internal/engine/quota"
)

// Possible yields the combinations of flavors that these counts could be assigned if nothing in the queue were in
// use, considering each pod set on its own, in the order of flavors. Usage is not set. The yielded slice is reused by
// the next step.
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

// possible continues from a group of a pod set. It returns false if yield did.
func (f *Form) possible(counts []int32, queue *quota.Node, given []Assignment, set, group int,
	yield func([]Assignment) bool) bool {
	switch {
	case set == len(f.sets):
		return yield(given)
	case group == len(f.sets[set].choicesOf(counts[set])):
		return f.possible(counts, queue, given, set+1, 0, yield)
	}
	g := &f.sets[set].choices[group]
	before := given[set].Flavors
	defer func() { given[set].Flavors = before }()
	for i := range g.flavors {
		if !g.couldTake(&g.flavors[i], counts[set], nil, queue) {
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

// couldTake reports whether the flavor could take the count beside what is taken, if nothing else were in use.
func (fg *formGroup) couldTake(known *formFlavor, count int32, taken []quota.Amount, queue *quota.Node) bool {
	if known.refusal != "" {
		return false
	}
	for r, index := range known.indices {
		if quota.Add(sumOf(taken, index), quota.Times(fg.perPod[r], count)) > queue.Capacity(index) {
			return false
		}
	}
	return true
}

// misfit is a group of which no flavor could serve a pod set even if nothing were in use, with what earlier pod sets
// then take.
type misfit struct {
	set   *formSet
	group *formGroup
	count int32
	taken []quota.Amount
}

// misfit returns the first such group; none is true if all groups can be served together. If pod sets compete for
// flavors, it tries their combinations, and returns none if these are too many.
func (f *Form) misfit(counts []int32, queue *quota.Node) (found misfit, none bool) {
	p := packer{form: f, counts: counts, queue: queue, evaluations: maxEvaluations}
	if p.pack(0, 0) || p.evaluations < 0 {
		return misfit{}, true
	}
	return *p.first, false
}

// packer searches for flavors for all pod sets in an otherwise unused queue.
type packer struct {
	form        *Form
	counts      []int32
	queue       *quota.Node
	evaluations int
	taken       []quota.Amount
	// first is where the first failed combination ended.
	first *misfit
}

// pack finds flavors for the n-th group of the i-th pod set and all that follow.
func (p *packer) pack(i, n int) bool {
	if i == len(p.form.sets) {
		return true
	}
	set := &p.form.sets[i]
	if n == len(set.choicesOf(p.counts[i])) {
		return p.pack(i+1, 0)
	}
	g, before, could := &set.choices[n], len(p.taken), false
	for at := range g.flavors {
		if p.evaluations--; p.evaluations < 0 {
			return false
		}
		known := &g.flavors[at]
		if !g.couldTake(known, p.counts[i], p.taken, p.queue) {
			continue
		}
		could = true
		if last := i == len(p.form.sets)-1; !last { // saves the allocation if there is one pod set
			for r, index := range known.indices {
				p.taken = append(p.taken, quota.Amount{Index: index, Value: quota.Times(g.perPod[r], p.counts[i])})
			}
		}
		if p.pack(i, n+1) {
			return true
		}
		p.taken = p.taken[:before]
		if !p.form.compete {
			return false // the choice of this flavor does not affect the rest
		}
	}
	if !could && p.first == nil {
		p.first = &misfit{set, g, p.counts[i], slices.Clone(p.taken)}
	}
	return false
}
