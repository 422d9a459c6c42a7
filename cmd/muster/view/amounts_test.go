package view

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
}
