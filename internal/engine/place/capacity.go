package place

import (
	"math"

	"github.com/musterhq/muster/internal/engine/quota"
)

// Empty is the ledger of what would be used if all work had ended and no node were cordoned.
const Empty Ledger = 2

// book is a set of charges that are summed up per node. Ledgers are computed from books.
type book int

const (
	// held counts all pods that are present, and the absent pods of workloads that may use their places.
	held book = iota
	// planned counts all present and absent pods except the pods of workloads that are being evicted, and nominated
	// places.
	planned
	// resident counts the pods that stay even if all work has ended.
	resident

	books int = iota
)

// read lists the books of each ledger: the free amount of a ledger is the smallest of its books.
var read = [...][]book{Now: {held, planned}, Planned: {planned}, Empty: {resident}}

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

func abs(x int64) int64 { return max(x, -x) }

// allocate sets the allocatable amounts. It returns the resources that no node had before.
func (c *capacity) allocate(known *resources, amounts map[string]int64) (learned []string) {
	clear(c.allocatable)
	c.grow(0)
	for name, value := range amounts {
		if value > 0 {
			i, isNew := known.of(name)
			if isNew {
				learned = append(learned, name)
			}
			c.grow(i)
			c.allocatable[i] = value
		}
	}
	return learned
}

// addCount returns the sum of two counts, saturating at cap32.
func addCount(a, b int32) int32 { return int32(min(int64(a)+int64(b), cap32)) }

// cap32 limits the number of pods counted as fitting on a node, so that sums over all nodes do not
// overflow.
const cap32 = math.MaxInt32
