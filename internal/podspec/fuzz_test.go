package podspec

import (
	"regexp"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// extremes are quantities that a manifest may have and that arithmetic stumbles over.
var extremes = []string{"0", "1", "-1", "0.0001", "1n", "1e30", "-1e30", "1e2147483647", "-1e2147483647", "0e2147483647",
	"9223372036854775807", "-9223372036854775808", "9223372036854775807m", "9223372036854775808", "1E", "8Ei", "1e-30", "999999999999999999999999999999.9"}

// FuzzExtremeQuantities: whatever two containers request, a range says and an output
// counts as, the answer comes at once, is not negative where nothing given is, and
// is the same again.
func FuzzExtremeQuantities(f *testing.F) {
	for i, request := range extremes {
		f.Add(request, extremes[(i+1)%len(extremes)], extremes[(i+5)%len(extremes)], extremes[(i+11)%len(extremes)])
	}
	f.Fuzz(func(t *testing.T, request, limit, bound, factor string) {
		var given [4]resource.Quantity
		for i, text := range []string{request, limit, bound, factor} {
			if len(text) > 40 {
				t.Skip("a long number is not an extreme one")
			}
			q, ok := parse(text)
			if !ok {
				t.Skip("no quantity")
			}
			given[i] = q
		}
		one := func(i int) corev1.ResourceList { return corev1.ResourceList{corev1.ResourceCPU: given[i]} }
		site := ranges(limitRange("lr",
			corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, Min: one(2), Max: one(2), MaxLimitRequestRatio: one(2), Default: one(2), DefaultRequest: one(2)},
			corev1.LimitRangeItem{Type: corev1.LimitTypePod, Min: one(2), Max: one(2), MaxLimitRequestRatio: one(2)}))
		counting := Counting{Transformations: map[corev1.ResourceName]Transformation{corev1.ResourceCPU: {Outputs: one(3), MultiplyBy: corev1.ResourceCPU}}}
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
		if took := time.Since(began); took > 10*time.Second { // a machine may be slow, but not as slow as what is guarded against
			t.Errorf("it took %v", took)
		}
		if total.Cmp(again) != 0 || message != messageAgain {
			t.Errorf("once %s and %q, once %s and %q", total.String(), message, again.String(), messageAgain)
		}
		negative := false
		for _, q := range given {
			negative = negative || q.Sign() < 0
		}
		if !negative && total.Sign() < 0 {
			t.Errorf("%s in all", total.String())
		}
	})
}

// extremeExponent is an exponent that not every number may have: the parser itself
// multiplies out what is far below one, and an API server or an operator that was
// given one is lost before any of this is asked.
var extremeExponent = regexp.MustCompile(`[eE][+-]?0*[0-9]{4,}`)

// hugeInteger is what the parser does take with such an exponent.
var hugeInteger = regexp.MustCompile(`^-?[1-9][0-9]*[eE][0-9]+$`)

// parse is ParseQuantity for what it does not take forever with.
func parse(text string) (resource.Quantity, bool) {
	if extremeExponent.MatchString(text) && !hugeInteger.MatchString(text) {
		return resource.Quantity{}, false
	}
	q, err := resource.ParseQuantity(text)
	return q, err == nil
}
