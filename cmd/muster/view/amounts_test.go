package view

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
)

func TestBytesOfColumnsAreRounded(t *testing.T) {
	for text, want := range map[string]string{
		"24684084Ki": "23.5Gi", "-24684084Ki": "-23.5Gi", "1048575Ki": "1024.0Mi", "123456Ki": "123456Ki", "4Gi": "4Gi", "0": "0",
		"1k": "1000", "123456789": "123456789", "1500m": "1500m",
	} {
		if got := Rounded(resource.MustParse(text)); got != want {
			t.Errorf("%s is written %s, want %s", text, got, want)
		}
	}
}
