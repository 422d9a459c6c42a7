package state

import (
	"slices"

	"github.com/musterhq/muster/internal/engine/calendar"
	"github.com/musterhq/muster/internal/engine/order"
	"github.com/musterhq/muster/internal/engine/quota"
	"github.com/musterhq/muster/internal/engine/waiting"
)

// Family is all queues of one tree of cohorts: what one of them releases, another may take.
type Family struct {
	Name   string
	Queues []*ClusterQueue
	Agenda *Agenda
	// Version changes with every decision, which invalidates the outcomes found before it.
	Version int
	// Waits is what the waiting room knows of the family.
	Waits *waiting.Family
	// Dirty is set while the family is on the agenda.
	Dirty bool
	// Unsorted marks, while a pass looks for them, the families that wait until workloads are routed again.
	Unsorted bool
	// Listings counts the changes of the lists of workloads whose size may change.
	Listings int
	// Nominated are the workloads that wait for evicted ones to release quota.
	Nominated order.Queue
	// Backfills is set if any of its queues plans starts. Calendar then has the workloads that run in the family, and
	// Reserved the planned starts, the first in order first.
	Backfills bool
	Calendar  *calendar.Calendar
	Reserved  []*Reservation
	// Planned is set once the engine has looked at all its queues, or at one of them in an earlier family.
	Planned bool
	// Promised are its workloads with a promised start: few, as only the first start of a family is promised.
	Promised map[order.Key]*Workload
	// HinderedIn is the state in which the first start was last planned anew since it had become possible, or
	// impossible, to promise it: once in each state.
	HinderedIn waiting.State
	// SpareGrew is set if a workload that was to run beyond a planned start has ended: others may pass now.
	SpareGrew bool
}

// Agenda lists the families with work to do.
type Agenda []*Family

// Enqueue adds the family, nil for none, to the agenda.
func (f *Family) Enqueue() {
	if f != nil && !f.Dirty {
		f.Dirty = true
		*f.Agenda = append(*f.Agenda, f)
	}
}

// IsUnplanned reports whether queues of the family plan starts, and the engine has not looked at them yet.
func (f *Family) IsUnplanned() bool { return f.Backfills && !f.Planned }

// First returns the rank of the first of its workloads that wait to be evaluated; ok is false if none does.
func (f *Family) First() (first order.Rank, ok bool) {
	for _, q := range f.Queues {
		if c := q.Waits.First(); c != nil && (!ok || order.Compare(c.Head(), first) < 0) {
			first, ok = c.Head(), true
		}
	}
	return first, ok
}

// PlansStartOf reports whether the workload has a planned start. The family may be nil.
func (f *Family) PlansStartOf(key order.Key) bool {
	return f != nil && slices.ContainsFunc(f.Reserved, func(r *Reservation) bool { return r.Rank.Key == key })
}

// Recharged notes that something of the queue was charged or released.
func (cq *ClusterQueue) Recharged() {
	if cq != nil && cq.Family != nil {
		cq.Family.Waits.UsageChanged()
	}
}

// Released notes that there may be more of the amounts for others.
func (cq *ClusterQueue) Released(amounts []quota.Index) {
	if cq.Family != nil {
		cq.Family.Waits.Released(amounts)
	}
}

// Leaving counts the evicted workloads that still hold quota.
func (f *Family) Leaving() (n int) {
	for _, q := range f.Queues {
		n += q.Leaving
	}
	return n
}

// FamilyName returns a name made from the root of the queue's tree, "" if it is in none.
func (cq *ClusterQueue) FamilyName() string {
	switch {
	case cq.Node == nil:
		return ""
	case cq.Node.Root().IsQueue():
		return "queue/" + cq.Name
	default:
		return "cohort/" + cq.Node.Root().Name()
	}
}
