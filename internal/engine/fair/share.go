package fair

import (
	"cmp"
	"math"
	"math/big"
	"math/bits"

	"github.com/musterhq/muster/internal/engine/quota"
)

// Share is the part of what its parent could lend that a node borrows: the largest such part of any resource, over all
// flavors, divided by the weight of the node. The zero value is the share of a node that borrows nothing.
type Share struct {
	borrowed, lendable int64
	weight             quota.Weight
}

// Of returns the share of a node if it uses more than what is in the ledger.
func Of(n *quota.Node, l quota.Ledger, more quota.Vector) Share {
	s := Share{lendable: 1, weight: n.Weight()}
	parent := n.Parent()
	if parent == nil || n.Cyclic() {
		return Share{} // no cohort to borrow from
	}
	for _, flavors := range n.Resources() {
		var borrowed, lendable int64
		for _, i := range flavors {
			borrowed = quota.Add(borrowed, n.Over(l, i, more.Of(i)))
		}
		if borrowed == 0 {
			continue
		}
		for _, i := range flavors {
			lendable = quota.Add(lendable, parent.Capacity(i))
		}
		// After a cut of quota there may be nothing to lend: any usage is then a large part.
		lendable = max(1, lendable)
		if compareRatios(borrowed, lendable, s.borrowed, s.lendable) > 0 {
			s.borrowed, s.lendable = borrowed, lendable
		}
	}
	if s.borrowed == 0 {
		return Share{}
	}
	return s
}

// With returns the share of a node if a queue at or below it uses more than what is in the ledger.
func With(n *quota.Node, l quota.Ledger, queue *quota.Node, more quota.Vector) Share {
	for ; queue != n; queue = queue.Parent() {
		more = Passed(queue, l, more)
	}
	return Of(n, l, more)
}

// Passed returns the part of additional usage of a node that its parent has to lend.
func Passed(n *quota.Node, l quota.Ledger, more quota.Vector) quota.Vector {
	passed := make(quota.Vector, 0, len(more))
	for _, a := range more {
		if value := n.Passed(l, a.Index, a.Value); value != 0 {
			passed = append(passed, quota.Amount{Index: a.Index, Value: value})
		}
	}
	return passed
}

// Zero reports whether nothing is borrowed.
func (s Share) Zero() bool { return s.borrowed == 0 }

// Compare returns a negative number if s is less than other, a positive one if it is greater. A borrower of weight 0
// compares greater than any of another weight.
func (s Share) Compare(other Share) int {
	switch {
	case s.Zero() || other.Zero():
		return cmp.Compare(s.borrowed, other.borrowed)
	case s.weight == 0 && other.weight == 0:
		return compareRatios(s.borrowed, s.lendable, other.borrowed, other.lendable)
	case s.weight == 0:
		return 1
	case other.weight == 0:
		return -1
	}
	return product(s.borrowed, other.lendable, other.weight).compare(product(other.borrowed, s.lendable, s.weight))
}

// Thousandths returns the share in thousandths, as it is published, rounded up and saturating.
func (s Share) Thousandths() int64 {
	switch {
	case s.Zero():
		return 0
	case s.weight == 0:
		return math.MaxInt64
	}
	over := new(big.Int).Mul(big.NewInt(s.borrowed), big.NewInt(1000*int64(quota.One)))
	under := new(big.Int).Mul(big.NewInt(s.lendable), big.NewInt(int64(s.weight)))
	quotient, rest := over.QuoRem(over, under, new(big.Int))
	if rest.Sign() > 0 {
		quotient.Add(quotient, big.NewInt(1))
	}
	if !quotient.IsInt64() {
		return math.MaxInt64
	}
	return quotient.Int64()
}

// compareRatios compares a/b with c/d. None may be negative, and neither b nor d zero.
func compareRatios(a, b, c, d int64) int {
	return product(a, d, 1).compare(product(c, b, 1))
}

// wide is an unsigned 192-bit integer, most significant word first.
type wide [3]uint64

// product multiplies three non-negative factors.
func product(a, b int64, w quota.Weight) wide {
	high, low := bits.Mul64(uint64(a), uint64(b))
	carried, lowest := bits.Mul64(low, uint64(w))
	highest, middle := bits.Mul64(high, uint64(w))
	middle, carry := bits.Add64(middle, carried, 0)
	return wide{highest + carry, middle, lowest}
}

func (w wide) compare(y wide) int {
	return cmp.Or(cmp.Compare(w[0], y[0]), cmp.Compare(w[1], y[1]), cmp.Compare(w[2], y[2]))
}
