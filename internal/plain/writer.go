package plain

import (
	"io"
	"unicode/utf8"
)

// Writer passes on what is written to it, with control characters escaped as Text does. Only line breaks and tabs,
// which lay out a table or a list, stay. It is not safe for concurrent use.
type Writer struct {
	out io.Writer
	// begun is the beginning of a character whose end is not written yet.
	begun []byte
	// escape returns what stands for a control character.
	escape func(rune) string
}

// NewWriter returns a Writer that passes on to out.
func NewWriter(out io.Writer) *Writer { return &Writer{out: out, escape: escape} }

// NewQuotedWriter returns a Writer for JSON, or for YAML whose control characters are all in double quotes: they are
// written as escapes of these formats, so that a program reads the same text as before.
func NewQuotedWriter(out io.Writer) *Writer { return &Writer{out: out, escape: escapeQuoted} }

// Write implements io.Writer. It reports the bytes that it took, not the longer text that it passed on.
func (w *Writer) Write(p []byte) (int, error) {
	text := append(w.begun, p...)
	end := len(text) - unfinished(text)
	w.begun = append([]byte(nil), text[end:]...)
	if _, err := io.WriteString(w.out, escaped(string(text[:end]), isLayout, w.escape)); err != nil {
		return 0, err
	}
	return len(p), nil
}

func isLayout(r rune) bool { return r == '\n' || r == '\t' }

// unfinished returns how many bytes at the end of the text begin a character without ending it.
func unfinished(text []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if last := text[len(text)-n:]; utf8.RuneStart(last[0]) {
			if utf8.FullRune(last) {
				return 0
			}
			return n
		}
	}
	return 0
}
