package quota

import (
	"math"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
)

var cpu = FlavorResource{Flavor: "default", Resource: "cpu"}

func limits(nominal, borrowing, lending int64) Quotas {
	return Quotas{cpu: {Nominal: nominal, Borrowing: borrowing, Lending: lending}}
}

func charge(t *Tree, queue string, amount int64) {
	t.Charge(queue, Held, VectorOf(Amount{t.Index(cpu), amount}))
}

func TestAvailable(t *testing.T) {
	const none = Unlimited
	for name, tc := range map[string]struct {
		build               func(*Tree)
		available, capacity int64 // of queue a
	}{
		"a queue without a cohort": {
			build:     func(t *Tree) { t.SetQueue("a", "", limits(5, none, none)); charge(t, "a", 2) },
			available: 3, capacity: 5,
		},
		"borrowing in a cohort": {
			build: func(t *Tree) {
				t.SetQueue("a", "lab", limits(5, none, none))
				t.SetQueue("b", "lab", limits(7, none, none))
				charge(t, "b", 3)
			},
			available: 9, capacity: 12,
		},
		"a borrowing limit": {
			build: func(t *Tree) {
				t.SetQueue("a", "lab", limits(5, 2, none))
				t.SetQueue("b", "lab", limits(7, none, none))
				charge(t, "a", 6)
			},
			available: 1, capacity: 7,
		},
		"a lending limit of another queue": {
			build: func(t *Tree) {
				t.SetQueue("a", "lab", limits(5, none, none))
				t.SetQueue("b", "lab", limits(7, none, 3))
			},
			available: 8, capacity: 8,
		},
		"unlent quota while others borrow": {
			build: func(t *Tree) {
				t.SetQueue("a", "lab", limits(5, none, 1))
				t.SetQueue("b", "lab", limits(0, none, none))
				charge(t, "b", 1)
			},
			available: 4, capacity: 5,
		},
		"quota of a cohort itself": {
			build: func(t *Tree) {
				t.SetCohort("top", "", limits(10, none, none))
				t.SetCohort("mid", "top", limits(1, 4, none))
				t.SetQueue("a", "mid", nil)
			},
			available: 5, capacity: 5,
		},
		"a quota below usage": {
			build: func(t *Tree) {
				t.SetQueue("a", "", limits(5, none, none))
				charge(t, "a", 5)
				t.SetQueue("a", "", limits(3, none, none))
			},
			available: -2, capacity: 3,
		},
		"a deleted queue": {
			build: func(t *Tree) {
				t.SetQueue("a", "lab", limits(1, none, none))
				t.SetQueue("b", "lab", limits(1, none, none))
				charge(t, "b", 2)
				t.DeleteQueue("b")
			},
			available: 1, capacity: 1,
		},
		"a cycle of cohorts": {
			build: func(t *Tree) {
				t.SetCohort("x", "y", nil)
				t.SetCohort("y", "x", nil)
				t.SetQueue("a", "x", limits(5, none, none))
			},
			available: 0, capacity: 0,
		},
		"amounts that saturate": {
			build: func(t *Tree) {
				t.SetQueue("a", "lab", limits(math.MaxInt64, none, none))
				t.SetQueue("b", "lab", limits(math.MaxInt64, none, none))
			},
			available: math.MaxInt64, capacity: math.MaxInt64,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var tree Tree
			tc.build(&tree)
			if got := tree.Queue("a").Available(Held, tree.Index(cpu)); got != tc.available {
				t.Errorf("available %d, want %d", got, tc.available)
			}
			if got := tree.Queue("a").Capacity(tree.Index(cpu)); got != tc.capacity {
				t.Errorf("capacity %d, want %d", got, tc.capacity)
			}
		})
	}
}

func TestUsageSurvivesTheQueue(t *testing.T) {
	var tree Tree
	charge(&tree, "a", 2) // workloads may be observed first
	if tree.Queue("a") != nil {
		t.Error("a queue exists that was only charged")
	}
	tree.SetQueue("a", "", limits(3, Unlimited, Unlimited))
	if got := tree.Queue("a").Available(Held, tree.Index(cpu)); got != 1 {
		t.Errorf("available %d, want 1", got)
	}
}

func FuzzAmountsNeverWrapAround(f *testing.F) {
	for _, s := range []string{"1e30", "-1e30", "9223372036854775807", "0.0001", "100m", "8Ei", "-1"} {
		f.Add(s, int32(7))
	}
	f.Fuzz(func(t *testing.T, text string, count int32) {
		q, err := resource.ParseQuantity(text)
		if err != nil || count < 0 {
			t.Skip("not a quantity, or a negative count")
		}
		for _, name := range []string{"cpu", "memory"} {
			amount := FromQuantity("cpu", q)
			if q.Sign() >= 0 && amount < 0 || q.Sign() < 0 && amount > 0 {
				t.Errorf("%s of %s was converted to %d, which has another sign", text, name, amount)
			}
			if amount >= 0 && Times(amount, count) < 0 {
				t.Errorf("%d times %s is negative", count, text)
			}
		}
	})
}

func TestDeletedQueuesAreForgottenOnceNothingIsCharged(t *testing.T) {
	var tree Tree
	tree.SetQueue("a", "lab", limits(5, Unlimited, Unlimited))
	charge(&tree, "a", 3)
	tree.DeleteQueue("a")
	charge(&tree, "b", 0)
	tree.Charge("c", Held, nil)
	if tree.Queue("a") != nil || len(tree.queues) != 1 {
		t.Errorf("the tree knows %d queues, want only the charged one", len(tree.queues))
	}
	charge(&tree, "a", -3)
	tree.SetQueue("d", "", nil)
	if tree.Queue("d") == nil || len(tree.queues) != 1 {
		t.Errorf("the tree knows %d queues, want only the present one", len(tree.queues))
	}
}
