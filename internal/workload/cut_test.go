package workload

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestCut(t *testing.T) {
	if whole := strings.Repeat("x", 1024); Cut(whole, 1024) != whole {
		t.Error("a text within the limit was cut")
	}
	for limit := 1000; limit < 1010; limit++ {
		if got := Cut(strings.Repeat("é", 600), limit); len(got) > limit || len(got) < limit-4 || !utf8.ValidString(got) || !strings.HasSuffix(got, "é…") {
			t.Errorf("Cut to %d bytes: got %d bytes that end in %q", limit, len(got), got[len(got)-10:])
		}
	}
}
