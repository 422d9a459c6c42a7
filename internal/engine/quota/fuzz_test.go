package quota

import (
	"math"
	"math/big"
	"regexp"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// hugeInteger matches integers with such an exponent that the parser accepts quickly.
var hugeInteger = regexp.MustCompile(`^-?[1-9][0-9]*[eE][0-9]+$`)

// slowToParse matches numbers that the parser of quantities itself expands. An API server or operator that gets one
// hangs before it reaches this code.
var slowToParse = regexp.MustCompile(`[eE][+-]?0*[0-9]{4,}`)

// FuzzFromQuantity: an amount has the sign of its quantity, is not less than it unless it saturates, and survives the
// conversion back.
func FuzzFromQuantity(f *testing.F) {
	for _, text := range []string{"0", "1", "-1", "1500m", "0.0001", "1n", "-1n", "1e30", "-1e30", "1e-30", "1e999",
		"1e2147483647", "-1e2147483647", "0e999", "8Ei", "1E", "9223372036854775807", "-9223372036854775807",
		"9223372036854775808", "9223372036854775807m", "9223372036854775.807", "9223372036854775.808",
		"-9223372036854775.808"} {
		f.Add(text, true)
		f.Add(text, false)
	}
	f.Fuzz(func(t *testing.T, text string, cpu bool) {
		if len(text) > 40 || slowToParse.MatchString(text) && !hugeInteger.MatchString(text) {
			t.Skip("a long number is not an extreme one")
		}
		q, err := resource.ParseQuantity(text)
		if err != nil {
			t.Skip("no quantity")
		}
		name, unit := corev1.ResourceMemory, resource.Scale(0)
		if cpu {
			name, unit = corev1.ResourceCPU, resource.Milli
		}
		amount := FromQuantity(name, q)
		if q.Sign() > 0 && amount <= 0 || q.Sign() < 0 && amount > 0 || q.Sign() == 0 && amount != 0 {
			t.Fatalf("%s of %s is converted to %d, which has another sign", q.String(), name, amount)
		}
		saturated := amount == math.MaxInt64 || amount == -math.MaxInt64
		if exact := resource.NewScaledQuantity(amount, unit); !saturated && exact.Cmp(q) < 0 {
			t.Fatalf("%s of %s is converted to %d, which is less", q.String(), name, amount)
		}
		if again := FromQuantity(name, ToQuantity(name, amount)); again != amount {
			t.Fatalf("%s of %s is converted to %d, and after a round trip to %d", q.String(), name, amount, again)
		}
	})
}

// FuzzAmounts: sums, differences and products equal those of big integers, clamped to the range.
func FuzzAmounts(f *testing.F) {
	ends := []int64{0, 1, -1, math.MaxInt64, math.MaxInt64 - 1, math.MinInt64, math.MinInt64 + 1, -math.MaxInt64,
		1 << 62, -1 << 62}
	for _, a := range ends {
		for _, b := range ends {
			f.Add(a, b, int32(3))
			f.Add(a, b, int32(math.MaxInt32))
		}
	}
	f.Fuzz(func(t *testing.T, a, b int64, count int32) {
		x, y := big.NewInt(a), big.NewInt(b)
		if got, want := Add(a, b), cut(new(big.Int).Add(x, y)); got != want {
			t.Errorf("%d + %d = %d, want %d", a, b, got, want)
		}
		if got, want := Sub(a, b), cut(new(big.Int).Sub(x, y)); got != want && a != Unlimited {
			t.Errorf("%d - %d = %d, want %d", a, b, got, want)
		}
		if a < 0 || count < 0 {
			return // counts are never negative
		}
		if got, want := Times(a, count), cut(new(big.Int).Mul(x, big.NewInt(int64(count)))); got != want {
			t.Errorf("%d × %d = %d, want %d", a, count, got, want)
		}
	})
}

func cut(x *big.Int) int64 {
	switch {
	case x.IsInt64():
		return x.Int64()
	case x.Sign() < 0:
		return math.MinInt64
	}
	return math.MaxInt64
}
