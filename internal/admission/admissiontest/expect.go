package admissiontest

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Expect reports an error unless got equals want. what names them in the message.
func Expect[V any](t *testing.T, what string, want, got V) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}
