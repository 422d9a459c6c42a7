package engine

import (
	"sort"

	"github.com/musterhq/muster/internal/engine/place/find"
	"github.com/musterhq/muster/internal/engine/reason"
)

// A workload that no end of others would let run is told so, and so is who waits behind it in a strict queue: 9 pods of
// 8 GPUs wait for ever where 8 nodes have 8 GPUs each, and all of a StrictFIFO queue with them.

// neverOnNodes is whether the present nodes could not hold a class even if nothing else ran on them, as of a revision of
// its queue, and of versions of the nodes and of the pods that stay on them.
type neverOnNodes struct {
	known           bool
	revision, nodes int
	residents       uint64
	never           bool
}

// whyHopeless returns why the head of the class, for which nothing can be done at present, waits. While nodes are not
// ready, nobody is told that the nodes never suffice.
func (ev *evaluator) whyHopeless(c *class, found outcome) reason.Reason {
	why := found.choice.Why
	if why.Code == reason.TopologyPlacementFailed && !found.couldRun && !find.MentionsNotReady(why.Message()) && ev.exceedsNodes(c) {
		why.Code = reason.ExceedsNodes
	}
	return why
}

// exceedsNodes reports whether the present nodes could hold the fewest pods of the class in no choice of flavors, even if
// nothing else ran on them and none were cordoned. It is worked out once for each state of the nodes.
func (ev *evaluator) exceedsNodes(c *class) bool {
	form := ev.formOf(c)
	now := neverOnNodes{known: true, revision: c.queue.revision, nodes: ev.nodes.nodesVersion, residents: ev.nodes.places.ResidentChanges(), never: c.never.never}
	if c.never == now {
		return now.never
	}
	c.never = now
	if c.never.never = !c.queue.OnDemand; form.Together() > 0 {
		c.never.never = c.never.never && ev.mostEver(c) < form.Together()
	} else {
		c.never.never = c.never.never && !ev.everFits(c, form.ReducedBy(form.Reducible()))
	}
	return c.never.never
}

// everFits reports whether the present nodes could hold these counts of the class in any choice of flavors, if nothing
// else ran on them.
func (ev *evaluator) everFits(c *class, counts []int32) bool {
	ways := 0
	for given := range ev.formOf(c).Possible(counts, c.queue.node) {
		asks := ev.nodes.asksOf(c.shape.podSets, given, avoidance{})
		if ways++; len(asks) == 0 || ways > maxCombinations || ev.nodes.finder.EverFits(asks) {
			return true
		}
	}
	return false
}

// mostEver returns the sum of what the present nodes could hold of each pod set on its own: no more pods of the class ever
// run together.
func (ev *evaluator) mostEver(c *class) (sum int64) {
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

// stuckHead returns the code of the head of a strict queue that is never admitted with the present quota and nodes, else
// None.
func (cq *clusterQueue) stuckHead() reason.Code {
	if head := classOf(cq.waits.Head()); cq.Strategy == Strict && head != nil && head.why.Code.Never() {
		return head.why.Code
	}
	return reason.None
}

// behindText begins the message of all that wait behind the head of a strict queue.
func behindText(q *clusterQueue) string {
	return "waits behind the head of ClusterQueue " + q.Name + ", which is StrictFIFO"
}

// whyBehindStuck is whyBehind in a strict queue whose head, for the reason of the code, is never admitted.
func whyBehindStuck(q *clusterQueue, head reason.Code) reason.Reason {
	with := map[reason.Code]string{reason.ExceedsMaxQuota: "this quota", reason.ExceedsNodes: "these nodes"}[head]
	return reason.Reason{Code: reason.WaitingForQuota, Detail: behindText(q) + "; the head never starts with " + with + " (" + string(head) +
		"): it must be changed or deleted, or there must be more"}
}
