package place

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/musterhq/muster/internal/engine/quota"
)

// empty is the ledger of what would be taken if nothing ran but what belongs to the
// nodes.
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
	// resident has the pods that belong to the node.
	resident

	books int = iota
)

// read lists the books of a ledger: what is taken in any of them is taken.
var read = [...][]book{Now: {held, planned}, Planned: {planned}, empty: {resident}}

// resources gives each resource a dense index; Pods has the first.
type resources struct {
	index map[string]int32
	names []string
	// refusals say that there is none of a resource.
	refusals []string
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
		r.refusals = append(r.refusals, fmt.Sprintf("resource %q", name))
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
	for _, name := range slices.Sorted(maps.Keys(perPod)) {
		if value := perPod[name]; value > 0 && name != Pods {
			v = append(v, amount{m.resources.of(name), value})
		}
	}
	return v
}

// room is what a node has and what is taken of it, by resource.
type room struct {
	allocatable []int64
	taken       [books][]quota.Sum
	// free is allocatable less taken, below zero where too much is.
	free [books][]int64
}

// grow makes place for the resource.
func (r *room) grow(resource int32) {
	for int(resource) >= len(r.allocatable) {
		r.allocatable = append(r.allocatable, 0)
		for b := range r.taken {
			r.taken[b] = append(r.taken[b], quota.Sum{})
			r.free[b] = append(r.free[b], 0)
		}
	}
}

// charge adds what so many pods take to a book, or takes it away where they are fewer
// than none. Free is computed anew by settle.
func (r *room) charge(b book, v vector, pods int32) {
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

// settle computes what is free and tells whether anything changed, and whether any of
// it is more than before in what is decided by.
func (r *room) settle() (changed, grew bool) {
	for i, has := range r.allocatable {
		for b := range book(books) {
			left := quota.SumOf(has)
			left.Add(r.taken[b][i].Negative())
			free := left.Value()
			if free == r.free[b][i] {
				continue
			}
			changed = true
			grew = grew || free > r.free[b][i] && free > 0
			r.free[b][i] = free
		}
	}
	return changed, grew
}

// fit is how many pods there is room for, and the resource that bounds it: that of
// which there is none at all, or else the first of those that bound it most.
func (r *room) fit(v vector, on Ledger) (pods int64, bound int32) {
	pods, bound = cap32, -1
	for _, a := range v {
		fits := int64(0)
		if int(a.resource) < len(r.allocatable) {
			fits = r.left(a.resource, on) / a.value
		}
		if fits < pods {
			pods, bound = fits, a.resource
		}
	}
	return pods, bound
}

// left is what is free of a resource, never below zero.
func (r *room) left(resource int32, on Ledger) int64 {
	left := r.free[read[on][0]][resource]
	for _, b := range read[on][1:] {
		left = min(left, r.free[b][resource])
	}
	return max(0, left)
}

// over reports whether more is taken than there is.
func (r *room) over(b book) bool {
	return slices.ContainsFunc(r.free[b], func(free int64) bool { return free < 0 })
}

func abs(x int64) int64 { return max(x, -x) }

// conflicts reports whether both cannot be on one node.
func (p HostPort) conflicts(other HostPort) bool {
	return p.Port == other.Port && p.protocol() == other.protocol() && (p.any() || other.any() || p.IP == other.IP)
}

func (p HostPort) any() bool { return p.IP == "" || p.IP == "0.0.0.0" || p.IP == "::" }

func (p HostPort) protocol() string { return cmp.Or(string(p.Protocol), "TCP") }
