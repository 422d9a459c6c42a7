package plain

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Text returns the text on one line, with each character that a terminal could obey written as Go writes it in a quoted
// string: ESC as \x1b, a line break as \n, the right-to-left override as \u202e. Bytes that are no UTF-8 are written as
// \xNN. Other text, in any language, stays as it is. Text of a text that Text returned is that text.
func Text(text string) string { return escaped(text, func(rune) bool { return false }, escape) }

// Cut returns Text, with at most limit characters. An ellipsis marks a text that was cut.
func Cut(text string, limit int) string {
	text = Text(text)
	if utf8.RuneCountInString(text) <= limit {
		return text
	}
	return string([]rune(text)[:max(0, limit-1)]) + "…"
}

// HasControls reports whether the text has a character that Text would escape, other than a line break or a tab.
func HasControls(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool { return obeyed(r) && !isLayout(r) })
}

// escaped returns the text with its control characters escaped, except for the characters that are kept.
func escaped(text string, keep func(rune) bool, escape func(rune) string) string {
	at := strings.IndexFunc(text, func(r rune) bool { return obeyed(r) && !keep(r) || r == utf8.RuneError })
	if at < 0 {
		return text
	}
	var out strings.Builder
	for out.WriteString(text[:at]); at < len(text); {
		r, size := utf8.DecodeRuneInString(text[at:])
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&out, `\x%02x`, text[at])
		case keep(r) || !obeyed(r):
			out.WriteRune(r)
		default:
			out.WriteString(escape(r))
		}
		at += size
	}
	return out.String()
}

// obeyed reports whether a terminal may obey the character: the control characters of ASCII (C0 and DEL) and of Latin 1
// (C1), the marks, overrides and isolates of the writing direction, and Unicode's line and paragraph separators.
func obeyed(r rune) bool {
	switch {
	case r < ' ', '\x7f' <= r && r <= '\u009f':
		return true
	case r == '\u061c', r == '\u200e', r == '\u200f', '\u2028' <= r && r <= '\u202e', '\u2066' <= r && r <= '\u2069':
		return true
	}
	return false
}

func escape(r rune) string {
	switch {
	case r == '\n':
		return `\n`
	case r == '\r':
		return `\r`
	case r == '\t':
		return `\t`
	case r < '\u0080':
		return fmt.Sprintf(`\x%02x`, r)
	}
	return fmt.Sprintf(`\u%04x`, r)
}

// escapeQuoted writes a character as JSON and YAML do in double quotes.
func escapeQuoted(r rune) string { return fmt.Sprintf(`\u%04x`, r) }
