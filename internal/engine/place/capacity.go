package place

import (
	"github.com/musterhq/muster/internal/engine/quota"
)

const (
	// idle is the ledger of what would be used if all work had ended.
	idle Ledger = 2 + iota
	// empty is idle with no node cordoned.
	empty
)

// book is a set of charges that are summed up per node. Ledgers are computed from books.
type book int

const (
	// held counts all pods that are present, and the absent pods of workloads that may use their places.
	held book = iota
	// planned counts all present and absent pods except those of workloads that are being evicted, and
	// promised places.
	planned
	// resident counts the pods that stay even if all work has ended.
	resident

	books int = iota
)

// read lists the books of each ledger: the free amount of a ledger is the smallest of its books.
var read = [...][]book{Now: {held, planned}, Planned: {planned}, idle: {resident}, empty: {resident}}

// capacity holds the allocatable amounts of a node and the used amounts, by resource.
type capacity struct {
	allocatable []int64
	taken       [books][]quota.Sum
}

// grow extends the slices to include the resource.
func (c *capacity) grow(resource int32) {
	for int(resource) >= len(c.allocatable) {
		c.allocatable = append(c.allocatable, 0)
		for b := range c.taken {
			c.taken[b] = append(c.taken[b], quota.Sum{})
		}
	}
}

// charge adds the amounts of a number of pods to a book; a negative number takes them back. The caller
// must call settle to update the free amounts.
func (c *capacity) charge(b book, v vector, pods int32) {
	for _, a := range v {
		c.grow(a.resource)
		s := quota.Product(a.value, abs(int64(pods)))
		if pods < 0 {
			s = s.Negative()
		}
		c.taken[b][a.resource].Add(s)
	}
}

// free returns allocatable less used, negative if the node is overcommitted.
func (c *capacity) free(b book, resource int) int64 {
	left := quota.SumOf(c.allocatable[resource])
	left.Add(c.taken[b][resource].Negative())
	return left.Value()
}

// freeTable holds the free amounts and marks of all nodes by slot. Counts read one resource of many nodes
// in turn, so that these lie side by side in memory.
type freeTable struct {
	// free is indexed by book, resource and slot. Values beyond the end of a slice are zero.
	free  [books][][]int64
	marks []mark
}

// mark holds what else may keep pods off the node in a slot. The version is zero for an unused slot.
type mark struct {
	version                   uint64
	cordoned, avoided, ported bool
}

// of returns the free amount of a resource in a slot.
func (f *freeTable) of(b book, resource, slot int32) int64 {
	if int(resource) >= len(f.free[b]) || int(slot) >= len(f.free[b][resource]) {
		return 0
	}
	return f.free[b][resource][slot]
}

// set stores a free amount and returns the previous one.
func (f *freeTable) set(b book, resource, slot int32, free int64) (before int64) {
	if before = f.of(b, resource, slot); before == free {
		return before
	}
	for int(resource) >= len(f.free[b]) {
		f.free[b] = append(f.free[b], nil)
	}
	column := &f.free[b][resource]
	if missing := int(slot) + 1 - len(*column); missing > 0 {
		*column = append(*column, make([]int64, missing)...)
	}
	(*column)[slot] = free
	return before
}

// clear resets a slot.
func (f *freeTable) clear(slot int32) {
	for b := range f.free {
		for resource := range f.free[b] {
			f.set(book(b), int32(resource), slot, 0)
		}
	}
	f.marks[slot] = mark{}
}

// update copies the state of a node into its slot. It reports whether any amount changed, whether any
// grew, and whether any would be smaller if nothing but resident pods ran.
func (f *freeTable) update(n *node) (changed, grew, reduced bool) {
	for b := range book(books) {
		for i := range n.capacity.allocatable {
			free := n.capacity.free(b, i)
			if before := f.set(b, int32(i), n.slot, free); before != free {
				changed = true
				grew = grew || free > before // also while it stays negative: there may be some once others end
				reduced = reduced || b == resident && free < before
			}
		}
	}
	for int(n.slot) >= len(f.marks) {
		f.marks = append(f.marks, mark{})
	}
	f.marks[n.slot] = mark{n.version, n.Cordoned, n.avoided, len(n.ports) > 0}
	return changed, grew, reduced
}

// fit returns how many pods fit in a slot by resources, and the resource that limits the number: the first
// one of those that limit it most, -1 if none does.
func (f *freeTable) fit(v vector, on Ledger, slot int32) (pods int64, bound int32) {
	pods, bound = cap32, -1
	for _, a := range v {
		left := f.of(read[on][0], a.resource, slot)
		for _, b := range read[on][1:] {
			left = min(left, f.of(b, a.resource, slot))
		}
		fits := int64(0)
		if left >= a.value {
			fits = left / a.value
		}
		if fits < pods {
			pods, bound = fits, a.resource
		}
	}
	return pods, bound
}

// overcommitted reports whether more of any resource is used in a slot than the node has.
func (f *freeTable) overcommitted(b book, slot int32) bool {
	for resource := range f.free[b] {
		if f.of(b, int32(resource), slot) < 0 {
			return true
		}
	}
	return false
}

func abs(x int64) int64 { return max(x, -x) }
