package workload

import "unicode/utf8"

// Cut shortens text that the API would refuse to at most limit bytes without breaking a character.
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
