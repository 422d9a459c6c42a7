package admissiontest

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Expect fails the test where the lines, which what names, are not the wanted ones in their order.
func Expect(t *testing.T, what string, want, got []string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}
