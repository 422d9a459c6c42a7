package quota

import (
	"math"
	"strconv"
	"strings"

	"gopkg.in/inf.v0"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Unlimited stands for a limit that is not set, and is where amounts saturate:
// nothing in this package overflows.
const Unlimited int64 = math.MaxInt64

// FromQuantity turns a quantity of the resource into an amount: thousandths for
// cpu, whole units (rounded up) for everything else. A quantity beyond the range
// saturates, a negative one included.
func FromQuantity(name corev1.ResourceName, q resource.Quantity) int64 {
	if name == corev1.ResourceCPU {
		return scaled(q, resource.Milli)
	}
	return scaled(q, 0)
}

// ToQuantity is the inverse of FromQuantity, in the format that people write for
// the resource.
func ToQuantity(name corev1.ResourceName, amount int64) resource.Quantity {
	switch {
	case name == corev1.ResourceCPU:
		return *resource.NewMilliQuantity(amount, resource.DecimalSI)
	case isBytes(name, amount):
		return *resource.NewQuantity(amount, resource.BinarySI)
	default:
		return *resource.NewQuantity(amount, resource.DecimalSI)
	}
}

// leastBytes is the least amount that is taken for bytes by the look of it: there are resources that count Mi, and nobody has as many.
const leastBytes = 1 << 30

// isBytes reports whether so much of the resource is an amount of bytes: of resources that only their users know, such as the memory of
// GPUs, by the look of it, for nobody has that many whole Mi of anything else.
func isBytes(name corev1.ResourceName, amount int64) bool {
	return name == corev1.ResourceMemory || name == corev1.ResourceEphemeralStorage || strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix) ||
		max(amount, -amount) >= leastBytes && amount%(1<<20) == 0
}

// largestCount is the largest number that is still read faster than what the API makes of it.
const largestCount = 1_000_000

// Number writes a quantity for people: what is counted as it is counted, 1000 where the API says 1k.
func Number(q resource.Quantity) string {
	if n := q.Value(); q.CmpInt64(n) == 0 && q.Format == resource.DecimalSI && -largestCount < n && n < largestCount {
		return strconv.FormatInt(n, 10)
	}
	return q.String()
}

// Add is a+b, saturating.
func Add(a, b int64) int64 {
	sum := a + b
	switch {
	case a > 0 && b > 0 && sum < 0:
		return math.MaxInt64
	case a < 0 && b < 0 && sum >= 0:
		return math.MinInt64
	}
	return sum
}

// Sub is a-b, saturating. Unlimited less anything stays Unlimited.
func Sub(a, b int64) int64 {
	if a == Unlimited {
		return Unlimited
	}
	if b == math.MinInt64 {
		return Add(Add(a, 1), math.MaxInt64)
	}
	return Add(a, -b)
}

// Times is amount × count, saturating. Neither may be negative.
func Times(amount int64, count int32) int64 {
	if amount == 0 || count == 0 {
		return 0
	}
	if amount > math.MaxInt64/int64(count) {
		return math.MaxInt64
	}
	return amount * int64(count)
}

// scaled is the value of q in units of 10^scale, rounded up. Quantity's own
// ScaledValue wraps around for values outside of int64, so those are cut here. The
// scale is Nano, Milli or 0.
func scaled(q resource.Quantity, scale resource.Scale) int64 {
	unit := int64(1)
	switch scale {
	case resource.Nano:
		unit = 1_000_000_000
	case resource.Milli:
		unit = 1000
	}
	if whole, ok := q.AsInt64(); ok && whole <= math.MaxInt64/unit && whole >= -math.MaxInt64/unit {
		return whole * unit // nearly all are; the rest costs ten times as much
	}
	value := q.AsDec()
	if q.Sign() == 0 {
		return 0
	}
	if beyond(value) {
		return int64(q.Sign()) * math.MaxInt64
	}
	limit := inf.NewDec(math.MaxInt64, inf.Scale(-scale))
	if value.Cmp(limit) >= 0 {
		return math.MaxInt64
	}
	if value.Cmp(new(inf.Dec).Neg(limit)) <= 0 {
		return -math.MaxInt64
	}
	// ScaledValue makes -1n a whole unit above zero.
	return new(inf.Dec).Round(value, inf.Scale(-scale), inf.RoundCeil).UnscaledBig().Int64()
}

// beyond reports whether a value other than zero has so many digits before the point
// that comparing it would take long: 1e2147483647 is a quantity, and to write it out
// takes longer than anybody waits.
func beyond(value *inf.Dec) bool {
	const bitsPerDigit, muchMoreThanInt64 = 3.3219, 30
	digits := float64(value.UnscaledBig().BitLen())/bitsPerDigit - float64(value.Scale())
	return digits > muchMoreThanInt64
}
