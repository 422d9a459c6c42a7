package workload

import "unicode/utf8"

// Cut truncates text to at most limit bytes without splitting a character, and marks the cut with an ellipsis.
func Cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	const ellipsis = "…"
	text = text[:limit-len(ellipsis)]
	for !utf8.ValidString(text) {
		text = text[:len(text)-1]
	}
	return text + ellipsis
}
