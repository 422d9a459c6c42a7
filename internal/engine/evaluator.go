package engine

import (
	"slices"
	"sort"

	"github.com/musterhq/muster/internal/engine/fair"
	"github.com/musterhq/muster/internal/engine/flavor"
	"github.com/musterhq/muster/internal/engine/nodes"
	"github.com/musterhq/muster/internal/engine/place/find"
	"github.com/musterhq/muster/internal/engine/preempt"
	"github.com/musterhq/muster/internal/engine/quota"
	"github.com/musterhq/muster/internal/engine/reason"
	"github.com/musterhq/muster/internal/engine/state"
)

// outcome is the result of evaluating the head of a class.
type outcome struct {
	verdict state.Verdict
	choice  flavor.Choice
	victims []preempt.Victim
	// yields are the workloads that shrink for it.
	yields []state.Yield
	// shrinksEquals is set if some victims have its queue and priority: those shrink for its minimum only.
	shrinksEquals bool
	// lacks is what there has to be more of before it can be admitted; empty if more would not help.
	lacks []quota.FlavorResource
	// couldRun is set if it is known that it would run if nothing else did.
	couldRun bool
	// takesHoldBacks is set if it takes quota that is held back for workloads after it.
	takesHoldBacks bool
	// mayChoose is set if the workload may fit because more is used, not less: nothing can be evicted for the chosen flavors,
	// and others would be chosen if more of these were used; or it may not take what running workloads are to grow into,
	// and would evict workloads of other queues if that were used.
	mayChoose bool
	// fullFlavors are the flavors whose nodes lack capacity.
	fullFlavors []string
	// waitsForGrowth is set if running workloads of higher priority in the queue are to grow into the capacity that it
	// would take, or into what others would give up for it. grower is one for which there is capacity; nil in the latter case.
	waitsForGrowth bool
	grower         *state.Workload
}

// stopsAny reports whether the outcome stops any workload, or is not a preemption at all.
func (o *outcome) stopsAny() bool { return o.verdict != state.Preempting || len(o.victims) > 0 }

// sparesQueue reports whether the outcome only shrinks workloads, all of them of other queues.
func (o *outcome) sparesQueue(q *state.ClusterQueue) bool {
	return !o.stopsAny() && !slices.ContainsFunc(o.yields, func(y state.Yield) bool { return y.Workload.ClusterQueue == q })
}

// evaluator works out what can be done for waiting workloads. It changes no state but counters and caches.
type evaluator struct {
	options    Options
	tree       *quota.Tree
	queues     map[string]*state.ClusterQueue
	workloads  map[Key]*state.Workload
	precedence *preempt.Precedence
	nodes      *nodes.Nodes
	ledgers    state.Ledgers
	growths    *growths
	// ranking has the shares that searches for victims compare.
	ranking fair.Ranking
	// evaluations counts the evaluations of classes, and tried the workloads that these have tried at other sizes on
	// nodes.
	evaluations int
	tried       int
}

// offer returns the flavors that the queue offers.
func (ev *evaluator) offer(q *state.ClusterQueue) flavor.Offer {
	return flavor.Offer{Groups: q.Groups, Flavors: ev.nodes.Flavors, Topologies: ev.nodes.Topologies, IgnoreUndeclared: ev.options.IgnoreUndeclared || q.CoversAll}
}

// formOf returns the request of the class to its queue, independent of usage.
func (ev *evaluator) formOf(c *state.Class) *flavor.Form {
	if c.Form == nil || c.FormedOf != c.Queue.Revision {
		c.Form, c.FormedOf = flavor.NewForm(c.Shape.PodSets, ev.offer(c.Queue), ev.tree), c.Queue.Revision
		c.Own = nil
		if c.Queue.Node != nil {
			c.Own = c.Form.Within(c.Form.ReducedBy(c.Form.Reducible()), c.Queue.Node.Nominal)
		}
	}
	return c.Form
}

// firstFlavors returns what the workload takes if all its pods use the first flavors of its queue.
func (ev *evaluator) firstFlavors(w *state.Workload) quota.Vector {
	form := flavor.NewForm(w.PodSets, ev.offer(w.ClusterQueue), ev.tree)
	return form.First(form.Full())
}

// lacksOf returns what there has to be more of for a choice that does not fit now; nothing if more would not help. It
// matters only in a queue by resource.
func (ev *evaluator) lacksOf(c *state.Class, counts []int32, choice flavor.Choice) []quota.FlavorResource {
	if c.Queue.Strategy != ByResource || choice.Mode >= flavor.Awaits || !c.Form.CouldFit(counts, c.Queue.Node) {
		return nil
	}
	out := make([]quota.FlavorResource, len(choice.Short))
	for n, i := range choice.Short {
		out[n] = ev.tree.Name(i)
	}
	return out
}

// strategies returns the strategies of fair sharing, nil if it is off.
func (ev *evaluator) strategies() []preempt.Strategy {
	if ev.options.FairSharing == nil {
		return nil
	}
	return ev.options.FairSharing.Strategies
}

// queueStanding returns the Standing of a queue.
func (ev *evaluator) queueStanding(n *quota.Node) preempt.Standing {
	if q := ev.queues[n.Name()]; q != nil {
		return q.Preemption.Standing
	}
	return preempt.Standing{}
}

// triedPerBudget is how many elastic workloads that are tried at other sizes on nodes cost as much as one evaluation:
// that of a hopeless workload can try thousands, and so cost more than all else in a pass. A head that is found is not
// charged for them: it is evaluated again in each pass until the heads of all queues are known, and if it cost all of
// the budget, those of the queues after it would never be.
const triedPerBudget = 10

// countedPerBudget is how many nodes, counted for a pod shape that was not counted lately, cost as much as one evaluation.
// As with triedPerBudget, only hopeless workloads are charged for them.
const countedPerBudget = 500

// work is what evaluations have cost beyond the usual.
type work struct{ tried, counted int }

func (ev *evaluator) workSoFar() work { return work{ev.tried, ev.nodes.Finder.Counted()} }

// costSince returns what one evaluation costs that has begun at that work.
func (ev *evaluator) costSince(begin work) int {
	return 1 + (ev.tried-begin.tried)/triedPerBudget + (ev.nodes.Finder.Counted()-begin.counted)/countedPerBudget
}

// maxCombinations bounds how many combinations of flavors couldRun tries.
const maxCombinations = 16

// A workload that no end of others would let run is told so, and so is who waits behind it in a strict queue: 9 pods of
// 8 GPUs wait for ever where 8 nodes have 8 GPUs each, and all of a StrictFIFO queue with them.

// whyHopeless returns why the head of the class, for which nothing can be done at present, waits. While nodes are not
// ready, nobody is told that the nodes never suffice.
func (ev *evaluator) whyHopeless(c *state.Class, found outcome) reason.Reason {
	why := found.choice.Why
	if why.Code == reason.TopologyPlacementFailed && !found.couldRun && !find.MentionsNotReady(why.Message()) && ev.exceedsNodes(c) {
		why.Code = reason.ExceedsNodes
	}
	return why
}

// exceedsNodes reports whether the present nodes could hold the fewest pods of the class in no choice of flavors, even if
// nothing else ran on them and none were cordoned. It is worked out once for each state of the nodes.
func (ev *evaluator) exceedsNodes(c *state.Class) bool {
	form := ev.formOf(c)
	now := state.NeverOnNodes{Known: true, Revision: c.Queue.Revision, Nodes: ev.nodes.NodesVersion, Residents: ev.nodes.Places.ResidentChanges(), Never: c.Never.Never}
	if c.Never == now {
		return now.Never
	}
	c.Never = now
	if c.Never.Never = !c.Queue.OnDemand; form.Together() > 0 {
		c.Never.Never = c.Never.Never && ev.mostEver(c) < form.Together()
	} else {
		c.Never.Never = c.Never.Never && !ev.everFits(c, form.ReducedBy(form.Reducible()))
	}
	return c.Never.Never
}

// everFits reports whether the present nodes could hold these counts of the class in any choice of flavors, if nothing
// else ran on them.
func (ev *evaluator) everFits(c *state.Class, counts []int32) bool {
	ways := 0
	for given := range ev.formOf(c).Possible(counts, c.Queue.Node) {
		asks := ev.nodes.AsksOf(c.Shape.PodSets, given, state.Avoidance{})
		if ways++; len(asks) == 0 || ways > maxCombinations || ev.nodes.Finder.EverFits(asks) {
			return true
		}
	}
	return false
}

// mostEver returns the sum of what the present nodes could hold of each pod set on its own: no more pods of the class ever
// run together.
func (ev *evaluator) mostEver(c *state.Class) (sum int64) {
	form := ev.formOf(c)
	for i := range form.Full() {
		_, most := form.Needs(i)
		sum += int64(sort.Search(int(most), func(n int) bool {
			counts := make([]int32, len(form.Full()))
			counts[i] = int32(n) + 1
			return !ev.everFits(c, counts)
		}))
	}
	return sum
}
