package flavor

import (
	"github.com/musterhq/muster/internal/engine/quota"
	"github.com/musterhq/muster/internal/engine/reason"
)

// FlavorFit is how well one flavor would serve what a pod set requests from one group.
type FlavorFit struct {
	Flavor string
	Mode   Mode
	// Borrowing is as in Choice.
	Borrowing int
	// Refusal says why the pods cannot run there, "" if they can.
	Refusal string
	// Amounts are the numbers for each resource, Indices the resources in the tree.
	Amounts []reason.Verdict
	Indices []quota.Index
	// Nearest marks the flavor of the group that comes closest to fitting, or that is nominated.
	Nearest bool
}

// Survey evaluates every flavor for every pod set, including those that Assign would skip, and changes nothing. It
// returns a list for each pod set, with the flavors of each group in turn; nil if the form has a fault. nominated are
// the flavors that are nominated for each pod set, none if none are.
func (f *Form) Survey(counts []int32, q Question, nominated []Assignment) [][]FlavorFit {
	if f.fault.Code != reason.None {
		return nil
	}
	a := assigner{Question: q}
	out := make([][]FlavorFit, len(f.sets))
	for i := range f.sets {
		for g := range f.sets[i].choices {
			group := &f.sets[i].choices[g]
			looks := make([]FlavorFit, len(group.flavors))
			for n := range group.flavors {
				looks[n] = a.survey(group, &group.flavors[n], counts[i])
			}
			nearest := nearestOf(looks, q.Fungibility)
			if i < len(nominated) {
				nearest = group.nominatedOr(nearest, nominated[i])
			}
			looks[nearest].Nearest = true
			for n, index := range looks[nearest].Indices {
				a.taken = append(a.taken, quota.Amount{Index: index, Value: looks[nearest].Amounts[n].Asked})
			}
			out[i] = append(out[i], looks...)
		}
	}
	return out
}

// nominatedOr returns the index of the flavor of the group that is nominated, or the given one if none is.
func (fg *formGroup) nominatedOr(index int, nominated Assignment) int {
	for n := range fg.flavors {
		if nominated.Flavors[fg.resources[0]] == fg.flavors[n].name {
			return n
		}
	}
	return index
}

// survey is evaluate without stopping at the first resource that does not fit.
func (a *assigner) survey(g *formGroup, f *formFlavor, count int32) FlavorFit {
	l := FlavorFit{Flavor: f.name, Mode: Fits, Refusal: f.refusal}
	if f.refusal != "" {
		l.Mode = NoFit
		return l
	}
	for i, index := range f.indices {
		v, mode, borrowing := a.judge(g, f, i, count, true)
		l.Mode, l.Borrowing = min(l.Mode, mode), max(l.Borrowing, borrowing)
		l.Amounts, l.Indices = append(l.Amounts, v), append(l.Indices, index)
	}
	return l
}

// nearestOf returns the index of the flavor that Assign would take, or else of the one that lacks least.
func nearestOf(looks []FlavorFit, rule Fungibility) int {
	best := 0
	for n := range looks {
		if l, b := &looks[n], &looks[best]; n > 0 {
			switch {
			case l.Mode <= Blocked && b.Mode <= Blocked:
				if l.lack() < b.lack() {
					best = n
				}
			case rule.prefers(l.Mode, l.Borrowing, b.Mode, b.Borrowing):
				best = n
			}
		}
		if rule.settles(looks[n].Mode, looks[n].Borrowing) {
			break
		}
	}
	return best
}

// lack returns how far a flavor is from fitting: by the missing part of the request; then flavors where it never
// fits; then those that refuse the pods.
func (f *FlavorFit) lack() float64 {
	const never, refused = 1e6, 1e12
	if f.Refusal != "" {
		return refused
	}
	var lack float64
	for _, v := range f.Amounts {
		if v.Asked > 0 {
			lack += float64(v.Missing()) / float64(v.Asked)
		}
		if v.Code == reason.ExceedsMaxQuota {
			lack += never
		}
	}
	return lack
}
