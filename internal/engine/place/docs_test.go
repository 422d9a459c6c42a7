package place

import (
	"os"
	"strings"
	"testing"
)

// TestReasonsPageListsAllFilters: docs/reference/reasons.md describes every filter that a message may name.
func TestReasonsPageListsAllFilters(t *testing.T) {
	page, err := os.ReadFile("../../../docs/reference/reasons.md")
	if err != nil {
		t.Fatal(err)
	}
	r := newRefusals()
	for why := refusedOther + 1; int(why) < len(r.texts); why++ {
		if !strings.Contains(string(page), "`"+r.texts[why]+"`") {
			t.Errorf("docs/reference/reasons.md does not describe the filter %q", r.texts[why])
		}
	}
}
