package podspec

import (
	"fmt"
	"math"
	"strconv"

	"github.com/musterhq/muster/api/muster"
)

// maxSpeedExponent is the largest exponent that is accepted: speed-up is at most quadratic.
const maxSpeedExponent = 2

// SpeedExponent returns the exponent by which an elastic pod set's speed grows with its pods, from the annotations of
// its template, rounded to two decimals; 0 if there is none: then elastic.DefaultExponent of the engine applies. It
// fails if the annotation is invalid.
func SpeedExponent(annotations map[string]string) (float64, error) {
	text, ok := annotations[muster.SpeedExponentAnnotation]
	if !ok {
		return 0, nil
	}
	exponent, err := strconv.ParseFloat(text, 64)
	if err != nil || !(exponent > 0 && exponent <= maxSpeedExponent) { // also excludes NaN
		return 0, fmt.Errorf("the annotation %s is %q: it must be a number above 0, and %d at most",
			muster.SpeedExponentAnnotation, text, maxSpeedExponent)
	}
	return max(1, math.Round(exponent*precision)) / precision, nil
}

// precision makes exponents differ by a hundredth at least. More could not be measured, and the engine keeps a table
// for each.
const precision = 100
