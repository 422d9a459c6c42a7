package podspec

import (
	"strings"
	"testing"

	"github.com/musterhq/muster/api/muster"
)

func TestSpeedExponent(t *testing.T) {
	if exponent, err := SpeedExponent(nil); exponent != 0 || err != nil {
		t.Errorf("without annotations: SpeedExponent = %v, %v", exponent, err)
	}
	for said, want := range map[string]float64{"1": 1, "0.6": 0.6, "2": 2, "0.854": 0.85, "0.855001": 0.86, "1.999": 2,
		"0.001": 0.01, "": 0, "0": 0, "-1": 0, "3": 0, "NaN": 0, "fast": 0} {
		exponent, err := SpeedExponent(map[string]string{muster.SpeedExponentAnnotation: said})
		if exponent != want || (err == nil) != (want > 0) ||
			err != nil && !strings.Contains(err.Error(), muster.SpeedExponentAnnotation) {
			t.Errorf("SpeedExponent(%q) = %v, %v", said, exponent, err)
		}
	}
}
