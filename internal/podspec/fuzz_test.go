package podspec

import (
	"regexp"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// extremes are valid quantities that are difficult for arithmetic.
var extremes = []string{"0", "1", "-1", "0.0001", "1n", "1e30", "-1e30", "1e2147483647",
	"-1e2147483647", "0e2147483647", "9223372036854775807", "-9223372036854775808", "9223372036854775807m",
	"9223372036854775808", "1E", "8Ei", "1e-30", "999999999999999999999999999999.9"}

// FuzzExtremeQuantities: whatever two containers request, a range limits and an output counts as, the result comes
// quickly, is not negative unless an input is, and is the same when computed again.
func FuzzExtremeQuantities(f *testing.F) {
	for i, request := range extremes {
		f.Add(request, extremes[(i+1)%len(extremes)], extremes[(i+5)%len(extremes)], extremes[(i+11)%len(extremes)])
	}
	f.Fuzz(func(t *testing.T, request, limit, bound, factor string) {
		var given [4]resource.Quantity
		for i, text := range []string{request, limit, bound, factor} {
			if len(text) > 40 {
				t.Skip("the number is long, not extreme")
			}
			q, ok := parse(text)
			if !ok {
				t.Skip("not a quantity")
			}
			given[i] = q
		}
		one := func(i int) corev1.ResourceList { return corev1.ResourceList{corev1.ResourceCPU: given[i]} }
		site := ranges(limitRange("lr",
			corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, Min: one(2), Max: one(2), MaxLimitRequestRatio: one(2),
				Default: one(2), DefaultRequest: one(2)},
			corev1.LimitRangeItem{Type: corev1.LimitTypePod, Min: one(2), Max: one(2), MaxLimitRequestRatio: one(2)}))
		counting := Counting{Transformations: map[corev1.ResourceName]Transformation{corev1.ResourceCPU: {Outputs: one(3),
			MultiplyBy: corev1.ResourceCPU}}}
		spec := corev1.PodSpec{
			InitContainers: []corev1.Container{sidecar(one(1), nil)},
			Containers:     []corev1.Container{with(one(0), one(1)), with(nil, nil)},
			Overhead:       one(0),
		}
		began := time.Now()
		count := func() (resource.Quantity, string) {
			stored := site.Stored(&spec)
			return counting.Count(Total(stored))[corev1.ResourceCPU], Message(site.Check(0, "workers", &spec, stored))
		}
		total, message := count()
		again, messageAgain := count()
		if took := time.Since(began); took > 10*time.Second { // far more than a slow machine needs
			t.Errorf("it took %v, want less than 10 s", took)
		}
		if total.Cmp(again) != 0 || message != messageAgain {
			t.Errorf("results differ: %s and %q, then %s and %q", total.String(), message, again.String(), messageAgain)
		}
		negative := false
		for _, q := range given {
			negative = negative || q.Sign() < 0
		}
		if !negative && total.Sign() < 0 {
			t.Errorf("total = %s, want none below zero", total.String())
		}
	})
}

// extremeExponent matches exponents that only some numbers may have. The parser itself expands numbers far below one:
// an API server or operator that gets one hangs before it reaches this code.
var extremeExponent = regexp.MustCompile(`[eE][+-]?0*[0-9]{4,}`)

// hugeInteger matches the numbers with such an exponent that the parser accepts quickly.
var hugeInteger = regexp.MustCompile(`^-?[1-9][0-9]*[eE][0-9]+$`)

// parse is ParseQuantity for texts that it parses in a short time.
func parse(text string) (resource.Quantity, bool) {
	if extremeExponent.MatchString(text) && !hugeInteger.MatchString(text) {
		return resource.Quantity{}, false
	}
	q, err := resource.ParseQuantity(text)
	return q, err == nil
}
