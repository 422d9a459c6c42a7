package fair

import (
	"maps"
	"math"
	"slices"
	"time"

	"github.com/musterhq/muster/internal/engine/quota"
)

// Consumption is recent usage by resource, in cores, bytes or pieces; older usage counts less.
type Consumption map[string]float64

// negligible is the amount below which a resource that is not in use any more is dropped. While it is in use, even
// less is kept, as the first samples may add no more.
const negligible = 1e-6

// Fading returns the fraction of past usage that has decayed after the elapsed time: all of it without a half-life,
// none if time went backwards.
func Fading(elapsed, halfLife time.Duration) float64 {
	switch {
	case halfLife <= 0:
		return 1
	case elapsed <= 0:
		return 0
	}
	return 1 - math.Exp2(-float64(elapsed)/float64(halfLife))
}

// After returns the consumption after the given usage for the elapsed time.
func (c Consumption) After(elapsed, halfLife time.Duration, used Consumption) Consumption {
	fading := Fading(elapsed, halfLife)
	out := Consumption{}
	for resource, old := range c {
		out[resource] = (1 - fading) * old
	}
	for resource, amount := range used {
		// The conversion prevents fused multiply-add, so that the result is the same on all processors.
		out[resource] += float64(fading * amount)
	}
	maps.DeleteFunc(out, func(resource string, amount float64) bool { return amount < negligible && used[resource] == 0 })
	return out
}

// Standing returns the sort key of a LocalQueue that has consumed this sum, by its weight, nil for One: the smallest
// goes first, and a weight of 0 last.
func Standing(sum float64, weight *quota.Weight) float64 {
	share := float64(quota.One)
	if weight != nil {
		share = float64(*weight)
	}
	if share <= 0 {
		return math.Inf(1)
	}
	return sum / (share / float64(quota.One))
}

// Weighed returns the sum of all resources, each multiplied by its weight, 1 by default. It adds in the order of
// names, because the sum of floating-point numbers depends on the order.
func (c Consumption) Weighed(weights map[string]float64) float64 {
	var sum float64
	for _, resource := range slices.Sorted(maps.Keys(c)) {
		weight, given := weights[resource]
		if !given {
			weight = 1
		}
		sum += float64(weight * c[resource])
	}
	return sum
}
