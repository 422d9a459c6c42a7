package workload

import "strings"

// Cut truncates text to at most limit bytes without splitting a character, and marks the cut with an ellipsis.
func Cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	const ellipsis = "…"
	return strings.ToValidUTF8(text[:limit-len(ellipsis)], "") + ellipsis
}
