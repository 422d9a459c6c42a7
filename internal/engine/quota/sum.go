package quota

import (
	"math"
	"math/bits"
)

// sum adds up amounts without ever losing one: what was added can be taken away
// again, even where the total is beyond what an amount can say.
type sum struct {
	hi int64
	lo uint64
}

func sumOf(amount int64) sum { return sum{hi: amount >> 63, lo: uint64(amount)} }

func (s *sum) add(other sum) {
	var carry uint64
	s.lo, carry = bits.Add64(s.lo, other.lo, 0)
	s.hi += other.hi + int64(carry)
}

// value is the total, saturating.
func (s sum) value() int64 {
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
