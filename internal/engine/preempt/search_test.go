package preempt

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/musterhq/muster/internal/engine/order"
	"github.com/musterhq/muster/internal/engine/quota"
)

var (
	epoch  = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	cpu    = quota.FlavorResource{Flavor: "default", Resource: "cpu"}
	memory = quota.FlavorResource{Flavor: "default", Resource: "memory"}
)

// lab is a tree of queues with the holders of their quota.
type lab struct {
	tree    quota.Tree
	holders map[string][]*Holder
	since   int
}

func newLab() *lab { return &lab{holders: map[string][]*Holder{}} }

func limits(nominal int64) quota.Limits {
	return quota.Limits{Nominal: nominal, Borrowing: quota.Unlimited, Lending: quota.Unlimited}
}

// queue adds a queue with this amount of cpu, and as much memory.
func (l *lab) queue(name, cohort string, nominal int64) *lab {
	l.tree.SetQueue(name, cohort, quota.Quotas{cpu: limits(nominal), memory: limits(nominal)})
	return l
}

func (l *lab) cohort(name, parent string) *lab {
	l.tree.SetCohort(name, parent, nil)
	return l
}

func (l *lab) amounts(cpus, memories int64) quota.Vector {
	return quota.VectorOf(quota.Amount{Index: l.tree.Index(cpu), Value: cpus},
		quota.Amount{Index: l.tree.Index(memory), Value: memories})
}

// runs adds a workload that holds this amount of cpu of a queue, reserved later than those before it.
func (l *lab) runs(queue, name string, cpus int64, priority int32) *lab {
	return l.holds(queue, &Holder{Key: key(name), Priority: priority, Usage: l.amounts(cpus, 0)})
}

func (l *lab) holds(queue string, h *Holder) *lab {
	l.since++
	h.ReservedAt, h.QueuedAt = epoch.Add(time.Duration(l.since)*time.Second), epoch.Add(time.Duration(l.since)*time.Second)
	l.holders[queue] = append(l.holders[queue], h)
	slices.SortFunc(l.holders[queue], CompareHolders)
	l.tree.Charge(queue, quota.Held, h.Usage)
	l.tree.Charge(queue, quota.Planned, h.Usage)
	return l
}

// holdersOf is Holders.
func (l *lab) holdersOf(n *quota.Node) (holders []*Holder, elastic bool) {
	holders = l.holders[n.Name()]
	return holders, slices.ContainsFunc(holders, func(h *Holder) bool { return h.Pod != nil })
}

func key(name string) order.Key { return order.Key{Namespace: "ns", Name: name} }

// preemptor requests this amount of cpu of the queue, with priority 1.
func (l *lab) preemptor(queue string, policy Policy, cpus int64) Preemptor {
	p := Preemptor{Policy: policy, Priority: 1, QueuedAt: epoch, Usage: l.amounts(cpus, 0)}
	p.Queue = l.tree.Queue(queue)
	return p
}

// search finds victims as the engine does, formatted as "name (cause)".
func (l *lab) search(p Preemptor) []string {
	for _, a := range p.Usage {
		if p.Queue.Available(quota.Planned, a.Index) < a.Value {
			p.Short = append(p.Short, a.Index)
		}
	}
	var out []string
	for _, v := range Search(&l.tree, p, l.holdersOf) {
		cause := map[Cause]string{InQueue: "in queue", Reclaimed: "reclaimed",
			ReclaimedWhileBorrowing: "while borrowing"}[v.Cause]
		out = append(out, fmt.Sprintf("%s (%s)", v.Key.Name, cause))
	}
	return out
}

var (
	lower        = Policy{WithinQueue: LowerPriority}
	lowerOrNewer = Policy{WithinQueue: LowerOrNewerEqualPriority}
	reclaimLower = Policy{Reclaim: LowerPriority}
	reclaimAny   = Policy{Reclaim: Any}
	borrowing    = Policy{Reclaim: LowerPriority, WhileBorrowing: true}
)

func upTo(p Policy, threshold int32) Policy { p.Threshold = &threshold; return p }

func TestSearchWithinTheQueue(t *testing.T) {
	for name, tc := range map[string]struct {
		lab    *lab
		policy Policy
		cpus   int64
		want   []string
	}{
		"Never": {
			newLab().queue("q", "", 4).runs("q", "a", 4, -1), Policy{}, 1, nil},
		"LowerPriority evicts a lower priority": {
			newLab().queue("q", "", 4).runs("q", "a", 4, 0), lower, 1, []string{"a (in queue)"}},
		"LowerPriority does not evict an equal priority": {
			newLab().queue("q", "", 4).runs("q", "a", 4, 1), lower, 1, nil},
		"LowerOrNewerEqualPriority evicts a newer one of equal priority": {
			newLab().queue("q", "", 4).runs("q", "a", 4, 1), lowerOrNewer, 1, []string{"a (in queue)"}},
		"LowerOrNewerEqualPriority evicts a lower priority": {
			newLab().queue("q", "", 4).runs("q", "a", 4, 0), lowerOrNewer, 1, []string{"a (in queue)"}},
		"LowerOrNewerEqualPriority does not evict a higher priority": {
			newLab().queue("q", "", 4).runs("q", "a", 4, 2), lowerOrNewer, 1, nil},
		"the lowest priority is evicted first": {
			newLab().queue("q", "", 4).runs("q", "low", 2, -2).runs("q", "middle", 2, 0), lower, 2, []string{"low (in queue)"}},
		"the last admitted of equal priority is evicted first": {
			newLab().queue("q", "", 4).runs("q", "old", 2, 0).runs("q", "new", 2, 0), lower, 2, []string{"new (in queue)"}},
		"as many are evicted as necessary": {
			newLab().queue("q", "", 4).runs("q", "a", 2, 0).runs("q", "b", 1, 0).runs("q", "c", 1, 0), lower, 2,
			[]string{"c (in queue)", "b (in queue)"}},
		"an unnecessary victim is restored": {
			newLab().queue("q", "", 4).runs("q", "big", 3, 0).runs("q", "small", 1, -1), lower, 3, []string{"big (in queue)"}},
		"no eviction if that is not enough": {
			newLab().queue("q", "", 4).runs("q", "a", 2, 0).runs("q", "b", 2, 5), lower, 3, nil},
		"no eviction for a request that never fits": {
			newLab().queue("q", "", 4).runs("q", "a", 4, 0), lower, 5, nil},
		"a holder of none of the short resources": {
			newLab().queue("q", "", 4).holds("q", &Holder{Key: key("a"), Usage: nil}).runs("q", "b", 4, 0), lower, 1,
			[]string{"b (in queue)"}},
		"a nomination for a lower priority is used before any eviction": {
			func() *lab {
				l := newLab().queue("q", "", 4).runs("q", "low", 2, -5)
				return l.holds("q", &Holder{Key: key("nominated"), Priority: 0, Nominated: true, Usage: l.amounts(2, 0)})
			}(), lower, 2, []string{"nominated (in queue)"}},
		"a nomination for a higher priority": {
			func() *lab {
				l := newLab().queue("q", "", 4).runs("q", "low", 2, -5)
				return l.holds("q", &Holder{Key: key("nominated"), Priority: 2, Nominated: true, Usage: l.amounts(2, 0)})
			}(), lower, 2, []string{"low (in queue)"}},
		"workloads of other queues are no candidates": {
			newLab().queue("q", "lab", 0).queue("p", "lab", 4).runs("p", "a", 4, -1), lower, 1, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.lab.search(tc.lab.preemptor("q", tc.policy, tc.cpus))); diff != "" {
				t.Errorf("victims (-want +got):\n%s", diff)
			}
		})
	}
}

// TestReclaim: q has a quota of 4, as has p, with which it shares a cohort.
func TestReclaim(t *testing.T) {
	two := func() *lab { return newLab().queue("q", "lab", 4).queue("p", "lab", 4) }
	for name, tc := range map[string]struct {
		lab    *lab
		policy Policy
		cpus   int64
		want   []string
	}{
		"Never": {
			two().runs("p", "a", 6, -1), lower, 4, nil},
		"LowerPriority reclaims from a lower priority": {
			two().runs("p", "mine", 4, 0).runs("p", "a", 2, 0), reclaimLower, 4, []string{"a (reclaimed)"}},
		"LowerPriority does not reclaim from an equal priority": {
			two().runs("p", "mine", 4, 1).runs("p", "a", 2, 1), reclaimLower, 4, nil},
		"Any reclaims from any priority": {
			two().runs("p", "mine", 4, 9).runs("p", "a", 2, 9), reclaimAny, 4, []string{"a (reclaimed)"}},
		"a queue that does not borrow": {
			two().queue("r", "lab", 0).runs("p", "a", 4, -1).runs("r", "b", 4, 9), reclaimLower, 4, nil},
		"no more is reclaimed than the queue borrows": {
			two().runs("p", "a", 3, 0).runs("p", "b", 3, 0).runs("q", "mine", 2, 9), reclaimAny, 2, []string{"b (reclaimed)"}},
		"nothing more is reclaimed from a queue that no longer borrows": {
			two().queue("r", "lab", 1).runs("p", "a", 3, -1).runs("p", "b", 3, -1).runs("r", "c", 3, 0), reclaimAny, 4,
			[]string{"b (reclaimed)", "c (reclaimed)"}},
		"the lowest priority of several queues first": {
			two().queue("r", "lab", 0).runs("p", "mine", 4, 0).runs("p", "a", 2, 0).runs("r", "b", 2, -1), reclaimAny, 2,
			[]string{"b (reclaimed)"}},
		"workloads of other queues before those of the preemptor's queue": {
			two().runs("q", "own", 2, -5).runs("p", "mine", 4, 0).runs("p", "a", 2, 0),
			Policy{WithinQueue: LowerPriority, Reclaim: Any}, 2, []string{"a (reclaimed)"}},
		"workloads of other queues and of the preemptor's queue together": {
			two().runs("q", "own", 2, -5).runs("p", "mine", 4, 0).runs("p", "a", 2, 0),
			Policy{WithinQueue: LowerPriority, Reclaim: Any}, 4, []string{"a (reclaimed)", "own (in queue)"}},
		"nothing is reclaimed in order to borrow": {
			two().runs("p", "a", 8, -1), reclaimLower, 5, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.lab.search(tc.lab.preemptor("q", tc.policy, tc.cpus))); diff != "" {
				t.Errorf("victims (-want +got):\n%s", diff)
			}
		})
	}
}

// TestReclaimInATree: the cohort left has the queues q and sister, right has p; both are below top.
func TestReclaimInATree(t *testing.T) {
	tree := func(q, sister, p int64) *lab {
		return newLab().cohort("left", "top").cohort("right", "top").
			queue("q", "left", q).queue("sister", "left", sister).queue("p", "right", p)
	}
	for name, tc := range map[string]struct {
		lab    *lab
		policy Policy
		cpus   int64
		want   []string
	}{
		"quota of the preemptor's cohort is reclaimed from another cohort": {
			tree(2, 2, 4).runs("p", "a", 4, 0).runs("p", "b", 4, 0), reclaimAny, 4, []string{"b (reclaimed)"}},
		"a cohort within its quota whose queue borrows": {
			tree(4, 0, 2).queue("p2", "right", 2).runs("p", "a", 4, 0).runs("sister", "b", 2, 9),
			Policy{Reclaim: LowerPriority}, 4, nil},
		"borrowers in the preemptor's cohort are evicted before others": {
			tree(2, 2, 4).runs("sister", "near", 3, -5).runs("p", "far", 5, 0), reclaimAny, 1, []string{"near (reclaimed)"}},
		"nothing is reclaimed beyond the quota of the preemptor's cohort": {
			tree(2, 2, 4).runs("p", "a", 8, 0), reclaimAny, 5, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.lab.search(tc.lab.preemptor("q", tc.policy, tc.cpus))); diff != "" {
				t.Errorf("victims (-want +got):\n%s", diff)
			}
		})
	}
}

// TestPreemptionWhileBorrowing: q has no quota and borrows that of lender.
func TestPreemptionWhileBorrowing(t *testing.T) {
	poor := func() *lab { return newLab().queue("q", "lab", 0).queue("p", "lab", 0).queue("lender", "lab", 4) }
	for name, tc := range map[string]struct {
		lab    *lab
		policy Policy
		cpus   int64
		want   []string
	}{
		"no policy": {
			poor().runs("p", "a", 4, 0), reclaimAny, 4, nil},
		"a borrower of lower priority": {
			poor().runs("p", "a", 4, 0), borrowing, 4, []string{"a (while borrowing)"}},
		"a borrower of equal priority, with reclaim Any": {
			poor().runs("p", "a", 4, 1), Policy{Reclaim: Any, WhileBorrowing: true}, 4, nil},
		"a borrower above the threshold": {
			poor().runs("p", "a", 4, 0), upTo(borrowing, -1), 4, nil},
		"a borrower at the threshold": {
			poor().runs("p", "a", 4, -1), upTo(borrowing, -1), 4, []string{"a (while borrowing)"}},
		"a queue within its own quota": {
			poor().runs("lender", "a", 4, 0), borrowing, 1, nil},
		"a workload partly within its queue's own quota": {
			newLab().queue("q", "lab", 0).queue("p", "lab", 2).queue("lender", "lab", 2).runs("p", "a", 4, 0),
			borrowing, 1, nil},
		"a preemptor within its quota, and a borrower above the threshold": {
			newLab().queue("q", "lab", 2).queue("p", "lab", 0).runs("p", "a", 2, 0), upTo(borrowing, -1), 2,
			[]string{"a (reclaimed)"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.lab.search(tc.lab.preemptor("q", tc.policy, tc.cpus))); diff != "" {
				t.Errorf("victims (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAllThatIsShortMustBeFound(t *testing.T) {
	l := newLab().queue("q", "", 4)
	l.holds("q", &Holder{Key: key("cpu"), Usage: l.amounts(4, 0)})
	l.holds("q", &Holder{Key: key("memory"), Usage: l.amounts(0, 4)})
	l.holds("q", &Holder{Key: key("neither"), Usage: l.amounts(0, 0)})
	p := l.preemptor("q", lower, 1)
	p.Usage = l.amounts(1, 1)
	if diff := cmp.Diff([]string{"memory (in queue)", "cpu (in queue)"}, l.search(p)); diff != "" {
		t.Errorf("victims (-want +got):\n%s", diff)
	}
}

func TestSparedHolderStays(t *testing.T) {
	l := newLab().queue("q", "", 4).runs("q", "a", 2, 0).runs("q", "b", 2, 0)
	p := l.preemptor("q", lower, 2)
	p.Spared = sets.New(key("b"))
	if diff := cmp.Diff([]string{"a (in queue)"}, l.search(p)); diff != "" {
		t.Errorf("victims (-want +got):\n%s", diff)
	}
}

func TestSearchLeavesTheTreeAsItWas(t *testing.T) {
	l := newLab().queue("q", "lab", 4).queue("p", "lab", 4).runs("p", "a", 3, 0).runs("p", "b", 3, 0)
	state := func() string {
		var b strings.Builder
		for _, name := range []string{"p", "q"} {
			for _, ledger := range []quota.Ledger{quota.Held, quota.Planned} {
				n := l.tree.Queue(name)
				fmt.Fprintln(&b, name, ledger, n.Charges(ledger), n.Used(ledger, 0), n.Available(ledger, 0),
					n.Parent().Used(ledger, 0))
			}
		}
		return b.String()
	}
	before := state()
	if len(l.search(l.preemptor("q", reclaimAny, 4))) == 0 {
		t.Fatal("no victims were found, want some")
	}
	if diff := cmp.Diff(before, state()); diff != "" {
		t.Errorf("tree (-before +after):\n%s", diff)
	}
}
