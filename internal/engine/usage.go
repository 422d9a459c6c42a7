package engine

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/musterhq/muster/internal/engine/fair"
	"github.com/musterhq/muster/internal/engine/order"
	"github.com/musterhq/muster/internal/engine/quota"
)

// state is the state that a workload is counted in.
type state int

const (
	uncounted state = iota
	pending
	reserving
	admitted
)

// counted is how a workload counts in the numbers of its queues.
type counted struct {
	state   state
	unready bool
	leaving bool
}

func (w *workload) counts() counted {
	switch {
	case w.gone:
		return counted{}
	case w.held == nil && w.Inactive:
		return counted{}
	case w.held == nil:
		return counted{state: pending}
	}
	c := counted{state: reserving, leaving: w.leaving() || w.held.HasSurplus()}
	if w.Admitted || w.assumed == admits && len(w.held.Checks) == 0 {
		// A withdrawn admission may be written all the same.
		c.state, c.unready = admitted, !w.Ready && (!w.leaving() || w.withdrawn != nil)
	}
	return c
}

// tally is the numbers of a queue, updated with every change.
type tally struct {
	pending, reserving, admitted int
	// reserved is what is held, used the part of it held by admitted workloads.
	reserved, used sums
}

func (t *tally) add(c counted, v quota.Vector, sign int) {
	switch c.state {
	case pending:
		t.pending += sign
	case reserving, admitted:
		t.reserving += sign
		addTo(&t.reserved, v, int64(sign))
		if c.state == admitted {
			t.admitted += sign
			addTo(&t.used, v, int64(sign))
		}
	}
}

// sums are totals by index, without zeros.
type sums map[quota.Index]quota.Sum

func addTo(all *sums, v quota.Vector, sign int64) {
	if *all == nil {
		*all = sums{}
	}
	for _, a := range v {
		sum := (*all)[a.Index]
		if sum.Add(quota.SumOf(sign * a.Value)); sum == (quota.Sum{}) {
			delete(*all, a.Index)
		} else {
			(*all)[a.Index] = sum
		}
	}
}

// tallies counts the workloads of queues, and has the queues and cohorts whose numbers may have changed.
type tallies struct {
	options     Options
	tree        *quota.Tree
	ledgers     ledgers
	queues      map[string]*clusterQueue
	localQueues map[Key]*localQueue
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

// recount updates the numbers of the queues from one state to the next.
func (e *Engine) recount(was, now charges) {
	if was.queue == now.queue && was.local == now.local && was.count == now.count && slices.Equal(was.held, now.held) {
		return
	}
	e.tallies.count(was, -1)
	e.tallies.count(now, 1)
	if was.queue != nil && was.queue != now.queue {
		e.forgetIfUnused(was.queue)
	}
	if was.count.unready && e.tallies.unready == 0 && e.options.BlockUntilReady == BlockAll {
		for _, f := range e.families {
			f.enqueue() // all families waited for this workload
		}
	}
	if e.options.AdmissionFairSharing != nil && !slices.Equal(was.held, now.held) {
		e.usageHistory.updateStanding(was.local)
		e.usageHistory.updateStanding(now.local)
	}
}

func (t *tallies) count(c charges, sign int) {
	if q := c.queue; q != nil {
		q.add(c.count, c.held, sign)
		if c.count.unready {
			q.unready += sign
			t.unready += sign
		}
		if c.count.leaving {
			q.leaving += sign
		}
		if f := q.family; f != nil && (c.count.leaving || c.count.unready) && sign < 0 {
			f.enqueue()
		}
		t.usageChanged.Insert(q.Name)
	}
	if c.local != nil {
		c.local.add(c.count, c.held, sign)
		t.localUsageChanged.Insert(c.local.Key)
	}
}

// TakeChangedQueues returns the queues whose usage or counts may have changed since the last call, sorted by name.
func (t *tallies) TakeChangedQueues() (clusterQueues []string, localQueues []Key) {
	clusterQueues = sets.List(t.usageChanged)
	localQueues = t.localUsageChanged.UnsortedList()
	slices.SortFunc(localQueues, order.CompareKeys)
	t.usageChanged.Clear()
	t.localUsageChanged.Clear()
	return clusterQueues, localQueues
}

// markUsage marks a ClusterQueue, and the LocalQueues that point to it, as queues to report: whether they can
// admit may have changed.
func (t *tallies) markUsage(name string) {
	t.usageChanged.Insert(name)
	t.activeChanged.Insert(Key{Name: name})
	for key := range t.queues[name].locals {
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

// QueueUsage returns the usage of a ClusterQueue; ok is false if it does not exist.
func (t *tallies) QueueUsage(name string) (u Usage, ok bool) {
	q := t.queues[name]
	if q == nil || !q.exists {
		return Usage{}, false
	}
	u = t.ledgers.usageOf(q.tally)
	node := t.tree.Queue(name)
	u.Cyclic, u.Share = node.Cyclic(), t.shareOf(node)
	return u, true
}

// LocalQueueUsage returns the usage of a LocalQueue, without that of others of the same ClusterQueue; ok is false if
// it does not exist.
func (e *Engine) LocalQueueUsage(key Key) (u Usage, ok bool) {
	l := e.localQueues[key]
	if l == nil || !l.exists {
		return Usage{}, false
	}
	u = e.ledgers.usageOf(l.tally)
	u.Consumption = e.usageHistory.consumptionOf(l)
	return u, true
}

func (l *ledgers) usageOf(t tally) Usage {
	return Usage{
		Reserved: l.named(t.reserved), Used: l.named(t.used),
		Pending: t.pending, Reserving: t.reserving, Admitted: t.admitted,
	}
}

func (l *ledgers) named(all sums) map[quota.FlavorResource]int64 {
	out := make(map[quota.FlavorResource]int64, len(all))
	for i, sum := range all {
		out[l.tree.Name(i)] = sum.Value()
	}
	return out
}

// moveShares notes that the usage of a queue has changed.
func (t *tallies) moveShares(q *clusterQueue) {
	if t.options.FairSharing == nil || q == nil || q.family == nil {
		return
	}
	q.family.waits.SharesMoved()
	t.markShares(q)
}

// markShares notes that the shares of the cohorts above a queue may have changed.
func (t *tallies) markShares(q *clusterQueue) {
	if t.options.FairSharing == nil || q.node == nil || q.node.Cyclic() {
		return
	}
	for n := q.node.Parent(); n != nil; n = n.Parent() {
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
