package engine

import (
	"github.com/musterhq/muster/internal/engine/order"
	"github.com/musterhq/muster/internal/engine/quota"
	"github.com/musterhq/muster/internal/engine/waiting"
)

// family is all queues of one tree of cohorts: what one of them releases, another may take.
type family struct {
	name   string
	queues []*clusterQueue
	agenda *agenda
	// version changes with every decision, which invalidates the outcomes found before it.
	version int
	// waits is what the waiting room knows of the family.
	waits *waiting.Family
	// dirty is set while the family is on the agenda.
	dirty bool
	// unsorted marks, while a pass looks for them, the families that wait until workloads are routed again.
	unsorted bool
	// listings counts the changes of the lists of workloads whose size may change.
	listings int
	// promised are the workloads that wait for evicted ones to release quota.
	nominated order.Queue
}

// agenda lists the families with work to do.
type agenda []*family

// enqueue adds the family to the agenda.
func (f *family) enqueue() {
	if !f.dirty {
		f.dirty = true
		*f.agenda = append(*f.agenda, f)
	}
}

// recharged notes that something of the queue was charged or released.
func (cq *clusterQueue) recharged() {
	if cq != nil && cq.family != nil {
		cq.family.waits.UsageChanged()
	}
}

// released notes that there may be more of the amounts for others.
func (cq *clusterQueue) released(amounts []quota.Index) {
	if cq.family != nil {
		cq.family.waits.Released(amounts)
	}
}

// leaving counts the evicted workloads that still hold quota.
func (f *family) leaving() (n int) {
	for _, q := range f.queues {
		n += q.leaving
	}
	return n
}

// familyName returns a name made from the root of the queue's tree, "" if it is in none.
func (cq *clusterQueue) familyName() string {
	switch {
	case cq.node == nil:
		return ""
	case cq.node.Root().IsQueue():
		return "queue/" + cq.Name
	default:
		return "cohort/" + cq.node.Root().Name()
	}
}
