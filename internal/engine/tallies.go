package engine

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/musterhq/muster/internal/engine/fair"
	"github.com/musterhq/muster/internal/engine/order"
	"github.com/musterhq/muster/internal/engine/quota"
	"github.com/musterhq/muster/internal/engine/reason"
	"github.com/musterhq/muster/internal/engine/state"
)

// tallies counts the workloads of queues, and has the queues and cohorts whose numbers may have changed.
type tallies struct {
	options     Options
	tree        *quota.Tree
	ledgers     state.Ledgers
	queues      map[string]*state.ClusterQueue
	localQueues map[Key]*state.LocalQueue
	// unready counts the admitted workloads whose pods are not ready.
	unready int
	// usageChanged and localUsageChanged are the ClusterQueues and LocalQueues whose usage may have changed since
	// TakeChangedQueues.
	usageChanged      sets.Set[string]
	localUsageChanged sets.Set[Key]
	// activeChanged are the queues for which it may have changed whether they can admit.
	activeChanged sets.Set[Key]
	// sharesChanged are the cohorts whose share may have changed since TakeChangedCohorts.
	sharesChanged sets.Set[string]
}

func (t *tallies) count(c state.Charges, sign int) {
	if q := c.Queue; q != nil {
		q.Add(c.Count, c.Held, sign)
		if c.Count.Unready {
			q.Unready += sign
			t.unready += sign
		}
		if c.Count.Leaving {
			q.Leaving += sign
		}
		if (c.Count.Leaving || c.Count.Unready) && sign < 0 {
			q.Family.Enqueue()
		}
		t.usageChanged.Insert(q.Name)
	}
	if c.Local != nil {
		c.Local.Add(c.Count, c.Held, sign)
		t.localUsageChanged.Insert(c.Local.Key)
	}
}

// TakeChangedQueues returns the queues whose usage or counts may have changed since the last call, sorted by name.
func (t *tallies) TakeChangedQueues() (clusterQueues []string, localQueues []Key) {
	clusterQueues, localQueues = sets.List(t.usageChanged), order.SortedKeys(t.localUsageChanged)
	t.usageChanged.Clear()
	t.localUsageChanged.Clear()
	return clusterQueues, localQueues
}

// markUsage marks a ClusterQueue, and the LocalQueues that point to it, as queues to report: whether they can
// admit may have changed.
func (t *tallies) markUsage(name string) {
	t.usageChanged.Insert(name)
	t.activeChanged.Insert(Key{Name: name})
	for key := range t.queues[name].Locals {
		t.localUsageChanged.Insert(key)
		t.activeChanged.Insert(key)
	}
}

// TakeActiveChanged returns the queues for which it may have changed since the last call whether they can admit. A
// ClusterQueue has no namespace. TakeChangedQueues lists them too.
func (t *tallies) TakeActiveChanged() sets.Set[Key] {
	out := t.activeChanged
	t.activeChanged = sets.New[Key]()
	return out
}

// Usage is what a queue has given out, and to how many workloads.
type Usage struct {
	// Reserved is what is held, Used the part of it held by admitted workloads.
	Reserved, Used map[quota.FlavorResource]int64
	// Pending workloads wait, Reserving ones hold quota, and Admitted are those of the latter that may run.
	Pending, Reserving, Admitted int
	// Cyclic says that the cohorts above the queue form a cycle, so that it has no quota.
	Cyclic bool
	// Share is the share of a ClusterQueue beside its siblings, in thousandths; nil if fair sharing is off.
	Share *int64
	// Consumption is the recent usage of a LocalQueue; nil if it is not ordered by usage.
	Consumption *Consumption
}

// Consumption is the recent usage of a LocalQueue as of a time.
type Consumption struct {
	Resources fair.Consumption
	At        time.Time
}

// QueueUsage returns the usage of a ClusterQueue; ok is false if it does not exist.
func (t *tallies) QueueUsage(name string) (u Usage, ok bool) {
	q := t.queues[name]
	if q == nil || !q.Exists {
		return Usage{}, false
	}
	u = t.usageOf(q.Tally)
	node := t.tree.Queue(name)
	u.Cyclic, u.Share = node.Cyclic(), t.shareOf(node)
	return u, true
}

// moveShares notes that the usage of a queue has changed.
func (t *tallies) moveShares(q *state.ClusterQueue) {
	if t.options.FairSharing == nil || q == nil || q.Family == nil {
		return
	}
	q.Family.Waits.SharesMoved()
	t.markShares(q)
}

// markShares notes that the shares of the cohorts above a queue may have changed.
func (t *tallies) markShares(q *state.ClusterQueue) {
	if t.options.FairSharing == nil || q.Node == nil || q.Node.Cyclic() {
		return
	}
	for n := q.Node.Parent(); n != nil; n = n.Parent() {
		t.sharesChanged.Insert(n.Name())
	}
}

// TakeChangedCohorts returns the cohorts whose share may have changed since the last call, sorted by name.
func (t *tallies) TakeChangedCohorts() []string {
	names := sets.List(t.sharesChanged)
	t.sharesChanged.Clear()
	return names
}

// CohortShare returns the share of a cohort beside its siblings, in thousandths; ok is false if fair sharing is off
// or there is no such cohort.
func (t *tallies) CohortShare(name string) (share int64, ok bool) {
	node := t.tree.Cohort(name)
	if t.options.FairSharing == nil || node == nil {
		return 0, false
	}
	return *t.shareOf(node), true
}

// shareOf returns the share of what is held, in thousandths; nil if fair sharing is off.
func (t *tallies) shareOf(n *quota.Node) *int64 {
	if t.options.FairSharing == nil {
		return nil
	}
	share := fair.Of(n, quota.Held, nil).Thousandths()
	return &share
}

func (t *tallies) usageOf(of state.Tally) Usage {
	return Usage{
		Reserved: t.ledgers.Named(of.Reserved), Used: t.ledgers.Named(of.Used),
		Pending: of.Pending, Reserving: of.Reserving, Admitted: of.Admitted,
	}
}

// mustWait returns why the whole queue has to wait even if there is capacity.
func (t *tallies) mustWait(q *state.ClusterQueue) reason.Reason {
	switch {
	case t.options.BlockUntilReady == BlockQueue && q.Unready > 0:
		return reason.Reason{Code: reason.WaitingForPodsReady,
			Detail: "waiting for all admitted workloads of ClusterQueue " + q.Name + " to be in PodsReady condition"}
	case t.options.BlockUntilReady == BlockAll && t.unready > 0:
		return reason.Reason{Code: reason.WaitingForPodsReady,
			Detail: "waiting for all admitted workloads to be in PodsReady condition"}
	}
	return reason.Reason{}
}

// charge updates the ledgers from one state to the next.
func (t *tallies) charge(was, now state.Charges) {
	if was.Queue == now.Queue && slices.Equal(was.Held, now.Held) && slices.Equal(was.Planned, now.Planned) {
		return
	}
	t.moveShares(was.Queue)
	was.Queue.Recharged()
	if now.Queue != was.Queue {
		t.moveShares(now.Queue)
		now.Queue.Recharged()
	}
	if was.Queue != nil {
		t.tree.Release(was.Queue.Name, quota.Held, was.Held)
		t.tree.Release(was.Queue.Name, quota.Planned, was.Planned)
		was.Queue.Released(decreased(was, now, was.Held, now.Held))
		was.Queue.Released(decreased(was, now, was.Planned, now.Planned))
	}
	if now.Queue != nil {
		t.tree.Charge(now.Queue.Name, quota.Held, now.Held)
		t.tree.Charge(now.Queue.Name, quota.Planned, now.Planned)
	}
}

// decreased returns the indices of which less is charged after than before, of the same queue.
func decreased(was, now state.Charges, before, after quota.Vector) []quota.Index {
	var out []quota.Index
	for _, a := range before {
		if was.Queue != now.Queue || after.Of(a.Index) < a.Value {
			out = append(out, a.Index)
		}
	}
	return out
}
