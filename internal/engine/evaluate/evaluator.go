package evaluate

import (
	"slices"
	"sort"

	"github.com/musterhq/muster/internal/engine/fair"
	"github.com/musterhq/muster/internal/engine/flavor"
	"github.com/musterhq/muster/internal/engine/growth"
	"github.com/musterhq/muster/internal/engine/model"
	"github.com/musterhq/muster/internal/engine/nodes"
	"github.com/musterhq/muster/internal/engine/order"
	"github.com/musterhq/muster/internal/engine/place/find"
	"github.com/musterhq/muster/internal/engine/preempt"
	"github.com/musterhq/muster/internal/engine/quota"
	"github.com/musterhq/muster/internal/engine/reason"
	"github.com/musterhq/muster/internal/engine/state"
	"github.com/musterhq/muster/internal/engine/waiting"
)

// Outcome is the result of evaluating the head of a class.
type Outcome struct {
	Verdict state.Verdict
	Choice  flavor.Choice
	Victims []preempt.Victim
	// Yields are the workloads that shrink for it.
	Yields []state.Yield
	// shrinksEquals is set if some victims have its queue and priority: those shrink for its minimum only.
	shrinksEquals bool
	// TakesHoldBacks is set if it takes quota that is held back for workloads after it.
	TakesHoldBacks bool
	// mayChoose is set if the workload may fit because more is used, not less: nothing can be evicted for the chosen
	// flavors, and others would be chosen if more of these were used; or it may not take what running workloads are to
	// grow into, and would evict workloads of other queues if that were used.
	mayChoose bool
	// fullFlavors are the flavors whose nodes lack capacity.
	fullFlavors []string
	// Delays is the planned start that it would delay, if that is why it is hopeless.
	Delays *state.Reservation
	// Cause is what the evaluation depended on, if it is hopeless.
	Cause waiting.Cause
}

// stopsAny reports whether the outcome stops any workload, or is not a preemption at all.
func (o *Outcome) stopsAny() bool { return o.Verdict != state.Preempting || len(o.Victims) > 0 }

// sparesQueue reports whether the outcome only shrinks workloads, all of them of other queues.
func (o *Outcome) sparesQueue(q *state.ClusterQueue) bool {
	return !o.stopsAny() &&
		!slices.ContainsFunc(o.Yields, func(y state.Yield) bool { return y.Workload.ClusterQueue == q })
}

// Evaluator works out what can be done for waiting workloads. It changes no state but counters and caches.
type Evaluator struct {
	Options    model.Options
	Tree       *quota.Tree
	Queues     map[string]*state.ClusterQueue
	Workloads  map[order.Key]*state.Workload
	Precedence *preempt.Precedence
	Nodes      *nodes.Nodes
	Ledgers    state.Ledgers
	Growths    *growth.Growths
	// Starts has the planned starts, which others must not delay.
	Starts Starts
	// Planning is set while a start is planned: nothing is evicted or shrunk for it, and it waits for nobody's growth.
	Planning bool
	// Yielding are the sizes that elastic workloads of a queue have in the present trial, in the order of its list; nil if
	// nothing is tried.
	Yielding   []int32
	YieldingIn *state.ClusterQueue
	// Ranking has the shares that searches for victims compare.
	Ranking fair.Ranking
	// Evaluations counts the evaluations of classes, and Trials those in which a start was planned. Tried counts the
	// workloads that these have tried at other sizes on nodes, or taken off the nodes as they end before a planned start.
	Evaluations, Trials, Tried int
	// cause is what the present evaluation has depended on so far.
	cause waiting.Cause
}

// Starts are the planned starts of workloads that do not fit now.
type Starts interface {
	// MayDelay reports whether there is a planned start that a workload of the class may delay.
	MayDelay(c *state.Class) bool
	// Delayed returns the first of the starts that the workload of the class would delay with this outcome, nil if it
	// delays none.
	Delayed(w *state.Workload, c *state.Class, found *Outcome) *state.Reservation
	// Beside calls what as if all that is reserved for workloads before the class were in use.
	Beside(c *state.Class, what func())
}

// offer returns the flavors that the queue offers.
func (ev *Evaluator) offer(q *state.ClusterQueue) flavor.Offer {
	return flavor.Offer{Groups: q.Groups, Flavors: ev.Nodes.Flavors, Topologies: ev.Nodes.Topologies,
		IgnoreUndeclared: ev.Options.IgnoreUndeclared || q.CoversAll}
}

// FormOf returns the request of the class to its queue, independent of usage.
func (ev *Evaluator) FormOf(c *state.Class) *flavor.Form {
	if c.Form == nil || c.FormedOf != c.Queue.Revision {
		c.Form, c.FormedOf = flavor.NewForm(c.Shape.PodSets, ev.offer(c.Queue), ev.Tree), c.Queue.Revision
		c.Own = nil
		if c.Queue.Node != nil {
			c.Own = c.Form.Within(c.Form.ReducedBy(c.Form.Reducible()), c.Queue.Node.Nominal)
		}
	}
	return c.Form
}

// FirstFlavors returns what the workload takes if all its pods use the first flavors of its queue.
func (ev *Evaluator) FirstFlavors(w *state.Workload) quota.Vector {
	form := flavor.NewForm(w.PodSets, ev.offer(w.ClusterQueue), ev.Tree)
	return form.First(form.Full())
}

// strategies returns the strategies of fair sharing, nil if it is off.
func (ev *Evaluator) strategies() []preempt.Strategy {
	if ev.Options.FairSharing == nil {
		return nil
	}
	return ev.Options.FairSharing.Strategies
}

// queueStanding returns the Standing of a queue.
func (ev *Evaluator) queueStanding(n *quota.Node) preempt.Standing {
	if q := ev.Queues[n.Name()]; q != nil {
		return q.Preemption.Standing
	}
	return preempt.Standing{}
}

// TriedPerBudget is how many elastic workloads that are tried at other sizes on nodes cost as much as one evaluation:
// that of a hopeless workload can try thousands, and so cost more than all else in a pass. A head that is found is not
// charged for them: it is evaluated again in each pass until the heads of all queues are known, and if it cost all of
// the budget, those of the queues after it would never be.
const TriedPerBudget = 10

// CountedPerBudget is how many nodes, counted for a pod shape that was not counted lately, cost as much as one
// evaluation. As with TriedPerBudget, only hopeless workloads are charged for them.
const CountedPerBudget = 500

// work is what evaluations have cost beyond the usual.
type Work struct{ tried, counted int }

// WorkSoFar returns the work that was done since the engine started.
func (ev *Evaluator) WorkSoFar() Work { return Work{ev.Tried, ev.Nodes.Finder.Counted()} }

// CostSince returns what one evaluation costs that has begun at that work.
func (ev *Evaluator) CostSince(begin Work) int {
	return 1 + (ev.Tried-begin.tried)/TriedPerBudget + (ev.Nodes.Finder.Counted()-begin.counted)/CountedPerBudget
}

// maxCombinations bounds how many combinations of flavors couldRun tries.
const maxCombinations = 16

// A workload that no end of others would let run is told so, and so is who waits behind it in a strict queue: 9 pods of
// 8 GPUs wait for ever where 8 nodes have 8 GPUs each, and all of a StrictFIFO queue with them.

// WhyHopeless returns why the head of the class, for which nothing can be done at present, waits. While nodes are not
// ready, nobody is told that the nodes never suffice.
func (ev *Evaluator) WhyHopeless(c *state.Class, found Outcome) reason.Reason {
	why := found.Choice.Why
	if why.Code == reason.TopologyPlacementFailed && !find.MentionsNotReady(why.Message()) &&
		ev.exceedsNodes(c) {
		why.Code = reason.ExceedsNodes
	}
	return why
}

// exceedsNodes reports whether the present nodes could hold the fewest pods of the class in no choice of flavors, even
// if nothing else ran on them and none were cordoned. It is worked out once for each state of the nodes.
func (ev *Evaluator) exceedsNodes(c *state.Class) bool {
	form := ev.FormOf(c)
	now := state.NeverOnNodes{Known: true, Revision: c.Queue.Revision, Nodes: ev.Nodes.NodesVersion,
		Residents: ev.Nodes.Places.ResidentChanges(), Never: c.Never.Never}
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
func (ev *Evaluator) everFits(c *state.Class, counts []int32) bool {
	ways := 0
	for given := range ev.FormOf(c).Possible(counts, c.Queue.Node) {
		asks := ev.Nodes.AsksOf(c.Shape.PodSets, given, state.Avoidance{})
		if ways++; len(asks) == 0 || ways > maxCombinations || ev.Nodes.Finder.EverFits(asks) {
			return true
		}
	}
	return false
}

// mostEver returns the sum of what the present nodes could hold of each pod set on its own: no more pods of the class
// ever run together.
func (ev *Evaluator) mostEver(c *state.Class) (sum int64) {
	form := ev.FormOf(c)
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
