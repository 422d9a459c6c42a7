package place

import (
	"github.com/musterhq/muster/internal/engine/order"
	"k8s.io/apimachinery/pkg/util/sets"
)

// changes records what has changed until the engine or a search asks.
type changes struct {
	catalog *catalog
	log     changeLog
	// trial is positive while charges are tentative and will be taken back, so that no change is recorded.
	trial int
	// toCheck holds the workloads whose places may have become invalid.
	toCheck sets.Set[order.Key]
	// freed holds the slots whose free capacity has grown, freedFlavors flavors that have changed themselves.
	freed        sets.Set[int32]
	freedFlavors sets.Set[string]
	// reduced holds the flavors whose nodes could hold less than before if they were empty.
	reduced sets.Set[string]
	// count counts changes outside of trials, resident the changes of pods that stay when all work has ended.
	count, resident uint64
}

func newChanges(catalog *catalog) *changes {
	return &changes{catalog: catalog, toCheck: sets.New[order.Key](), freed: sets.New[int32](),
		freedFlavors: sets.New[string](), reduced: sets.New[string]()}
}

// changeLog is the log of slots whose nodes changed. Tallies read it to update their counts.
type changeLog struct {
	slots []int32
	// first is the number of the first change that is kept. read is the number up to which a tally has read: later entries
	// may be merged.
	first, read uint64
}

// mostChanges bounds the length of the log. Tallies that fall behind count all nodes again.
const mostChanges = 1 << 16

// add records a change of a slot. A negative slot is ignored.
func (c *changeLog) add(slot int32) {
	if slot < 0 {
		return
	}
	if last := len(c.slots) - 1; last >= 0 && c.slots[last] == slot && c.next() > c.read {
		return // not read yet, so one entry is enough
	}
	if len(c.slots) >= mostChanges {
		half := len(c.slots) / 2
		c.first += uint64(half)
		c.slots = append(c.slots[:0], c.slots[half:]...)
	}
	c.slots = append(c.slots, slot)
}

// next returns the number of the next change.
func (c *changeLog) next() uint64 { return c.first + uint64(len(c.slots)) }

// markRead records that a reader has seen all changes, and returns the number of the next one.
func (c *changeLog) markRead() uint64 { c.read = c.next(); return c.read }

// since returns the changes from a number on; ok is false if some of these changes have been dropped.
func (c *changeLog) since(number uint64) (slots []int32, ok bool) {
	c.read = c.next()
	if number < c.first {
		return nil, false
	}
	return c.slots[number-c.first:], true
}

// begin starts a trial, and end ends it.
func (c *changes) begin() { c.trial++ }
func (c *changes) end()   { c.trial-- }

// happened records that something changed.
func (c *changes) happened() {
	if c.trial == 0 {
		c.count++
	}
}

// residentHappened records that pods changed that stay when all work has ended.
func (c *changes) residentHappened() { c.resident++ }

// check marks a workload for a check of its places.
func (c *changes) check(workload order.Key) {
	if c.trial == 0 {
		c.toCheck.Insert(workload)
	}
}

// takeToCheck returns the workloads that were marked for a check since the last call.
func (c *changes) takeToCheck() sets.Set[order.Key] {
	out := c.toCheck
	c.toCheck = sets.New[order.Key]()
	return out
}

// takeReduced returns, sorted, the flavors whose nodes could hold less than at the last call.
func (c *changes) takeReduced() []string {
	out := sets.List(c.reduced)
	clear(c.reduced)
	return out
}

// takeFreed returns, sorted, the flavors whose nodes have more free capacity than at the last call. slots are the
// nodes.
func (c *changes) takeFreed(slots []*node) []string {
	out := c.freedFlavors
	c.freedFlavors = sets.New[string]()
	for slot := range c.freed {
		n := slots[slot]
		if n == nil {
			continue
		}
		for name, f := range c.catalog.flavors {
			if !out.Has(name) && within(f.NodeLabels, n.Labels) {
				out.Insert(name)
			}
		}
	}
	clear(c.freed)
	for name := range out {
		if !c.catalog.isPlaced(name) {
			out.Delete(name)
		}
	}
	return sets.List(out)
}

// redefined records that topologies or flavors changed. They change so seldom that the effects of a single change are
// not tracked.
func (c *changes) redefined() {
	c.count++
	for name := range c.catalog.flavors {
		if c.catalog.isPlaced(name) {
			c.freedFlavors.Insert(name)
			c.reduced.Insert(name)
		}
	}
}

// markFreed records that the node has more free capacity.
func (c *changes) markFreed(n *node) {
	if c.trial == 0 {
		c.count++
		c.freed.Insert(n.slot)
	}
}

// markReduced records that a node with these labels could hold less than before, or is gone.
func (c *changes) markReduced(labels map[string]string) {
	for name, f := range c.catalog.flavors {
		if c.catalog.isPlaced(name) && within(f.NodeLabels, labels) {
			c.reduced.Insert(name)
		}
	}
}

// recheck marks the workloads that have places on the host for a check of these places.
func (c *changes) recheck(h *host) {
	if c.trial > 0 || h == nil {
		return
	}
	for _, hp := range h.places {
		c.check(hp.holder.key)
	}
}

// freeAll records that the domains of labels that were forgotten may be free now: jobs may wait for one.
func (c *changes) freeAll() {
	if c.trial > 0 {
		return
	}
	c.count++
	for name := range c.catalog.flavors {
		if c.catalog.isPlaced(name) {
			c.freedFlavors.Insert(name)
		}
	}
}
