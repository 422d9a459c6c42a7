package podspec

import (
	"fmt"
	"strconv"

	"github.com/musterhq/muster/api/muster"
)

// mostExponent bounds the exponent of a speed: no job gains more by a pod than the square says.
const mostExponent = 2

// SpeedExponent is what the annotations of an elastic pod set's template say of how much faster it is with more pods, 0 if
// nothing. It fails where what they say cannot be meant.
func SpeedExponent(annotations map[string]string) (float64, error) {
	said, there := annotations[muster.SpeedExponentAnnotation]
	if !there {
		return 0, nil
	}
	exponent, err := strconv.ParseFloat(said, 64)
	if err != nil || !(exponent > 0 && exponent <= mostExponent) { // not a number is neither
		return 0, fmt.Errorf("the annotation %s is %q: it must be a number above 0, and %d at most", muster.SpeedExponentAnnotation, said, mostExponent)
	}
	return exponent, nil
}
