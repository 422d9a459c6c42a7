package flavor

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/musterhq/muster/internal/engine/quota"
)

// testQueue is a queue named q, with its flavors and rules.
type testQueue struct {
	tree       quota.Tree
	offer      Offer
	quotas     quota.Quotas
	cohort     string
	ask        Fungibility
	preemption map[string]Mode // by flavor
	above      map[string]int  // by flavor: the height of borrowing after preemption
}

// newTestQueue returns a queue with one group of cpu in the flavors, or with no group if there are none.
func newTestQueue(flavors ...stock) *testQueue {
	s := &testQueue{offer: Offer{Flavors: map[string]Flavor{}}, quotas: quota.Quotas{}, preemption: map[string]Mode{},
		above: map[string]int{}}
	if len(flavors) == 0 {
		return s
	}
	return s.group([]string{"cpu"}, flavors...)
}

// stock is a flavor with the quota of each resource of its group, and the amount that others use.
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
func (t *testQueue) group(resources []string, flavors ...stock) *testQueue {
	g := Group{Resources: resources}
	for _, f := range flavors {
		g.Flavors = append(g.Flavors, f.Name)
		t.offer.Flavors[f.Name] = f.Flavor
		for _, resource := range resources {
			fr := quota.FlavorResource{Flavor: f.Name, Resource: resource}
			t.quotas[fr] = quota.Limits{Nominal: f.nominal, Borrowing: f.borrowing, Lending: quota.Unlimited}
			for l := range quota.Planned + 1 {
				t.tree.Charge("q", l, quota.VectorOf(quota.Amount{Index: t.tree.Index(fr), Value: f.used}))
			}
		}
	}
	t.offer.Groups = append(t.offer.Groups, g)
	return t
}

// lends adds the queue to a cohort with another queue that has this amount of cpu of the flavor.
func (t *testQueue) lends(flavor string, cpu int64) *testQueue {
	t.cohort = "lab"
	t.tree.SetQueue("other of "+flavor, "lab", quota.Quotas{{Flavor: flavor, Resource: "cpu"}: {
		Nominal: cpu, Borrowing: quota.Unlimited, Lending: quota.Unlimited}})
	return t
}

// leaving releases this amount of cpu of the flavor in the planned ledger.
func (t *testQueue) leaving(flavor string, cpu int64) *testQueue {
	t.tree.Release("q", quota.Planned,
		quota.VectorOf(quota.Amount{Index: t.tree.Index(quota.FlavorResource{Flavor: flavor, Resource: "cpu"}), Value: cpu}))
	return t
}

func (t *testQueue) preempting(flavor string, m Mode) *testQueue { t.preemption[flavor] = m; return t }
func (t *testQueue) fungible(f Fungibility) *testQueue           { t.ask = f; return t }

// borrowing sets the height of borrowing after preemption.
func (t *testQueue) borrowing(flavor string, height int) *testQueue {
	t.above[flavor] = height
	return t
}

// assign assigns all of the pod sets.
func (t *testQueue) assign(podSets ...PodSet) Choice {
	t.tree.SetQueue("q", t.cohort, t.quotas)
	form := NewForm(podSets, t.offer, &t.tree)
	return form.Assign(form.Full(), Question{
		Queue: t.tree.Queue("q"), Fungibility: t.ask,
		MayPreempt: func(i quota.Index, _ int64) bool { return t.preemption[t.tree.Name(i).Flavor] != NoFit },
		Preempt: func(i quota.Index, _ int64) (Mode, int) {
			flavor := t.tree.Name(i).Flavor
			return t.preemption[flavor], t.above[flavor]
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

// reclaimed returns the pod set after this number of its pods have ended.
func reclaimed(ps PodSet, ended int32) PodSet { ps.Reclaimable = ended; return ps }

var modes = map[Mode]string{NoFit: "no fit", Blocked: "blocked", Preempts: "preempts", Reclaims: "reclaims",
	Awaits: "awaits", Fits: "fits"}

// line formats a choice in one line: "fits: main 2 cpu=4 of spot", or with what is missing.
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
		offer   *testQueue
		podSets []PodSet
		want    string
	}{
		"the first flavor with quota": {
			offer: newTestQueue(of("spot", 3), of("reserved", 4), of("last", 9)), podSets: []PodSet{one},
			want: "fits: main 2 cpu=4 of reserved"},
		"earlier pod sets of the workload use quota": {
			offer:   newTestQueue(of("spot", 6), of("reserved", 4)),
			podSets: []PodSet{podSet("driver", 1, "cpu", 3), podSet("main", 2, "cpu", 2)},
			want:    "fits: driver 1 cpu=3 of spot: main 2 cpu=4 of reserved"},
		"pod sets that do not fit together do not fit": {
			offer: newTestQueue(of("spot", 6)), podSets: []PodSet{podSet("driver", 1, "cpu", 3), podSet("main", 2, "cpu", 2)},
			want: "no fit: ExceedsMaxQuota"},
		"all resources of a group are of one flavor": {
			offer: newTestQueue().group([]string{"memory", "gpu"},
				stock{Flavor: Flavor{Name: "small"}, nominal: 2, borrowing: quota.Unlimited}, of("big", 8)),
			podSets: []PodSet{podSet("main", 1, "memory", 2, "gpu", 4)},
			want:    "fits: main 1 gpu=4 of big memory=2 of big"},
		"different groups may be of different flavors": {
			offer:   newTestQueue(of("arm", 4), of("x86", 4)).group([]string{"gpu"}, of("old", 1), of("new", 4)),
			podSets: []PodSet{podSet("main", 1, "cpu", 4, "gpu", 2)},
			want:    "fits: main 1 cpu=4 of arm gpu=2 of new"},
		"different pod sets may be of different flavors": {
			offer: newTestQueue(of("spot", 2), of("reserved", 4)), podSets: []PodSet{podSet("driver", 1, "cpu", 2), one},
			want: "fits: driver 1 cpu=2 of spot: main 2 cpu=4 of reserved"},
		"pods are counted where the queue covers them": {
			offer:   newTestQueue().group([]string{"cpu", "pods"}, of("f", 4)),
			podSets: []PodSet{podSet("main", 4, "cpu", 1)},
			want:    "fits: main 4 cpu=4 of f pods=4 of f"},
		"more pods than the quota of pods": {
			offer:   newTestQueue().group([]string{"cpu", "pods"}, of("f", 4)),
			podSets: []PodSet{podSet("main", 5, "cpu", 0)},
			want:    "no fit: ExceedsMaxQuota"},
		"pods count also if nothing else is requested": {
			offer: newTestQueue().group([]string{"pods"}, of("f", 4)), podSets: []PodSet{podSet("main", 3)},
			want: "fits: main 3 pods=3 of f"},
		"a workload without requests": {
			offer: newTestQueue(of("f", 0)), podSets: []PodSet{podSet("main", 3)},
			want: "fits: main 3 cpu=0 of f"},
		"zero of a covered resource is assigned a flavor": {
			offer: newTestQueue(of("f", 0)), podSets: []PodSet{podSet("main", 3, "cpu", 0)},
			want: "fits: main 3 cpu=0 of f"},
		"zero of a resource whose quota is below its usage": {
			offer: newTestQueue(of("f", 1).inUse(5)), podSets: []PodSet{podSet("main", 3, "cpu", 0)},
			want: "fits: main 3 cpu=0 of f"},
		"zero of a resource that is not covered": {
			offer: newTestQueue(of("f", 4)), podSets: []PodSet{podSet("main", 1, "cpu", 1, "tpu", 0)},
			want: "fits: main 1 cpu=1 of f"},
		"a resource that is not covered": {
			offer: newTestQueue(of("f", 4)), podSets: []PodSet{podSet("main", 1, "cpu", 1, "tpu", 1)},
			want: "no fit: NoMatchingFlavor"},
		"a resource that is not covered, for no pods": {
			offer:   newTestQueue(of("f", 4)),
			podSets: []PodSet{podSet("main", 1, "cpu", 1), podSet("later", 0, "cpu", 1, "tpu", 1)},
			want:    "fits: main 1 cpu=1 of f: later 0 cpu=0 of f"},
		"a resource that is not covered, for pods that have ended": {
			offer:   newTestQueue(of("f", 4)),
			podSets: []PodSet{podSet("main", 1, "cpu", 1), reclaimed(podSet("first", 2, "tpu", 1), 2)},
			want:    "fits: main 1 cpu=1 of f: first 0"},
		"a flavor that does not exist": {
			offer: func() *testQueue {
				s := newTestQueue(of("gone", 9), of("f", 4))
				delete(s.offer.Flavors, "gone")
				return s
			}(),
			podSets: []PodSet{one},
			want:    "fits: main 2 cpu=4 of f"},
		"ended pods": {
			offer:   newTestQueue(of("f", 4)),
			podSets: []PodSet{{Name: "main", Count: 5, Reclaimable: 3, PerPod: map[string]int64{"cpu": 2}}},
			want:    "fits: main 2 cpu=4 of f"},
		"a request of another group that never fits is reported first": {
			offer:   newTestQueue(of("f", 4).inUse(4)).group([]string{"gpu"}, of("g", 1)),
			podSets: []PodSet{podSet("main", 1, "cpu", 1, "gpu", 2)},
			want:    "no fit: ExceedsMaxQuota"},
		"a request of another pod set that never fits is reported first": {
			offer:   newTestQueue(of("f", 4).inUse(4)),
			podSets: []PodSet{podSet("driver", 1, "cpu", 1), podSet("main", 5, "cpu", 1)},
			want:    "no fit: ExceedsMaxQuota"},
		"pod sets that never fit together are reported first": {
			offer:   newTestQueue(of("f", 4).inUse(4)),
			podSets: []PodSet{podSet("driver", 1, "cpu", 1), podSet("workers", 4, "cpu", 1)},
			want:    "no fit: ExceedsMaxQuota"},
		"pod sets with one large enough flavor each are reported first": {
			offer:   newTestQueue(of("small", 2).inUse(2), of("f", 6).inUse(6)),
			podSets: []PodSet{podSet("driver", 1, "cpu", 3), podSet("workers", 4, "cpu", 1)},
			want:    "no fit: ExceedsMaxQuota"},
		"pod sets that fit no combination of flavors are reported first": {
			offer:   newTestQueue(of("f", 4).inUse(4), of("g", 4).inUse(4)),
			podSets: []PodSet{podSet("driver", 1, "cpu", 3), podSet("workers", 3, "cpu", 1), podSet("more", 3, "cpu", 1)},
			want:    "no fit: ExceedsMaxQuota"},
		"pod sets that could use another flavor are short": {
			offer:   newTestQueue(of("f", 4).inUse(4), of("g", 4).inUse(4)),
			podSets: []PodSet{podSet("driver", 1, "cpu", 1), podSet("workers", 4, "cpu", 1)},
			want:    "blocked: WaitingForQuota"},
		"pod sets that fit one flavor are short": {
			offer:   newTestQueue(of("f", 4).inUse(4)).group([]string{"gpu"}, of("g", 1), of("h", 2).inUse(1)),
			podSets: []PodSet{podSet("main", 1, "cpu", 1, "gpu", 2)},
			want:    "blocked: WaitingForQuota"},
		"no preemption": {
			offer: newTestQueue(of("f", 4).inUse(1)), podSets: []PodSet{one},
			want: "blocked: WaitingForQuota"},
		"preemption": {
			offer: newTestQueue(of("f", 4).inUse(1)).preempting("f", Preempts), podSets: []PodSet{one},
			want: "preempts: main 2 cpu=4 of f"},
		"quota that evicted workloads will release": {
			offer: newTestQueue(of("f", 4).inUse(1)).leaving("f", 1).preempting("f", Preempts), podSets: []PodSet{one},
			want: "awaits: main 2 cpu=4 of f"},
		"a flavor that fits later is better than one that needs preemption": {
			offer: newTestQueue(of("spot", 4).inUse(1), of("reserved", 4).inUse(1)).leaving("reserved", 1).preempting("spot",
				Preempts).preempting("reserved", Preempts).
				fungible(Fungibility{NextBeforePreempting: true}),
			podSets: []PodSet{one},
			want:    "awaits: main 2 cpu=4 of reserved"},
		"a flavor without possible victims is skipped": {
			offer: newTestQueue(of("spot", 4).inUse(1), of("reserved", 4).inUse(1)).preempting("spot",
				Blocked).preempting("reserved", Preempts),
			podSets: []PodSet{one},
			want:    "preempts: main 2 cpu=4 of reserved"},
		"the mode of a flavor is that of its worst resource": {
			offer: newTestQueue().group([]string{"cpu", "memory"}, of("f", 4)).
				group([]string{"gpu"}, of("g", 1).inUse(1)).preempting("g", Preempts),
			podSets: []PodSet{podSet("main", 1, "cpu", 1, "gpu", 1)},
			want:    "preempts: main 1 cpu=1 of f gpu=1 of g"},
		"more than the quota of the cohort": {
			offer: newTestQueue(of("f", 1)).lends("f", 2), podSets: []PodSet{one},
			want: "no fit: ExceedsMaxQuota"},
		"borrowing within the cohort": {
			offer: newTestQueue(of("f", 1)).lends("f", 3), podSets: []PodSet{one},
			want: "fits borrowing 1: main 2 cpu=4 of f"},
		"more than the borrowing limit": {
			offer:   newTestQueue(stock{Flavor: Flavor{Name: "f"}, nominal: 1, borrowing: 2}).lends("f", 9),
			podSets: []PodSet{one},
			want:    "no fit: ExceedsMaxQuota"},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, line(tc.offer.assign(tc.podSets...))); diff != "" {
				t.Errorf("choice (-want +got):\n%s", diff)
			}
		})
	}
}

// TestReasonOfPodSetsThatNeverFitTogether: the reason counts what earlier pod sets would use if nothing else were in
// use.
func TestReasonOfPodSetsThatNeverFitTogether(t *testing.T) {
	c := newTestQueue(of("f", 4000).inUse(4000)).assign(podSet("driver", 1, "cpu", 1000),
		podSet("workers", 4, "cpu", 1000))
	want := "couldn't assign flavors to pod set workers: insufficient quota for cpu in flavor f, previously considered podsets requests (1) + current podset request (4) > maximum capacity (4)"
	if got := c.Why.Message(); got != want {
		t.Errorf("reason = %q, want %q", got, want)
	}
}

// TestFungibility: in the first flavor the workload would have to borrow or preempt, and there is a second one.
func TestFungibility(t *testing.T) {
	borrows := func() *testQueue { return newTestQueue(of("first", 2), of("second", 4)).lends("first", 2) }
	preempts := func() *testQueue {
		return newTestQueue(of("first", 4).inUse(1), of("second", 4)).preempting("first", Preempts)
	}
	both := func() *testQueue {
		return newTestQueue(of("first", 2), of("second", 4).inUse(1)).lends("first", 2).preempting("second", Preempts)
	}
	next := Fungibility{NextBeforeBorrowing: true, NextBeforePreempting: true}
	preferPreempting := Fungibility{NextBeforeBorrowing: true, NextBeforePreempting: true, PreemptsRatherThanBorrows: true}
	for name, tc := range map[string]struct {
		offer *testQueue
		want  string
	}{
		"whenCanBorrow MayStopSearch settles for borrowing": {
			borrows(), "fits borrowing 1: main 2 cpu=4 of first"},
		"whenCanBorrow TryNextFlavor finds one that need not borrow": {
			borrows().fungible(Fungibility{NextBeforeBorrowing: true}), "fits: main 2 cpu=4 of second"},
		"whenCanPreempt MayStopSearch settles for preempting": {
			preempts(), "preempts: main 2 cpu=4 of first"},
		"whenCanPreempt TryNextFlavor finds one that need not preempt": {
			preempts().fungible(Fungibility{NextBeforePreempting: true}), "fits: main 2 cpu=4 of second"},
		"the first of equal flavors is taken": {
			newTestQueue(of("first", 4).inUse(1), of("second", 4).inUse(1)).preempting("first", Preempts).preempting("second",
				Preempts).fungible(next),
			"preempts: main 2 cpu=4 of first"},
		"reclaiming from the cohort is better than preempting in the queue": {
			newTestQueue(of("first", 4).inUse(1), of("second", 4).inUse(1)).preempting("first", Preempts).preempting("second",
				Reclaims).fungible(next),
			"reclaims: main 2 cpu=4 of second"},
		"BorrowingOverPreemption borrows": {
			both().fungible(next), "fits borrowing 1: main 2 cpu=4 of first"},
		"PreemptionOverBorrowing preempts": {
			both().fungible(preferPreempting), "preempts: main 2 cpu=4 of second"},
		"PreemptionOverBorrowing does not preempt if it has to borrow all the same": {
			both().borrowing("second", 1).fungible(preferPreempting), "fits borrowing 1: main 2 cpu=4 of first"},
		"preemption with less borrowing is better": {
			newTestQueue(of("first", 4).inUse(1), of("second", 4).inUse(1)).preempting("first", Reclaims).borrowing("first",
				1).preempting("second", Reclaims).fungible(next),
			"reclaims: main 2 cpu=4 of second"},
		"PreemptionOverBorrowing borrows where preemption would not help": {
			both().preempting("second", Blocked).fungible(preferPreempting), "fits borrowing 1: main 2 cpu=4 of first"},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, line(tc.offer.assign(podSet("main", 2, "cpu", 2)))); diff != "" {
				t.Errorf("choice (-want +got):\n%s", diff)
			}
		})
	}
}

func TestUndeclaredResourcesAreIgnoredIfConfigured(t *testing.T) {
	s := newTestQueue(of("f", 4))
	s.offer.IgnoreUndeclared = true
	if diff := cmp.Diff("fits: main 1 cpu=1 of f", line(s.assign(podSet("main", 1, "cpu", 1, "tpu", 9)))); diff != "" {
		t.Errorf("choice (-want +got):\n%s", diff)
	}
}

// TestNominationsForOthersAreNotFree: quota that is planned for another workload is not available, although it is not
// held yet.
func TestNominationsForOthersAreNotFree(t *testing.T) {
	s := newTestQueue(of("f", 4))
	s.leaving("f", -3)
	if diff := cmp.Diff("blocked: WaitingForQuota", line(s.assign(podSet("main", 1, "cpu", 2)))); diff != "" {
		t.Errorf("choice (-want +got):\n%s", diff)
	}
}

func TestShortageIsReportedForAllFlavorsTried(t *testing.T) {
	s := newTestQueue(of("spot", 3), of("reserved", 4).inUse(1), of("last", 4).inUse(2))
	got := s.assign(podSet("main", 2, "cpu", 2))
	want := "couldn't assign flavors to pod set main: " +
		"insufficient quota for cpu in flavor spot, previously considered podsets requests (0) + current podset request (4m) > maximum capacity (3m), " +
		"insufficient unused quota for cpu in flavor reserved, 1m more needed, " +
		"insufficient unused quota for cpu in flavor last, 2m more needed"
	if diff := cmp.Diff(want, got.Why.Message()); diff != "" {
		t.Errorf("reason (-want +got):\n%s", diff)
	}
	var short []string
	for _, i := range got.Short {
		short = append(short, s.tree.Name(i).Flavor)
	}
	if diff := cmp.Diff([]string{"reserved", "last"}, short); diff != "" {
		t.Errorf("flavors that are short (-want +got):\n%s", diff)
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
		t.Errorf("Reducible() = %d, want 10", got)
	}
	for fewer, want := range map[int64][]int32{
		0: {3, 10, 8, 2}, 5: {3, 8, 5, 2}, 10: {3, 6, 2, 2},
	} {
		if diff := cmp.Diff(want, form.ReducedBy(fewer)); diff != "" {
			t.Errorf("counts reduced by %d (-want +got):\n%s", fewer, diff)
		}
	}
}

// TestOnePodSetIsReducedByEachNumber: if a number were left out, the workload could start with fewer pods than fit.
func TestOnePodSetIsReducedByEachNumber(t *testing.T) {
	for _, count := range []int32{2, 23, 50, 300, math.MaxInt32} {
		form := NewForm([]PodSet{{Name: "main", Count: count, MinCount: 1}}, Offer{}, &quota.Tree{})
		for fewer := range min(count, 300) {
			if got := form.ReducedBy(int64(fewer))[0]; got != count-fewer {
				t.Fatalf("%d pods reduced by %d = %d", count, fewer, got)
			}
		}
	}
}
