package fair

import (
	"maps"
	"math"
	"slices"
	"time"
)

// Consumption is what somebody has used, old use counting for less than new: units by
// resource, that is cores, bytes or pieces.
type Consumption map[string]float64

// negligible is what is forgotten once nobody uses the resource: less than a millionth of
// a unit. While somebody does, the first samples may add no more than that.
const negligible = 1e-6

// Fading is the part of the past that has lost its weight after so long; all of it if
// there is no half-life, none if time went backwards.
func Fading(elapsed, halfLife time.Duration) float64 {
	switch {
	case halfLife <= 0:
		return 1
	case elapsed <= 0:
		return 0
	}
	return 1 - math.Exp2(-float64(elapsed)/float64(halfLife))
}

// After is the consumption once so much was used for so long.
func (c Consumption) After(elapsed, halfLife time.Duration, used Consumption) Consumption {
	fading := Fading(elapsed, halfLife)
	out := Consumption{}
	for resource, old := range c {
		out[resource] = (1 - fading) * old
	}
	for resource, amount := range used {
		// The conversion keeps the result the same on processors that fuse the two.
		out[resource] += float64(fading * amount)
	}
	maps.DeleteFunc(out, func(resource string, amount float64) bool { return amount < negligible && used[resource] == 0 })
	return out
}

// Weighed is all resources together, each by the weight of a unit: 1 where none is
// given. It adds up in the order of names, as the sum of such numbers depends on that.
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
