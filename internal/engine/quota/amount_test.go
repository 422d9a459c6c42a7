package quota

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
)

func TestWhatIsCountedIsWrittenAsItIsCounted(t *testing.T) {
	for text, want := range map[string]string{
		"8": "8", "1000": "1000", "1k": "1000", "-2k": "-2000", "1500m": "1500m", "0": "0", "1E": "1E", "2000Ki": "2000Ki", "4Gi": "4Gi", "64M": "64M",
	} {
		if got := Number(resource.MustParse(text)); got != want {
			t.Errorf("%s is written %s, want %s", text, got, want)
		}
	}
	// CPU is counted in thousandths: a number of whole ones is one like any other.
	if got := Number(ToQuantity("cpu", 5_000_000)); got != "5000" {
		t.Errorf("5000 CPU are written %s", got)
	}
}
