package place

import (
	"cmp"

	"github.com/musterhq/muster/internal/engine/quota"
)

// empty is the ledger of what would be taken if all work had ended.
const empty Ledger = 2

// book is what is summed up of a node; ledgers are read from books.
type book int

const (
	// held has all pods that are there, and the absent ones of those who may use their
	// places.
	held book = iota
	// planned has all pods and absent ones but of those who are leaving, and promised
	// places.
	planned
	// resident has the pods that stay though all work ends.
	resident

	books int = iota
)

// read lists the books of a ledger: what is taken in any of them is taken.
var read = [...][]book{Now: {held, planned}, Planned: {planned}, empty: {resident}}

// resources gives each resource a dense index; Pods has the first.
type resources struct {
	index map[string]int32
	names []string
}

func newResources() resources {
	r := resources{index: map[string]int32{}}
	r.of(Pods)
	return r
}

func (r *resources) of(name string) int32 {
	i, ok := r.index[name]
	if !ok {
		i = int32(len(r.names))
		r.index[name] = i
		r.names = append(r.names, name)
	}
	return i
}

// amount is so much of one resource.
type amount struct {
	resource int32
	value    int64
}

// vector is what one pod takes: the resources by name, without zeros, but for the
// place itself, which is first.
type vector []amount

// vector takes what is below zero for zero: no node has more room for it.
func (m *Map) vector(perPod map[string]int64) vector {
	v := make(vector, 1, len(perPod)+1)
	v[0] = amount{0, 1}
	var names [few]string
	for _, name := range namesOf(perPod, names[:0]) {
		if value := perPod[name]; value > 0 && name != Pods {
			v = append(v, amount{m.resources.of(name), value})
		}
	}
	return v
}

// room is what a node has and what is taken of it, by resource.
type capacity struct {
	allocatable []int64
	taken       [books][]quota.Sum
}

// grow makes place for the resource.
func (r *capacity) grow(resource int32) {
	for int(resource) >= len(r.allocatable) {
		r.allocatable = append(r.allocatable, 0)
		for b := range r.taken {
			r.taken[b] = append(r.taken[b], quota.Sum{})
		}
	}
}

// charge adds what so many pods take to a book, or takes it away where they are fewer
// than none. What is free is said by settle.
func (r *capacity) charge(b book, v vector, pods int32) {
	if len(v) > 0 {
		for _, a := range v {
			r.grow(a.resource)
		}
	}
	for _, a := range v {
		s := quota.Product(a.value, abs(int64(pods)))
		if pods < 0 {
			s = s.Negative()
		}
		r.taken[b][a.resource].Add(s)
	}
}

// free is allocatable less taken, below zero where too much is.
func (r *capacity) free(b book, resource int) int64 {
	left := quota.SumOf(r.allocatable[resource])
	left.Add(r.taken[b][resource].Negative())
	return left.Value()
}

// sheet is what counts are made of, by the slots of nodes: those that are counted one
// after the other lie side by side.
type freeTable struct {
	// free is by resource, then by slot; what is beyond its ends is zero.
	free  [books][][]int64
	marks []mark
}

// mark is what else bars pods from the node in a slot; its version is zero where there
// is none.
type mark struct {
	version                   uint64
	cordoned, avoided, ported bool
}

// of is what is free of a resource in a slot.
func (s *freeTable) of(b book, resource, slot int32) int64 {
	if int(resource) >= len(s.free[b]) || int(slot) >= len(s.free[b][resource]) {
		return 0
	}
	return s.free[b][resource][slot]
}

// set says what is free, and what was before.
func (s *freeTable) set(b book, resource, slot int32, free int64) (before int64) {
	if before = s.of(b, resource, slot); before == free {
		return before
	}
	for int(resource) >= len(s.free[b]) {
		s.free[b] = append(s.free[b], nil)
	}
	column := &s.free[b][resource]
	if missing := int(slot) + 1 - len(*column); missing > 0 {
		*column = append(*column, make([]int64, missing)...)
	}
	(*column)[slot] = free
	return before
}

// clear forgets the node of a slot.
func (s *freeTable) clear(slot int32) {
	for b := range s.free {
		for resource := range s.free[b] {
			s.set(book(b), int32(resource), slot, 0)
		}
	}
	s.marks[slot] = mark{}
}

// note takes over what a node says, and tells whether anything changed, whether any of it
// is more than before, and whether any would be less if nothing ran.
func (s *freeTable) update(n *node) (changed, grew, reduced bool) {
	for b := range book(books) {
		for i := range n.capacity.allocatable {
			free := n.capacity.free(b, i)
			if before := s.set(b, int32(i), n.slot, free); before != free {
				changed = true
				grew = grew || free > before // from too little to none, too: there may be some once others go
				reduced = reduced || b == resident && free < before
			}
		}
	}
	for int(n.slot) >= len(s.marks) {
		s.marks = append(s.marks, mark{})
	}
	s.marks[n.slot] = mark{n.version, n.Cordoned, n.avoided, len(n.ports) > 0}
	return changed, grew, reduced
}

// fit is how many pods there is room for in a slot, and the resource that bounds it:
// that of which there is none at all, or else the first of those that bound it most.
func (s *freeTable) fit(v vector, on Ledger, slot int32) (pods int64, bound int32) {
	pods, bound = cap32, -1
	for _, a := range v {
		left := s.of(read[on][0], a.resource, slot)
		for _, b := range read[on][1:] {
			left = min(left, s.of(b, a.resource, slot))
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

// over reports whether more is taken in a slot than there is.
func (s *freeTable) overcommitted(b book, slot int32) bool {
	for resource := range s.free[b] {
		if s.of(b, int32(resource), slot) < 0 {
			return true
		}
	}
	return false
}

func abs(x int64) int64 { return max(x, -x) }

// conflicts reports whether both cannot be on one node.
func (p HostPort) conflicts(other HostPort) bool {
	return p.Port == other.Port && p.protocol() == other.protocol() && (p.any() || other.any() || p.IP == other.IP)
}

func (p HostPort) any() bool { return p.IP == "" || p.IP == "0.0.0.0" || p.IP == "::" }

func (p HostPort) protocol() string { return cmp.Or(string(p.Protocol), "TCP") }
