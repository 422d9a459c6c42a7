package quota

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// deep returns a tree of four levels: the cohorts top, mid and low, and the queues a and b below low. Another queue,
// far, is directly below top. Each queue has 10, and so has the cohort low.
func deep(low, mid Limits) *Tree {
	var t Tree
	t.SetCohort("top", "", nil)
	t.SetCohort("mid", "top", Quotas{cpu: mid})
	t.SetCohort("low", "mid", Quotas{cpu: low})
	for queue, cohort := range map[string]string{"a": "low", "b": "low", "far": "top"} {
		t.SetQueue(queue, cohort, limits(10, Unlimited, Unlimited))
	}
	return &t
}

func TestAvailableInATreeOfFourLevels(t *testing.T) {
	free := Limits{Borrowing: Unlimited, Lending: Unlimited}
	for name, tc := range map[string]struct {
		low, mid Limits
		used     map[string]int64
		a, far   int64 // available
	}{
		"no limits": {
			low: Limits{Nominal: 10, Borrowing: Unlimited, Lending: Unlimited}, mid: free, a: 40, far: 40},
		"usage elsewhere": {
			low: Limits{Nominal: 10, Borrowing: Unlimited, Lending: Unlimited}, mid: free,
			used: map[string]int64{"a": 5, "b": 3, "far": 2}, a: 30, far: 30},
		"a lending limit of a cohort": {
			low: Limits{Nominal: 10, Borrowing: Unlimited, Lending: 4}, mid: free, a: 40, far: 14},
		"a borrowing limit of a cohort": {
			low: Limits{Nominal: 10, Borrowing: 3, Lending: Unlimited}, mid: free, a: 33, far: 40},
		"a cohort that borrowed has less to borrow": {
			low: Limits{Nominal: 10, Borrowing: 3, Lending: Unlimited}, mid: free,
			used: map[string]int64{"b": 31}, a: 2, far: 9},
		"lending limits of two levels": {
			low: Limits{Nominal: 10, Borrowing: Unlimited, Lending: 8},
			mid: Limits{Nominal: 0, Borrowing: Unlimited, Lending: 5}, a: 40, far: 15},
		"borrowing limits of two levels": {
			low: Limits{Nominal: 10, Borrowing: 6, Lending: Unlimited},
			mid: Limits{Nominal: 0, Borrowing: 2, Lending: Unlimited}, a: 32, far: 40},
		"usage within unlent quota": {
			low: Limits{Nominal: 10, Borrowing: Unlimited, Lending: 4}, mid: free,
			used: map[string]int64{"a": 26}, a: 14, far: 14},
		"usage beyond unlent quota": {
			low: Limits{Nominal: 10, Borrowing: Unlimited, Lending: 4}, mid: free,
			used: map[string]int64{"a": 28}, a: 12, far: 12},
		"unlent quota and large usage of others": {
			low: Limits{Nominal: 10, Borrowing: Unlimited, Lending: 4}, mid: free,
			used: map[string]int64{"far": 14}, a: 26, far: 0},
		"usage beyond the quota": {
			low: Limits{Nominal: 10, Borrowing: Unlimited, Lending: Unlimited}, mid: free,
			used: map[string]int64{"a": 45}, a: -5, far: -5},
	} {
		t.Run(name, func(t *testing.T) {
			tree := deep(tc.low, tc.mid)
			for queue, amount := range tc.used {
				charge(tree, queue, amount)
			}
			i := tree.Index(cpu)
			for queue, want := range map[string]int64{"a": tc.a, "far": tc.far} {
				if got := tree.Queue(queue).Available(Held, i); got != want {
					t.Errorf("available to %s = %d, want %d", queue, got, want)
				}
			}
		})
	}
}

func TestOverAndPassed(t *testing.T) {
	tree := deep(Limits{Nominal: 10, Borrowing: Unlimited, Lending: 4}, Limits{Borrowing: Unlimited, Lending: Unlimited})
	charge(tree, "a", 8)
	a := tree.Queue("a")
	low, i := a.Parent(), tree.Index(cpu)
	for name, pair := range map[string][2]int64{
		"a queue within its quota is not over it":                {a.Over(Held, i, 2), 0},
		"usage beyond the quota":                                 {a.Over(Held, i, 5), 3},
		"a queue that lends everything passes everything":        {a.Passed(Held, i, 5), 5},
		"a cohort passes usage beyond its unlent quota":          {low.Passed(Held, i, 20), 2},
		"a cohort passes no usage within its unlent quota":       {low.Passed(Held, i, 18), 0},
		"a release passes as much as was passed":                 {low.Passed(Held, i, -8), 0},
		"quota of a cohort includes that of its children":        {low.Quota(i), 30},
		"nominal quota of a cohort is its own":                   {low.Nominal(i), 10},
		"usage of a cohort is that of its queues":                {low.Used(Held, i), 8},
		"usage within unlent quota does not count at the parent": {low.Parent().Used(Held, i), 0},
		"a resource without quota":                               {a.Quota(tree.Index(FlavorResource{"other", "gpu"})), 0},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s: %d, want %d", name, pair[0], pair[1])
		}
	}
	if got := []int{a.Height(), low.Height(), low.Parent().Height(), a.Root().Height()}; !cmp.Equal(got,
		[]int{0, 1, 2, 3}) {
		t.Errorf("heights = %v, want 0 to 3", got)
	}
}

// TestSaturatedSumsCanBeReleased: charges beyond the range can be released again, and leave the former usage.
func TestSaturatedSumsCanBeReleased(t *testing.T) {
	var tree Tree
	for _, queue := range []string{"a", "b"} {
		tree.SetQueue(queue, "lab", limits(100, Unlimited, Unlimited))
	}
	i := tree.Index(cpu)
	gigantic := VectorOf(Amount{i, math.MaxInt64})
	charge(&tree, "a", 30)
	for range 3 {
		tree.Charge("a", Held, gigantic)
		tree.Charge("b", Held, gigantic)
	}
	if got := tree.Queue("a").Parent().Used(Held, i); got != math.MaxInt64 {
		t.Errorf("usage of six largest charges = %d, want the largest int64", got)
	}
	if got := tree.Queue("b").Available(Held, i); got >= 0 {
		t.Errorf("%d are available, want less than none", got)
	}
	for range 3 {
		tree.Release("a", Held, gigantic)
		tree.Release("b", Held, gigantic)
	}
	if got := tree.Queue("b").Available(Held, i); got != 170 {
		t.Errorf("%d are available after all was released, want 170", got)
	}
}

// describe returns all results of a tree with these queues as text.
func describe(t *Tree, queues []string) string {
	var b strings.Builder
	for _, name := range queues {
		for n := t.Queue(name); n != nil; n = n.Parent() {
			for _, l := range []Ledger{Held, Planned} {
				for i := range Index(len(t.names)) {
					fmt.Fprintln(&b, name, n.Name(), l, i, n.Used(l, i), n.Available(l, i), n.Capacity(i), n.Over(l, i, 0))
				}
			}
		}
	}
	return b.String()
}

// randomTree returns a tree of cohorts with limits and up to four queues.
func randomTree(t *rapid.T) (*Tree, []string) {
	tree := &Tree{}
	memory := FlavorResource{Flavor: "default", Resource: "memory"}
	quotas := func(of string) Quotas {
		limit := rapid.OneOf(rapid.Just(Unlimited), rapid.Int64Range(0, 6))
		out := Quotas{}
		for _, fr := range []FlavorResource{cpu, memory} {
			out[fr] = Limits{Nominal: rapid.Int64Range(0, 8).Draw(t, of), Borrowing: limit.Draw(t, of+" borrows"),
				Lending: limit.Draw(t, of+" lends")}
		}
		return out
	}
	cohorts := []string{"c0", "c1", "c2"}
	for i, name := range cohorts {
		parent := rapid.SampledFrom(append([]string{""}, cohorts[:i]...)).Draw(t, "parent of "+name)
		tree.SetCohort(name, parent, quotas(name))
	}
	queues := []string{"q0", "q1", "q2", "q3"}
	for _, name := range queues {
		tree.SetQueue(name, rapid.SampledFrom(cohorts).Draw(t, "cohort of "+name), quotas(name))
	}
	return tree, queues
}

// someChange makes a random charge or release.
func someChange(t *rapid.T, tree *Tree, queues []string) {
	queue, l := rapid.SampledFrom(queues).Draw(t, "queue"), Ledger(rapid.IntRange(0, ledgers-1).Draw(t, "ledger"))
	v := VectorOf(Amount{0, rapid.Int64Range(0, 9).Draw(t, "cpu")}, Amount{1, rapid.Int64Range(0, 9).Draw(t, "memory")})
	if rapid.Bool().Draw(t, "release") {
		tree.Release(queue, l, v)
	} else {
		tree.Charge(queue, l, v)
	}
}

// TestTryLeavesNoTrace: after any charges and releases within Try, the tree returns the same results as before.
func TestTryLeavesNoTrace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tree, queues := randomTree(t)
		for range rapid.IntRange(0, 8).Draw(t, "changes") {
			someChange(t, tree, queues)
		}
		before := describe(tree, queues)
		tree.Try(func() {
			for range rapid.IntRange(0, 12).Draw(t, "tries") {
				someChange(t, tree, queues)
			}
		})
		if diff := cmp.Diff(before, describe(tree, queues)); diff != "" {
			t.Fatalf("tree (-before +after):\n%s", diff)
		}
	})
}

// TestUsageIsThatOfARebuiltTree: incremental charges give the same usage as charging everything at once (E3).
func TestUsageIsThatOfARebuiltTree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tree, queues := randomTree(t)
		for range rapid.IntRange(0, 12).Draw(t, "changes") {
			tree.Queue("q0") // apply each change at once
			someChange(t, tree, queues)
		}
		incremental := describe(tree, queues)
		tree.stale = true
		if diff := cmp.Diff(describe(tree, queues), incremental); diff != "" {
			t.Fatalf("usage (-rebuilt +incremental):\n%s", diff)
		}
	})
}

// TestAvailableChargesTakeNothingThatOthersDoNotLend: while charges stay within what is available, each queue can still
// use what it does not lend.
func TestAvailableChargesTakeNothingThatOthersDoNotLend(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tree, queues := randomTree(t)
		for range rapid.IntRange(0, 12).Draw(t, "changes") {
			queue := rapid.SampledFrom(queues).Draw(t, "queue")
			if free := tree.Queue(queue).Available(Held, 0); free > 0 {
				tree.Charge(queue, Held, VectorOf(Amount{0, rapid.Int64Range(0, free).Draw(t, "cpu")}))
			}
		}
		for _, name := range queues {
			n := tree.Queue(name)
			unlent := max(0, n.Nominal(0)-n.limit(0).Lending)
			if free := n.Available(Held, 0); free < unlent-n.Used(Held, 0) || free < 0 {
				t.Fatalf("available to %s = %d, although it lends all but %d and uses %d", name, free, unlent, n.Used(Held, 0))
			}
		}
	})
}

// TestOrderOfChildrenOfTheSameName: a queue comes before the cohort of its name, whatever was known of them before.
func TestOrderOfChildrenOfTheSameName(t *testing.T) {
	for range 20 { // maps are read in a random order
		tree := &Tree{}
		tree.SetCohort("same", "lab", limits(1, Unlimited, Unlimited))
		tree.SetQueue("same", "lab", limits(1, Unlimited, Unlimited))
		tree.SetQueue("inner", "same", limits(1, Unlimited, Unlimited))
		for range 2 {
			if children := tree.Cohort("lab").Children(); len(children) != 2 || !children[0].IsQueue() {
				t.Fatalf("the first of %d children is no queue", len(children))
			}
			tree.SetCohort("lab", "", nil)
		}
	}
}
