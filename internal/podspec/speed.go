package podspec

import (
	"fmt"
	"strconv"

	"github.com/musterhq/muster/api/muster"
)

// mostExponent bounds the exponent of a speed: no job gains more by a pod than the square says.
const maxSpeedExponent = 2

// SpeedExponent is what the annotations of an elastic pod set's template say of how much faster it is with more pods, 0 if
// nothing. It fails where what they say cannot be meant.
func SpeedExponent(annotations map[string]string) (float64, error) {
	text, ok := annotations[muster.SpeedExponentAnnotation]
	if !ok {
		return 0, nil
	}
	exponent, err := strconv.ParseFloat(text, 64)
	if err != nil || !(exponent > 0 && exponent <= maxSpeedExponent) { // not a number is neither
		return 0, fmt.Errorf("the annotation %s is %q: it must be a number above 0, and %d at most", muster.SpeedExponentAnnotation, text, maxSpeedExponent)
	}
	return exponent, nil
}
