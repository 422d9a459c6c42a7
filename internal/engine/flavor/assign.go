package flavor

import (
	"slices"

	"github.com/musterhq/muster/internal/engine/quota"
	"github.com/musterhq/muster/internal/engine/reason"
)

// Assign chooses a flavor for every pod set and resource, with the given counts of each pod set. What earlier pod
// sets of the workload get counts against later ones.
func (f *Form) Assign(counts []int32, q Question) Choice {
	if f.fault.Code != reason.None {
		return Choice{Why: f.fault}
	}
	a := assigner{Question: q, choice: Choice{Mode: Fits}, form: f}
	for i := range f.sets {
		set := &f.sets[i]
		out := Assignment{PodSet: set.name, Count: counts[i], Flavors: map[string]string{}, Usage: map[string]int64{}}
		for g := range set.choicesOf(counts[i]) {
			if !a.choose(set, &set.choices[g], counts[i], out) {
				if never := f.whyNever(counts, q); never.Code != reason.None {
					a.choice.Mode, a.choice.Why = NoFit, never
				}
				a.choice.Assignments, a.choice.Usage = nil, quota.VectorOf(a.taken...)
				return a.choice
			}
		}
		a.choice.Assignments = append(a.choice.Assignments, out)
	}
	a.choice.Usage = quota.VectorOf(a.taken...)
	return a.choice
}

// whyNever returns why a pod set could not have its count even if nothing were in use, with the verdicts of the first
// group of flavors of which none would do. It takes precedence over a lack of free quota, for which the workload
// would wait in vain.
func (f *Form) whyNever(counts []int32, q Question) reason.Reason {
	found, none := f.misfit(counts, q.Queue)
	if none {
		return reason.Reason{}
	}
	q.MayPreempt = func(quota.Index, int64) bool { return false }
	a := assigner{Question: q, taken: found.taken, form: f}
	var verdicts []reason.Verdict
	for at := range found.group.flavors {
		verdicts = append(verdicts, a.evaluate(found.set.name, found.group, &found.group.flavors[at], found.count).verdict)
	}
	return reason.Reason{Code: nearest(verdicts), PodSet: found.set.name, Flavors: verdicts}
}

// assigner is a choice in progress.
type assigner struct {
	Question
	choice Choice
	taken  []quota.Amount
	form   *Form
}

// borrows returns the height from which the queue borrows the amount. Where the queue names some of the resources, only
// those that it names count.
func (a *assigner) borrows(i quota.Index, amount int64) int {
	if !a.Queue.Names(i) && a.form.asksNamed(a.Queue) {
		return 0
	}
	return a.Queue.Borrows(quota.Planned, i, amount)
}

// candidate is a flavor that was evaluated.
type candidate struct {
	flavor    *formFlavor
	mode      Mode
	borrowing int
	verdict   reason.Verdict
}

// choose assigns the best flavor of the group to the pod set. It reports whether it found one that is better than
// Blocked.
func (a *assigner) choose(set *formSet, g *formGroup, count int32, out Assignment) bool {
	var best candidate
	var verdicts []reason.Verdict
	for i := range g.flavors {
		c := a.evaluate(set.name, g, &g.flavors[i], count)
		if c.mode != Fits {
			verdicts = append(verdicts, c.verdict)
		}
		if best.flavor == nil || a.Fungibility.prefers(c.mode, c.borrowing, best.mode, best.borrowing) {
			best = c
		}
		if a.Fungibility.settles(c.mode, c.borrowing) {
			break
		}
	}
	if best.mode < Fits && a.choice.Why.Code == reason.None {
		a.choice.Why = reason.Reason{Code: nearest(verdicts), PodSet: set.name, Flavors: verdicts}
	}
	a.choice.Mode = min(a.choice.Mode, best.mode)
	if best.mode == NoFit {
		return false
	}
	a.choice.Borrowing = max(a.choice.Borrowing, best.borrowing)
	for i, resource := range g.resources {
		amount := quota.Times(g.perPod[i], count)
		a.taken = append(a.taken, quota.Amount{Index: best.flavor.indices[i], Value: amount})
		out.Flavors[resource], out.Usage[resource] = best.flavor.name, amount
	}
	return best.mode > Blocked
}

// evaluate evaluates a flavor. It reports a resource that could never fit rather than one that does not fit now.
func (a *assigner) evaluate(podSet string, g *formGroup, f *formFlavor, count int32) candidate {
	c := candidate{flavor: f, mode: Fits}
	if f.refusal != "" {
		c.mode, c.verdict = NoFit, reason.Verdict{Flavor: f.name, Code: reason.NoMatchingFlavor, Detail: f.refusal}
		return c
	}
	if v, excluded := a.Excluded[PodSetFlavor{podSet, f.name}]; excluded {
		c.mode, c.verdict = Blocked, v
		return c
	}
	for i, index := range f.indices {
		v, mode, borrowing := a.judge(g, f, i, count, len(g.flavors) > 1)
		c.borrowing = max(c.borrowing, borrowing)
		if v.Code == reason.WaitingForQuota {
			a.choice.Short = quota.Union(a.choice.Short, index)
		}
		if mode < c.mode {
			c.mode, c.verdict = mode, v
		}
		if mode == NoFit {
			return c
		}
	}
	return c
}

// judge returns the numbers of one resource of a flavor, how well it fits, and the height from which it is borrowed
// then. choice says whether there are other flavors.
func (a *assigner) judge(g *formGroup, f *formFlavor, resource int, count int32,
	choice bool) (v reason.Verdict, m Mode, borrowing int) {
	index := f.indices[resource]
	v = reason.Verdict{Flavor: f.name, Resource: g.resources[resource], Earlier: sumOf(a.taken, index),
		Asked: quota.Times(g.perPod[resource], count),
		Free:  a.Queue.Free(index), Capacity: a.Queue.Capacity(index)}
	switch total := quota.Add(v.Earlier, v.Asked); {
	case v.Asked == 0: // zero fits even where quota was cut below usage
		return v, Fits, 0
	case total > v.Capacity:
		v.Code = reason.ExceedsMaxQuota
		return v, NoFit, 0
	case total > v.Free:
		v.Code = reason.WaitingForQuota
		m, borrowing = a.otherwise(index, total, choice)
		return v, m, borrowing
	default:
		return v, Fits, a.borrows(index, total)
	}
}

// otherwise returns how well an amount fits that is not free, and the height from which it is then borrowed. It calls
// Preempt only if there is a choice of flavors.
func (a *assigner) otherwise(i quota.Index, amount int64, choice bool) (m Mode, borrowing int) {
	switch {
	case amount <= a.Queue.Available(quota.Planned, i):
		return Awaits, a.borrows(i, amount)
	case !a.MayPreempt(i, amount):
		return Blocked, a.borrows(i, amount)
	case !choice:
		return Preempts, 0
	default:
		return a.Preempt(i, amount)
	}
}

// nearest returns the code of the verdict that is closest to fitting: waiting may help with one flavor even if no
// other will ever do.
func nearest(verdicts []reason.Verdict) reason.Code {
	for _, code := range []reason.Code{reason.WaitingForQuota, reason.TopologyPlacementFailed, reason.ExceedsMaxQuota} {
		if slices.ContainsFunc(verdicts, func(v reason.Verdict) bool { return v.Code == code }) {
			return code
		}
	}
	return reason.NoMatchingFlavor
}
