package quota

import (
	"math"
	"math/bits"
)

// Sum adds up amounts without ever losing one: what was added can be taken away
// again, even where the total is beyond what an amount can say. The zero value is
// zero.
type Sum struct {
	hi int64
	lo uint64
}

// SumOf is the amount as a Sum.
func SumOf(amount int64) Sum { return Sum{hi: amount >> 63, lo: uint64(amount)} }

// Product is amount × count. Neither may be negative.
func Product(amount, count int64) Sum {
	hi, lo := bits.Mul64(uint64(amount), uint64(count))
	return Sum{hi: int64(hi), lo: lo}
}

// Negative is zero less the sum.
func (s Sum) Negative() Sum {
	lo, borrow := bits.Sub64(0, s.lo, 0)
	return Sum{hi: -s.hi - int64(borrow), lo: lo}
}

// Add adds the other to s.
func (s *Sum) Add(other Sum) {
	var carry uint64
	s.lo, carry = bits.Add64(s.lo, other.lo, 0)
	s.hi += other.hi + int64(carry)
}

// Value is the total, saturating.
func (s Sum) Value() int64 {
	switch {
	case s.hi == 0 && s.lo <= math.MaxInt64:
		return int64(s.lo)
	case s.hi == -1 && s.lo > math.MaxInt64:
		return int64(s.lo)
	case s.hi < 0:
		return math.MinInt64
	default:
		return math.MaxInt64
	}
}
