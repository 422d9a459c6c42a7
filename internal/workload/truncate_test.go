package workload

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
)

func TestCut(t *testing.T) {
	if whole := strings.Repeat("x", 1024); Cut(whole, 1024) != whole {
		t.Error("a text within the limit was cut")
	}
	for limit := 1000; limit < 1010; limit++ {
		if got := Cut(strings.Repeat("é", 600), limit); len(got) > limit || len(got) < limit-4 || !utf8.ValidString(got) ||
			!strings.HasSuffix(got, "é…") {
			t.Errorf("Cut to %d bytes: got %d bytes that end in %q", limit, len(got), got[len(got)-10:])
		}
	}
}

// TestMessagesHaveNoControlCharacters: a condition may repeat what a user wrote, such as the gate of an annotation, or
// an error of the API server that quotes it.
func TestMessagesHaveNoControlCharacters(t *testing.T) {
	w := &kueue.Workload{}
	SetCondition(w, kueue.WorkloadQuotaReserved, metav1.ConditionFalse, "AdmissionGated",
		"gated by: x\x1b]0;pwned\a\u202e", time.Time{})
	if got, want := w.Status.Conditions[0].Message, `gated by: x\x1b]0;pwned\x07\u202e`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := Cut(strings.Repeat("\a", 300), 1000); len(got) > 1000 || strings.ContainsRune(got, '\a') {
		t.Errorf("Cut of control characters: got %q", got)
	}
}
