package quota

import (
	"math"
	"math/bits"
)

// Sum adds up amounts without loss: what was added can be subtracted again, even if the total exceeds the range of an
// amount. The zero value is zero.
type Sum struct {
	hi int64
	lo uint64
}

// SumOf returns the amount as a Sum.
func SumOf(amount int64) Sum { return Sum{hi: amount >> 63, lo: uint64(amount)} }

// Product returns amount × count. Neither may be negative.
func Product(amount, count int64) Sum {
	hi, lo := bits.Mul64(uint64(amount), uint64(count))
	return Sum{hi: int64(hi), lo: lo}
}

// Negative returns the negated sum.
func (s Sum) Negative() Sum {
	lo, borrow := bits.Sub64(0, s.lo, 0)
	return Sum{hi: -s.hi - int64(borrow), lo: lo}
}

// Add adds other to s.
func (s *Sum) Add(other Sum) {
	var carry uint64
	s.lo, carry = bits.Add64(s.lo, other.lo, 0)
	s.hi += other.hi + int64(carry)
}

// Value returns the total, saturating.
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
