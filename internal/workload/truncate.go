package workload

import (
	"strings"

	"github.com/musterhq/muster/internal/plain"
)

// Cut returns a text for a condition, a status or an event: on one line and without control characters, which users may
// have put into names that the text repeats, since kubectl prints it to terminals. It has at most limit bytes; a cut
// splits no character and is marked with an ellipsis.
func Cut(text string, limit int) string {
	text = plain.Text(text)
	if len(text) <= limit {
		return text
	}
	const ellipsis = "…"
	return strings.ToValidUTF8(text[:limit-len(ellipsis)], "") + ellipsis
}
