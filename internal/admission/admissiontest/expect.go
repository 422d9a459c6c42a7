package admissiontest

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Expect reports an error unless got equals want, in the same order. what names the lines in the message.
func Expect(t *testing.T, what string, want, got []string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}
