package quota

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func TestNumberWritesCountsInFull(t *testing.T) {
	for text, want := range map[string]string{
		"8": "8", "1000": "1000", "1k": "1000", "-2k": "-2000", "1500m": "1500m", "0": "0", "1E": "1E", "2000Ki": "2000Ki",
		"4Gi": "4Gi", "64M": "64M",
		// To compare these takes practically forever.
		"1e2147483647": "1e30", "-1e2147483647": "-1e30", "0e2147483647": "0", "1e40": "1e30", "1e29": "100e27",
	} {
		if got := Number(resource.MustParse(text)); got != want {
			t.Errorf("Number(%s) = %s, want %s", text, got, want)
		}
	}
	// CPU is counted in thousandths: its whole numbers are formatted like any other.
	if got := Number(ToQuantity("cpu", 5_000_000)); got != "5000" {
		t.Errorf("Number of 5000 CPU = %s, want 5000", got)
	}
}

func TestAmountsAreFormattedAsUsersWriteThem(t *testing.T) {
	for name, amounts := range map[corev1.ResourceName][]string{
		"cpu":                    {"1500m", "2"},
		"memory":                 {"1500", "2Ki", "5Gi"},
		"hugepages-2Mi":          {"2Ki", "4Gi"},
		"nvidia.com/gpu":         {"0", "8", "4096"},
		"example.com/gpu-memory": {"5Gi", "1536Mi", "-2Gi"},
		"nvidia.com/gpumem":      {"81920", "5242880"}, // counts Mi
	} {
		for _, want := range amounts {
			if got := ToQuantity(name, FromQuantity(name, resource.MustParse(want))); Number(got) != want {
				t.Errorf("%s of %s is formatted as %s", want, name, Number(got))
			}
		}
	}
}
