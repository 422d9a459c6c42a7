package flavor

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/musterhq/muster/internal/engine/quota"
)

// shop is a queue, called q, with its offer and its rules.
type shop struct {
	tree    quota.Tree
	offer   Offer
	quotas  quota.Quotas
	cohort  string
	ask     Fungibility
	mayKill map[string]Mode // by flavor: the result of preemption
	above   map[string]int  // by flavor: the height from which is borrowed then
}

// newShop offers one group of cpu in the flavors, none if there are none.
func newShop(flavors ...stock) *shop {
	s := &shop{offer: Offer{Flavors: map[string]Flavor{}}, quotas: quota.Quotas{}, mayKill: map[string]Mode{}, above: map[string]int{}}
	if len(flavors) == 0 {
		return s
	}
	return s.group([]string{"cpu"}, flavors...)
}

// stock is a flavor, the quota of each resource of its group, and how much of that others use.
type stock struct {
	Flavor
	nominal, used int64
	borrowing     int64
}

func of(flavor string, nominal int64) stock {
	return stock{Flavor: Flavor{Name: flavor}, nominal: nominal, borrowing: quota.Unlimited}
}

func (s stock) inUse(amount int64) stock { s.used = amount; return s }

// group adds a group of resources.
func (s *shop) group(resources []string, flavors ...stock) *shop {
	g := Group{Resources: resources}
	for _, f := range flavors {
		g.Flavors = append(g.Flavors, f.Name)
		s.offer.Flavors[f.Name] = f.Flavor
		for _, resource := range resources {
			fr := quota.FlavorResource{Flavor: f.Name, Resource: resource}
			s.quotas[fr] = quota.Limits{Nominal: f.nominal, Borrowing: f.borrowing, Lending: quota.Unlimited}
			for l := range quota.Planned + 1 {
				s.tree.Charge("q", l, quota.VectorOf(quota.Amount{Index: s.tree.Index(fr), Value: f.used}))
			}
		}
	}
	s.offer.Groups = append(s.offer.Groups, g)
	return s
}

// lends adds the queue to a cohort with another one that has this amount of cpu of the flavor.
func (s *shop) lends(flavor string, cpu int64) *shop {
	s.cohort = "lab"
	s.tree.SetQueue("other of "+flavor, "lab", quota.Quotas{{Flavor: flavor, Resource: "cpu"}: {
		Nominal: cpu, Borrowing: quota.Unlimited, Lending: quota.Unlimited}})
	return s
}

// leaving frees this amount of cpu of the flavor in the planned ledger.
func (s *shop) leaving(flavor string, cpu int64) *shop {
	s.tree.Release("q", quota.Planned, quota.VectorOf(quota.Amount{Index: s.tree.Index(quota.FlavorResource{Flavor: flavor, Resource: "cpu"}), Value: cpu}))
	return s
}

func (s *shop) preempting(flavor string, m Mode) *shop { s.mayKill[flavor] = m; return s }
func (s *shop) fungible(f Fungibility) *shop           { s.ask = f; return s }

// borrowing sets the height from which is borrowed after preemption.
func (s *shop) borrowing(flavor string, height int) *shop { s.above[flavor] = height; return s }

// assign assigns all of the pod sets.
func (s *shop) assign(podSets ...PodSet) Choice {
	s.tree.SetQueue("q", s.cohort, s.quotas)
	form := NewForm(podSets, s.offer, &s.tree)
	return form.Assign(form.Full(), Question{
		Queue: s.tree.Queue("q"), Fungibility: s.ask,
		MayPreempt: func(i quota.Index, _ int64) bool { return s.mayKill[s.tree.Name(i).Flavor] != NoFit },
		Preempt: func(i quota.Index, _ int64) (Mode, int) {
			flavor := s.tree.Name(i).Flavor
			return s.mayKill[flavor], s.above[flavor]
		},
	})
}

// podSet returns a pod set of this number of pods; asks are pairs of a resource and an amount.
func podSet(name string, count int32, asks ...any) PodSet {
	ps := PodSet{Name: name, Count: count, PerPod: map[string]int64{}}
	for i := 0; i < len(asks); i += 2 {
		ps.PerPod[asks[i].(string)] = int64(asks[i+1].(int))
	}
	return ps
}

var modes = map[Mode]string{NoFit: "no fit", Blocked: "blocked", Preempts: "preempts", Reclaims: "reclaims", Awaits: "awaits", Fits: "fits"}

// line formats a choice in one line: "fits: main 2 cpu=4 of spot", or with what it lacks.
func line(c Choice) string {
	var b strings.Builder
	b.WriteString(modes[c.Mode])
	if c.Borrowing > 0 {
		fmt.Fprintf(&b, " borrowing %d", c.Borrowing)
	}
	for _, a := range c.Assignments {
		fmt.Fprintf(&b, ": %s %d", a.PodSet, a.Count)
		for _, resource := range []string{"cpu", "gpu", "memory", "pods"} {
			if name, ok := a.Flavors[resource]; ok {
				fmt.Fprintf(&b, " %s=%d of %s", resource, a.Usage[resource], name)
			}
		}
	}
	if len(c.Assignments) == 0 {
		fmt.Fprintf(&b, ": %s", c.Why.Code)
	}
	return b.String()
}

func TestAssign(t *testing.T) {
	one := podSet("main", 2, "cpu", 2)
	for name, tc := range map[string]struct {
		shop    *shop
		podSets []PodSet
		want    string
	}{
		"the first flavor with quota is taken": {
			shop: newShop(of("spot", 3), of("reserved", 4), of("last", 9)), podSets: []PodSet{one},
			want: "fits: main 2 cpu=4 of reserved"},
		"what earlier pod sets of the workload took is not there for the later ones": {
			shop: newShop(of("spot", 6), of("reserved", 4)), podSets: []PodSet{podSet("driver", 1, "cpu", 3), podSet("main", 2, "cpu", 2)},
			want: "fits: driver 1 cpu=3 of spot: main 2 cpu=4 of reserved"},
		"pod sets that do not fit together do not fit": {
			shop: newShop(of("spot", 6)), podSets: []PodSet{podSet("driver", 1, "cpu", 3), podSet("main", 2, "cpu", 2)},
			want: "no fit: ExceedsMaxQuota"},
		"all resources of a group are of one flavor": {
			shop:    newShop().group([]string{"memory", "gpu"}, stock{Flavor: Flavor{Name: "small"}, nominal: 2, borrowing: quota.Unlimited}, of("big", 8)),
			podSets: []PodSet{podSet("main", 1, "memory", 2, "gpu", 4)},
			want:    "fits: main 1 gpu=4 of big memory=2 of big"},
		"different groups may be of different flavors": {
			shop:    newShop(of("arm", 4), of("x86", 4)).group([]string{"gpu"}, of("old", 1), of("new", 4)),
			podSets: []PodSet{podSet("main", 1, "cpu", 4, "gpu", 2)},
			want:    "fits: main 1 cpu=4 of arm gpu=2 of new"},
		"different pod sets may be of different flavors": {
			shop: newShop(of("spot", 2), of("reserved", 4)), podSets: []PodSet{podSet("driver", 1, "cpu", 2), one},
			want: "fits: driver 1 cpu=2 of spot: main 2 cpu=4 of reserved"},
		"pods are counted where the queue covers them": {
			shop:    newShop().group([]string{"cpu", "pods"}, of("f", 4)),
			podSets: []PodSet{podSet("main", 4, "cpu", 1)},
			want:    "fits: main 4 cpu=4 of f pods=4 of f"},
		"too many pods are too many": {
			shop:    newShop().group([]string{"cpu", "pods"}, of("f", 4)),
			podSets: []PodSet{podSet("main", 5, "cpu", 0)},
			want:    "no fit: ExceedsMaxQuota"},
		"pods count also if nothing else is requested": {
			shop: newShop().group([]string{"pods"}, of("f", 4)), podSets: []PodSet{podSet("main", 3)},
			want: "fits: main 3 pods=3 of f"},
		"a workload that asks for nothing fits": {
			shop: newShop(of("f", 0)), podSets: []PodSet{podSet("main", 3)},
			want: "fits: main 3"},
		"zero of a covered resource is assigned a flavor": {
			shop: newShop(of("f", 0)), podSets: []PodSet{podSet("main", 3, "cpu", 0)},
			want: "fits: main 3 cpu=0 of f"},
		"zero fits where quota was cut below use": {
			shop: newShop(of("f", 1).inUse(5)), podSets: []PodSet{podSet("main", 3, "cpu", 0)},
			want: "fits: main 3 cpu=0 of f"},
		"zero of a resource that is not covered is nothing": {
			shop: newShop(of("f", 4)), podSets: []PodSet{podSet("main", 1, "cpu", 1, "tpu", 0)},
			want: "fits: main 1 cpu=1 of f"},
		"a resource that is not covered is nowhere": {
			shop: newShop(of("f", 4)), podSets: []PodSet{podSet("main", 1, "cpu", 1, "tpu", 1)},
			want: "no fit: NoMatchingFlavor"},
		"a flavor that does not exist is none": {
			shop:    func() *shop { s := newShop(of("gone", 9), of("f", 4)); delete(s.offer.Flavors, "gone"); return s }(),
			podSets: []PodSet{one},
			want:    "fits: main 2 cpu=4 of f"},
		"pods that have ended need nothing": {
			shop: newShop(of("f", 4)), podSets: []PodSet{{Name: "main", Count: 5, Reclaimable: 3, PerPod: map[string]int64{"cpu": 2}}},
			want: "fits: main 2 cpu=4 of f"},
		"what could never fit of another group is said before what is short": {
			shop: newShop(of("f", 4).inUse(4)).group([]string{"gpu"}, of("g", 1)), podSets: []PodSet{podSet("main", 1, "cpu", 1, "gpu", 2)},
			want: "no fit: ExceedsMaxQuota"},
		"and of another pod set": {
			shop: newShop(of("f", 4).inUse(4)), podSets: []PodSet{podSet("driver", 1, "cpu", 1), podSet("main", 5, "cpu", 1)},
			want: "no fit: ExceedsMaxQuota"},
		"and of pod sets that never fit together": {
			shop: newShop(of("f", 4).inUse(4)), podSets: []PodSet{podSet("driver", 1, "cpu", 1), podSet("workers", 4, "cpu", 1)},
			want: "no fit: ExceedsMaxQuota"},
		"and of those that have one flavor each that is large enough": {
			shop:    newShop(of("small", 2).inUse(2), of("f", 6).inUse(6)),
			podSets: []PodSet{podSet("driver", 1, "cpu", 3), podSet("workers", 4, "cpu", 1)},
			want:    "no fit: ExceedsMaxQuota"},
		"and of those that fit no combination of flavors": {
			shop:    newShop(of("f", 4).inUse(4), of("g", 4).inUse(4)),
			podSets: []PodSet{podSet("driver", 1, "cpu", 3), podSet("workers", 3, "cpu", 1), podSet("more", 3, "cpu", 1)},
			want:    "no fit: ExceedsMaxQuota"},
		"but not of those that may have another flavor": {
			shop:    newShop(of("f", 4).inUse(4), of("g", 4).inUse(4)),
			podSets: []PodSet{podSet("driver", 1, "cpu", 1), podSet("workers", 4, "cpu", 1)},
			want:    "blocked: WaitingForQuota"},
		"but not what fits one flavor": {
			shop: newShop(of("f", 4).inUse(4)).group([]string{"gpu"}, of("g", 1), of("h", 2).inUse(1)), podSets: []PodSet{podSet("main", 1, "cpu", 1, "gpu", 2)},
			want: "blocked: WaitingForQuota"},
		"without preemption it is blocked": {
			shop: newShop(of("f", 4).inUse(1)), podSets: []PodSet{one},
			want: "blocked: WaitingForQuota"},
		"with it, it preempts": {
			shop: newShop(of("f", 4).inUse(1)).preempting("f", Preempts), podSets: []PodSet{one},
			want: "preempts: main 2 cpu=4 of f"},
		"what evicted workloads will release is awaited rather than preempted": {
			shop: newShop(of("f", 4).inUse(1)).leaving("f", 1).preempting("f", Preempts), podSets: []PodSet{one},
			want: "awaits: main 2 cpu=4 of f"},
		"a flavor that fits later is better than one that needs preemption": {
			shop: newShop(of("spot", 4).inUse(1), of("reserved", 4).inUse(1)).leaving("reserved", 1).preempting("spot", Preempts).preempting("reserved", Preempts).
				fungible(Fungibility{NextBeforePreempting: true}),
			podSets: []PodSet{one},
			want:    "awaits: main 2 cpu=4 of reserved"},
		"a flavor without possible victims is skipped": {
			shop:    newShop(of("spot", 4).inUse(1), of("reserved", 4).inUse(1)).preempting("spot", Blocked).preempting("reserved", Preempts),
			podSets: []PodSet{one},
			want:    "preempts: main 2 cpu=4 of reserved"},
		"the mode of a flavor is that of its worst resource": {
			shop: newShop().group([]string{"cpu", "memory"}, of("f", 4)).
				group([]string{"gpu"}, of("g", 1).inUse(1)).preempting("g", Preempts),
			podSets: []PodSet{podSet("main", 1, "cpu", 1, "gpu", 1)},
			want:    "preempts: main 1 cpu=1 of f gpu=1 of g"},
		"what is beyond the cohort cannot be borrowed": {
			shop: newShop(of("f", 1)).lends("f", 2), podSets: []PodSet{one},
			want: "no fit: ExceedsMaxQuota"},
		"what is within the cohort is borrowed": {
			shop: newShop(of("f", 1)).lends("f", 3), podSets: []PodSet{one},
			want: "fits borrowing 1: main 2 cpu=4 of f"},
		"what is beyond the borrowing limit is not": {
			shop: newShop(stock{Flavor: Flavor{Name: "f"}, nominal: 1, borrowing: 2}).lends("f", 9), podSets: []PodSet{one},
			want: "no fit: ExceedsMaxQuota"},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, line(tc.shop.assign(tc.podSets...))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestReasonOfPodSetsThatNeverFitTogether: with what the earlier ones would take if nothing were in use.
func TestReasonOfPodSetsThatNeverFitTogether(t *testing.T) {
	c := newShop(of("f", 4000).inUse(4000)).assign(podSet("driver", 1, "cpu", 1000), podSet("workers", 4, "cpu", 1000))
	want := "couldn't assign flavors to pod set workers: insufficient quota for cpu in flavor f, previously considered podsets requests (1) + current podset request (4) > maximum capacity (4)"
	if got := c.Why.Message(); got != want {
		t.Errorf("the reason is %q, want %q", got, want)
	}
}

// TestFungibility: with a first flavor where the workload would have to borrow or to preempt, and a second one.
func TestFungibility(t *testing.T) {
	borrows := func() *shop { return newShop(of("first", 2), of("second", 4)).lends("first", 2) }
	preempts := func() *shop {
		return newShop(of("first", 4).inUse(1), of("second", 4)).preempting("first", Preempts)
	}
	both := func() *shop {
		return newShop(of("first", 2), of("second", 4).inUse(1)).lends("first", 2).preempting("second", Preempts)
	}
	next := Fungibility{NextBeforeBorrowing: true, NextBeforePreempting: true}
	preferPreempting := Fungibility{NextBeforeBorrowing: true, NextBeforePreempting: true, PreemptsRatherThanBorrows: true}
	for name, tc := range map[string]struct {
		shop *shop
		want string
	}{
		"whenCanBorrow MayStopSearch settles for borrowing": {
			borrows(), "fits borrowing 1: main 2 cpu=4 of first"},
		"whenCanBorrow TryNextFlavor finds one that need not borrow": {
			borrows().fungible(Fungibility{NextBeforeBorrowing: true}), "fits: main 2 cpu=4 of second"},
		"whenCanPreempt MayStopSearch settles for preempting": {
			preempts(), "preempts: main 2 cpu=4 of first"},
		"whenCanPreempt TryNextFlavor finds one that need not preempt": {
			preempts().fungible(Fungibility{NextBeforePreempting: true}), "fits: main 2 cpu=4 of second"},
		"with no better one left the first of the best is taken": {
			newShop(of("first", 4).inUse(1), of("second", 4).inUse(1)).preempting("first", Preempts).preempting("second", Preempts).fungible(next),
			"preempts: main 2 cpu=4 of first"},
		"reclaiming from the cohort is better than preempting in the queue": {
			newShop(of("first", 4).inUse(1), of("second", 4).inUse(1)).preempting("first", Preempts).preempting("second", Reclaims).fungible(next),
			"reclaims: main 2 cpu=4 of second"},
		"BorrowingOverPreemption borrows": {
			both().fungible(next), "fits borrowing 1: main 2 cpu=4 of first"},
		"PreemptionOverBorrowing preempts": {
			both().fungible(preferPreempting), "preempts: main 2 cpu=4 of second"},
		"PreemptionOverBorrowing preempts none for what is borrowed all the same": {
			both().borrowing("second", 1).fungible(preferPreempting), "fits borrowing 1: main 2 cpu=4 of first"},
		"of two that need preemption the one is better that then borrows less": {
			newShop(of("first", 4).inUse(1), of("second", 4).inUse(1)).preempting("first", Reclaims).borrowing("first", 1).preempting("second", Reclaims).fungible(next),
			"reclaims: main 2 cpu=4 of second"},
		"PreemptionOverBorrowing borrows where preemption would not help": {
			both().preempting("second", Blocked).fungible(preferPreempting), "fits borrowing 1: main 2 cpu=4 of first"},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, line(tc.shop.assign(podSet("main", 2, "cpu", 2)))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestUndeclaredResourcesAreIgnoredIfConfigured(t *testing.T) {
	s := newShop(of("f", 4))
	s.offer.IgnoreUndeclared = true
	if diff := cmp.Diff("fits: main 1 cpu=1 of f", line(s.assign(podSet("main", 1, "cpu", 1, "tpu", 9)))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestPromisesToOthersAreNotFree: what is planned for another workload may not be taken although it is not held yet.
func TestPromisesToOthersAreNotFree(t *testing.T) {
	s := newShop(of("f", 4))
	s.leaving("f", -3)
	if diff := cmp.Diff("blocked: WaitingForQuota", line(s.assign(podSet("main", 1, "cpu", 2)))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestShortageIsReportedForAllFlavorsTried(t *testing.T) {
	s := newShop(of("spot", 3), of("reserved", 4).inUse(1), of("last", 4).inUse(2))
	got := s.assign(podSet("main", 2, "cpu", 2))
	want := "couldn't assign flavors to pod set main: " +
		"insufficient quota for cpu in flavor spot, previously considered podsets requests (0) + current podset request (4m) > maximum capacity (3m), " +
		"insufficient unused quota for cpu in flavor reserved, 1m more needed, " +
		"insufficient unused quota for cpu in flavor last, 2m more needed"
	if diff := cmp.Diff(want, got.Why.Message()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	var short []string
	for _, i := range got.Short {
		short = append(short, s.tree.Name(i).Flavor)
	}
	if diff := cmp.Diff([]string{"reserved", "last"}, short); diff != "" {
		t.Errorf("short of (-want +got):\n%s", diff)
	}
}

func TestReducedBy(t *testing.T) {
	form := NewForm([]PodSet{
		{Name: "fixed", Count: 3},
		{Name: "some", Count: 10, MinCount: 6},
		{Name: "ended", Count: 10, MinCount: 4, Reclaimable: 2},
		{Name: "above", Count: 2, MinCount: 5},
	}, Offer{}, &quota.Tree{})
	if got := form.Reducible(); got != 4+6 {
		t.Errorf("reducible by %d, want 10", got)
	}
	for fewer, want := range map[int64][]int32{
		0: {3, 10, 8, 2}, 5: {3, 8, 5, 2}, 10: {3, 6, 2, 2},
	} {
		if diff := cmp.Diff(want, form.ReducedBy(fewer)); diff != "" {
			t.Errorf("by %d (-want +got):\n%s", fewer, diff)
		}
	}
}

// TestOnePodSetIsReducedByEachNumber: otherwise some sizes are never tried, and it starts with fewer pods than fit.
func TestOnePodSetIsReducedByEachNumber(t *testing.T) {
	for _, count := range []int32{2, 23, 50, 300, math.MaxInt32} {
		form := NewForm([]PodSet{{Name: "main", Count: count, MinCount: 1}}, Offer{}, &quota.Tree{})
		for fewer := range min(count, 300) {
			if got := form.ReducedBy(int64(fewer))[0]; got != count-fewer {
				t.Fatalf("%d pods less %d are %d", count, fewer, got)
			}
		}
	}
}
