package main

import (
	"io"
	"strings"
)

// printable passes on what is written to it without the control characters that a terminal obeys: errors and names in
// it may come from the objects of a cluster. The module of the operator and of muster has the same, which this module
// does not import.
type printable struct{ out io.Writer }

func (p printable) Write(text []byte) (int, error) {
	if _, err := io.WriteString(p.out, strings.Map(visible, string(text))); err != nil {
		return 0, err
	}
	return len(text), nil
}

// visible returns the replacement character for a control character or a change of the writing direction.
func visible(r rune) rune {
	switch {
	case r == '\n', r == '\t':
		return r
	case r < ' ', '\x7f' <= r && r <= '\u009f', r == '\u061c', r == '\u200e', r == '\u200f',
		'\u2028' <= r && r <= '\u202e', '\u2066' <= r && r <= '\u2069':
		return '\ufffd'
	}
	return r
}
