package engine

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/musterhq/muster/internal/engine/order"
	"github.com/musterhq/muster/internal/engine/quota"
)

// state is what a workload is counted as.
type state int

const (
	uncounted state = iota
	pending
	reserving
	admitted
)

// counted is how a workload shows in the numbers of its queues.
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
	c := counted{state: reserving, leaving: w.leaving() || w.held.hasSurplus()}
	if w.Admitted || w.assumed == admits && len(w.held.Checks) == 0 {
		// One that is withdrawn may be written all the same.
		c.state, c.unready = admitted, !w.Ready && (!w.leaving() || w.withdrawn != nil)
	}
	return c
}

// tally is the numbers of a queue, kept up to date with every change.
type tally struct {
	pending, reserving, admitted int
	// reserved is what is held, used the part of it that is admitted.
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

// sums are what is counted of each amount, without those of which nothing is.
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

// recount changes the numbers of the queues from the one to the other.
func (e *Engine) recount(was, now charges) {
	if was.queue == now.queue && was.local == now.local && was.count == now.count && slices.Equal(was.held, now.held) {
		return
	}
	e.count(was, -1)
	e.count(now, 1)
	if was.count.unready && e.unready == 0 && e.options.BlockUntilReady == BlockAll {
		for _, f := range e.families {
			f.put() // all of them waited for this one
		}
	}
	if e.options.AdmissionFairSharing != nil && !slices.Equal(was.held, now.held) {
		e.stand(was.local)
		e.stand(now.local)
	}
}

func (e *Engine) count(c charges, sign int) {
	if q := c.queue; q != nil {
		q.add(c.count, c.held, sign)
		if c.count.unready {
			q.unready += sign
			e.unready += sign
		}
		if c.count.leaving {
			q.leaving += sign
		}
		if f := q.family; f != nil && (c.count.leaving || c.count.unready) && sign < 0 {
			f.put()
		}
		e.touched.Insert(q.Name)
	}
	if c.local != nil {
		c.local.add(c.count, c.held, sign)
		e.touchedLocal.Insert(c.local.Key)
	}
}

// TakeTouched returns the queues whose usage or counts may have changed since it was
// last called, in the order of names.
func (e *Engine) TakeTouched() (clusterQueues []string, localQueues []Key) {
	clusterQueues = sets.List(e.touched)
	localQueues = e.touchedLocal.UnsortedList()
	slices.SortFunc(localQueues, order.CompareKeys)
	e.touched.Clear()
	e.touchedLocal.Clear()
	return clusterQueues, localQueues
}

// touchQueue notes that a ClusterQueue, and so the LocalQueues that lead to it, may
// admit where it could not before, or the other way round.
func (e *Engine) touchQueue(name string) {
	e.touched.Insert(name)
	for key := range e.queue(name).locals {
		e.touchedLocal.Insert(key)
	}
}

// Usage is what a queue has given out, and to how many.
type Usage struct {
	// Reserved is what is held, Used the part of it that admitted workloads use.
	Reserved, Used map[quota.FlavorResource]int64
	// Pending wait, Reserving hold quota, and Admitted of these may run.
	Pending, Reserving, Admitted int
	// Cyclic says that the cohorts above the queue form a cycle: it has no quota.
	Cyclic bool
	// Share is that of a ClusterQueue beside its siblings, in thousandths; nil while shares
	// are not compared.
	Share *int64
	// Consumption is that of a LocalQueue; nil while it is not compared.
	Consumption *Consumption
}

// QueueUsage returns the usage of a ClusterQueue; ok is false if it does not exist.
func (e *Engine) QueueUsage(name string) (u Usage, ok bool) {
	q := e.queues[name]
	if q == nil || !q.exists {
		return Usage{}, false
	}
	u = e.usageOf(q.tally)
	node := e.tree.Queue(name)
	u.Cyclic, u.Share = node.Cyclic(), e.shareOf(node)
	return u, true
}

// LocalQueueUsage is the same for a LocalQueue; what others of the same ClusterQueue
// have is not in it.
func (e *Engine) LocalQueueUsage(key Key) (u Usage, ok bool) {
	l := e.localQueues[key]
	if l == nil || !l.exists {
		return Usage{}, false
	}
	u = e.usageOf(l.tally)
	u.Consumption = e.consumptionOf(l)
	return u, true
}

func (e *Engine) usageOf(t tally) Usage {
	return Usage{
		Reserved: e.named(t.reserved), Used: e.named(t.used),
		Pending: t.pending, Reserving: t.reserving, Admitted: t.admitted,
	}
}

func (e *Engine) named(all sums) map[quota.FlavorResource]int64 {
	out := make(map[quota.FlavorResource]int64, len(all))
	for i, sum := range all {
		out[e.tree.Name(i)] = sum.Value()
	}
	return out
}
