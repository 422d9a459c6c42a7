package flavor

import (
	"cmp"
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/musterhq/muster/internal/engine/quota"
	"github.com/musterhq/muster/internal/engine/reason"
)

// pods is the resource that counts pods. Pods do not request it: a queue with quota for it counts each pod as one.
const pods = string(corev1.ResourcePods)

// Offer is the flavors that a queue offers.
type Offer struct {
	Groups []Group
	// Flavors are all existing flavors, by name.
	Flavors map[string]Flavor
	// Topologies are the levels of all existing topologies, by name.
	Topologies map[string][]string
	// IgnoreUndeclared ignores requests for resources of no group; without it, such requests keep a workload waiting.
	IgnoreUndeclared bool
}

// Form is everything about a choice that does not depend on usage. It is made once for equal workloads of a queue and
// used often.
type Form struct {
	sets []formSet
	// fault is why the workload cannot be admitted regardless of free quota.
	fault reason.Reason
	// compete is set if the flavor of one pod set may take what another one needs.
	compete bool
	// onNodes is set if pods may be placed on nodes.
	onNodes bool
	// together is with how many pods, of whichever pod sets, the workload can start at least; 0 if each pod set needs some
	// of its own.
	together int64
}

type formSet struct {
	name   string
	needed int32
	fewest int32
	// mayHaveNone is set if the workload can start without it.
	mayHaveNone bool
	perPod      map[string]int64
	ofNode      map[string]int64
	choices     []formGroup
}

// formGroup is what a pod set requests from one group.
type formGroup struct {
	resources []string
	perPod    []int64
	flavors   []formFlavor
}

type formFlavor struct {
	name string
	// refusal says why the pods cannot run there, "" if they can.
	refusal string
	// indices are those of the resources of the group, in the same order.
	indices []quota.Index
}

// NewForm prepares the choice for pod sets in a queue of the tree.
func NewForm(podSets []PodSet, offer Offer, tree *quota.Tree) *Form {
	form := &Form{}
	var without reason.Reason // why it must do without a pod set
	for _, ps := range podSets {
		set := formSet{name: ps.Name, needed: ps.Needed(), fewest: ps.Fewest(), perPod: ps.PerPod, ofNode: ps.OfNode}
		switch fault := uncovered(ps, offer.Groups); {
		case offer.IgnoreUndeclared || fault.Code == reason.None:
		case ps.Together > 0:
			set.needed = 0
			without = firstOf(without, fault)
		default:
			form.fault = firstOf(form.fault, fault)
		}
		for _, g := range offer.Groups {
			if group := newFormGroup(ps, g, offer, tree); len(group.resources) > 0 {
				set.choices = append(set.choices, group)
			}
		}
		form.sets = append(form.sets, set)
	}
	form.chooseForZero(podSets, offer, tree)
	form.shareRefusals(podSets)
	if form.setTogether(podSets); PodsIn(form.Full()) < form.together {
		form.fault = firstOf(form.fault, without)
	}
	form.onNodes = form.takesAny(func(flavor string) bool { return offer.Flavors[flavor].Topology != "" })
	form.compete = len(form.sets) > 1 && form.fault.Code == reason.None && form.HasChoice() && compete(form.sets)
	return form
}

// firstOf returns the first reason that there is.
func firstOf(a, b reason.Reason) reason.Reason {
	if a.Code != reason.None {
		return a
	}
	return b
}

// Competes reports whether the flavor of one pod set may take what another one needs.
func (f *Form) Competes() bool { return f.compete }

// HasChoice reports whether any pod set has a choice of flavors.
func (f *Form) HasChoice() bool {
	return slices.ContainsFunc(f.sets, func(set formSet) bool {
		return slices.ContainsFunc(set.choices, func(g formGroup) bool { return len(g.flavors) > 1 })
	})
}

func newFormGroup(ps PodSet, g Group, offer Offer, tree *quota.Tree) formGroup {
	var group formGroup
	for _, resource := range g.Resources {
		if resource == pods {
			group.resources, group.perPod = append(group.resources, resource), append(group.perPod, 1)
		} else if amount, asked := ps.PerPod[resource]; asked {
			group.resources, group.perPod = append(group.resources, resource), append(group.perPod, amount)
		}
	}
	if len(group.resources) > 0 {
		group.addFlavors(ps, g, offer, tree)
	}
	return group
}

// addFlavors adds the flavors of the group g.
func (fg *formGroup) addFlavors(ps PodSet, g Group, offer Offer, tree *quota.Tree) {
	for _, name := range g.Flavors {
		f := formFlavor{name: name}
		if known, ok := offer.Flavors[name]; ok {
			f.refusal = cmp.Or(refuses(known, ps), refusesTopology(known, ps, offer.Topologies))
		} else {
			f.refusal = fmt.Sprintf("flavor %s not found", name)
		}
		for _, resource := range fg.resources {
			f.indices = append(f.indices, tree.Index(quota.FlavorResource{Flavor: name, Resource: resource}))
		}
		fg.flavors = append(fg.flavors, f)
	}
}

// shareRefusals makes a flavor that refuses one pod set of a group refuse the others, which must get the same flavor:
// otherwise they would be reported to wait for quota or nodes of it.
func (f *Form) shareRefusals(podSets []PodSet) {
	type shared struct{ group, flavor string }
	refusals := map[shared]string{}
	f.eachGrouped(podSets, func(set *formSet, group string, known *formFlavor) {
		if at := (shared{group, known.name}); known.refusal != "" && refusals[at] == "" {
			refusals[at] = fmt.Sprintf("%s, for pod set %s, which must get the same flavor", known.refusal, set.name)
		}
	})
	f.eachGrouped(podSets, func(_ *formSet, group string, known *formFlavor) {
		known.refusal = cmp.Or(known.refusal, refusals[shared{group, known.name}])
	})
}

// eachGrouped calls do for each flavor of each pod set that is in a group and has pods to run.
func (f *Form) eachGrouped(podSets []PodSet, do func(set *formSet, group string, known *formFlavor)) {
	for i := range f.sets {
		if podSets[i].Topology == nil || podSets[i].Topology.Group == "" || f.sets[i].needed == 0 {
			continue
		}
		for _, g := range f.sets[i].choices {
			for n := range g.flavors {
				do(&f.sets[i], podSets[i].Topology.Group, &g.flavors[n])
			}
		}
	}
}

// takesAny reports whether any of these flavors accepts any pod set.
func (f *Form) takesAny(these func(flavor string) bool) bool {
	accepts := func(known formFlavor) bool { return known.refusal == "" && these(known.name) }
	return slices.ContainsFunc(f.sets, func(s formSet) bool {
		return slices.ContainsFunc(s.choices, func(g formGroup) bool { return slices.ContainsFunc(g.flavors, accepts) })
	})
}

// uncovered returns a reason if requested resources are in no group of the queue, and names all of them. Requests of
// zero do not count, and a pod set of which no pods have to run requests nothing.
func uncovered(ps PodSet, groups []Group) reason.Reason {
	if ps.Needed() == 0 {
		return reason.Reason{}
	}
	missing := slices.DeleteFunc(slices.Sorted(maps.Keys(ps.PerPod)), func(resource string) bool {
		return ps.PerPod[resource] == 0 ||
			slices.ContainsFunc(groups, func(g Group) bool { return slices.Contains(g.Resources, resource) })
	})
	if len(missing) == 0 {
		return reason.Reason{}
	}
	noun := "resource"
	if len(missing) > 1 {
		noun = "resources"
	}
	return reason.Reason{Code: reason.NoMatchingFlavor, PodSet: ps.Name,
		Detail: fmt.Sprintf("%s %s unavailable in ClusterQueue", noun, strings.Join(missing, ", "))}
}

// asksNamed reports whether the workload may be given any resource that the queue names.
func (f *Form) asksNamed(queue *quota.Node) bool {
	return slices.ContainsFunc(f.sets, func(s formSet) bool {
		return s.needed > 0 && slices.ContainsFunc(s.choices, func(g formGroup) bool { return g.asksNamed(queue) })
	})
}

func (fg *formGroup) asksNamed(queue *quota.Node) bool {
	return slices.ContainsFunc(fg.flavors, func(known formFlavor) bool {
		for r, index := range known.indices {
			if fg.perPod[r] > 0 && queue.Names(index) {
				return true
			}
		}
		return false
	})
}

// OnNodes reports whether pods may be placed on nodes in any flavor that accepts them.
func (f *Form) OnNodes() bool { return f.onNodes }

// CouldFit reports whether these counts could be assigned flavors if nothing in the queue were in use. If pod sets
// compete for flavors and there are too many combinations to try, it returns true.
func (f *Form) CouldFit(counts []int32, queue *quota.Node) bool {
	_, fits := f.misfit(counts, queue)
	return fits && f.fault.Code == reason.None
}

// MayFit reports whether each pod set alone would have quota in some flavor once evicted workloads are gone. If not, no
// choice is better than Blocked without preemption, until there is more of what was short.
func (f *Form) MayFit(counts []int32, queue *quota.Node) (may bool, short []quota.Index) {
	return f.EachMayFit(counts,
		func(i quota.Index, asked int64) bool { return asked <= queue.Available(quota.Planned, i) })
}

// EachMayFit reports whether each pod set alone may have what it takes of some flavor, as there says of each amount;
// short are amounts that are not there.
func (f *Form) EachMayFit(counts []int32, there func(i quota.Index, asked int64) bool) (may bool, short []quota.Index) {
	noting := func(i quota.Index, asked int64) bool {
		is := there(i, asked)
		if !is {
			short = quota.Union(short, i)
		}
		return is
	}
	for i, s := range f.sets {
		for _, g := range s.choicesOf(counts[i]) {
			if !slices.ContainsFunc(g.flavors, func(known formFlavor) bool { return g.mayTake(&known, counts[i], noting) }) {
				return false, short
			}
		}
	}
	return f.fault.Code == reason.None, short
}

// mayTake reports whether the flavor accepts the pods and has what so many of them take.
func (fg *formGroup) mayTake(known *formFlavor, count int32, there func(i quota.Index, asked int64) bool) bool {
	for r, index := range known.indices {
		if asked := quota.Times(fg.perPod[r], count); asked > 0 && !there(index, asked) {
			return false
		}
	}
	return known.refusal == ""
}

// First returns what these counts take of the first flavors that accept them, regardless of usage. It is used for
// pods that run without an admission.
func (f *Form) First(counts []int32) quota.Vector {
	var amounts []quota.Amount
	for i, set := range f.sets {
		for _, g := range set.choices {
			at := slices.IndexFunc(g.flavors, func(f formFlavor) bool { return f.refusal == "" })
			if at < 0 {
				continue
			}
			for r, index := range g.flavors[at].indices {
				amounts = append(amounts, quota.Amount{Index: index, Value: quota.Times(g.perPod[r], counts[i])})
			}
		}
	}
	return quota.VectorOf(amounts...)
}

// Within returns what these counts take if each pod set gets the first flavors that accept it and whose quota, by
// quotaOf, suffices for it beside the earlier pod sets, regardless of usage. It is nil if there are none, or nothing
// is requested.
func (f *Form) Within(counts []int32, quotaOf func(quota.Index) int64) quota.Vector {
	if f.fault.Code != reason.None {
		return nil
	}
	var taken []quota.Amount
	for i, set := range f.sets {
		for g := range set.choicesOf(counts[i]) {
			asked := set.choices[g].enough(counts[i], taken, quotaOf)
			if asked == nil {
				return nil
			}
			taken = append(taken, asked...)
		}
	}
	return quota.VectorOf(taken...)
}

// enough returns what the count takes of the first flavor that is large enough, nil if none is.
func (fg *formGroup) enough(count int32, taken []quota.Amount, quotaOf func(quota.Index) int64) []quota.Amount {
	asked := make([]quota.Amount, len(fg.resources))
	for _, f := range fg.flavors {
		fits := f.refusal == ""
		for r, index := range f.indices {
			asked[r] = quota.Amount{Index: index, Value: quota.Times(fg.perPod[r], count)}
			fits = fits && quota.Add(sumOf(taken, index), asked[r].Value) <= quotaOf(index)
		}
		if fits {
			return asked
		}
	}
	return nil
}

// sumOf returns the sum of the amounts of one index.
func sumOf(amounts []quota.Amount, i quota.Index) int64 {
	var sum int64
	for _, a := range amounts {
		if a.Index == i {
			sum = quota.Add(sum, a.Value)
		}
	}
	return sum
}

// Full returns the number of pods of each pod set that still have to run.
func (f *Form) Full() []int32 {
	counts := make([]int32, len(f.sets))
	for i, s := range f.sets {
		counts[i] = s.needed
	}
	return counts
}

// Reducible returns by how many pods the workload can be reduced, over all pod sets.
func (f *Form) Reducible() int64 {
	var sum int64
	for _, s := range f.sets {
		sum += int64(s.needed - s.fewest)
	}
	return sum
}

// ReducedBy returns Full reduced by this number of pods, which is at most Reducible: each pod set is reduced in
// proportion to what it can give.
func (f *Form) ReducedBy(fewer int64) []int32 {
	counts := f.Full()
	reducible := f.Reducible()
	if reducible == 0 {
		return counts
	}
	for i, s := range f.sets {
		// In integers: a rounding error in between would cost a pod, and a size that is never tried.
		high, low := bits.Mul64(uint64(s.needed-s.fewest), uint64(fewer))
		gives, _ := bits.Div64(high, low, uint64(reducible))
		counts[i] -= int32(gives)
	}
	return counts
}
