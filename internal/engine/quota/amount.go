package quota

import (
	"math"
	"strconv"
	"strings"

	"gopkg.in/inf.v0"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Unlimited stands for a limit that is not set, and is the value at which amounts saturate: nothing in this package
// overflows.
const Unlimited int64 = math.MaxInt64

// FromQuantity converts a quantity of the resource to an amount: thousandths for cpu, whole units (rounded up) for
// everything else. Quantities out of range saturate, negative ones too.
func FromQuantity(name corev1.ResourceName, q resource.Quantity) int64 {
	if name == corev1.ResourceCPU {
		return scaled(q, resource.Milli)
	}
	return scaled(q, 0)
}

// ToQuantity reverses FromQuantity, in the format that users write for the resource.
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

// leastBytes is the smallest amount that is taken for bytes by its value alone: some resources count Mi, but none
// reaches this number of them.
const leastBytes = 1 << 30

// isBytes reports whether this amount of the resource is formatted as bytes. For custom resources, such as the memory
// of GPUs, the value decides: a large whole number of Mi is hardly anything else.
func isBytes(name corev1.ResourceName, amount int64) bool {
	return name == corev1.ResourceMemory || name == corev1.ResourceEphemeralStorage ||
		strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix) ||
		max(amount, -amount) >= leastBytes && amount%(1<<20) == 0
}

// largestCount is the largest number that is easier to read in full than with the suffix that the API uses.
const largestCount = 1_000_000

// Number formats a quantity for users, with counts in full: 1000 where the API says 1k.
func Number(q resource.Quantity) string {
	if q.Sign() == 0 {
		return "0"
	}
	if _, whole := q.AsInt64(); !whole && beyond(q.AsDec()) {
		return map[int]string{1: "1e30", -1: "-1e30"}[q.Sign()] // as far as beyond tells numbers apart
	}
	if n := q.Value(); q.CmpInt64(n) == 0 && q.Format == resource.DecimalSI && -largestCount < n && n < largestCount {
		return strconv.FormatInt(n, 10)
	}
	return q.String()
}

// Add returns a+b, saturating.
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

// Sub returns a-b, saturating. Unlimited minus anything stays Unlimited.
func Sub(a, b int64) int64 {
	if a == Unlimited {
		return Unlimited
	}
	if b == math.MinInt64 {
		return Add(Add(a, 1), math.MaxInt64)
	}
	return Add(a, -b)
}

// Times returns amount × count, saturating. Neither may be negative.
func Times(amount int64, count int32) int64 {
	if amount == 0 || count == 0 {
		return 0
	}
	if amount > math.MaxInt64/int64(count) {
		return math.MaxInt64
	}
	return amount * int64(count)
}

// scaled returns the value of q in units of 10^scale, rounded up; scale is Nano, Milli or 0. Quantity's own
// ScaledValue wraps around for values outside of int64, so these are clamped here.
func scaled(q resource.Quantity, scale resource.Scale) int64 {
	if q.Sign() == 0 {
		return 0 // before any arithmetic, which takes long for 0e2147483647
	}
	unit := int64(1)
	switch scale {
	case resource.Nano:
		unit = 1_000_000_000
	case resource.Milli:
		unit = 1000
	}
	if whole, ok := q.AsInt64(); ok && whole <= math.MaxInt64/unit && whole >= -math.MaxInt64/unit {
		return whole * unit // the common case; the rest takes ten times as long
	}
	value := q.AsDec()
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

// beyond reports whether a value other than zero has so many digits before the decimal point that comparing it would
// take too long: 1e2147483647 is a valid quantity.
func beyond(value *inf.Dec) bool {
	const bitsPerDigit, muchMoreThanInt64 = 3.3219, 30
	digits := float64(value.UnscaledBig().BitLen())/bitsPerDigit - float64(value.Scale())
	return digits > muchMoreThanInt64
}
