package plain

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestText(t *testing.T) {
	for text, want := range map[string]string{
		"":                                   "",
		"Überprüfung 模型 🙂, 100 %s":           "Überprüfung 模型 🙂, 100 %s",
		"rel\x1b[2J\x1b]0;pwned\x07\x1b[31m": `rel\x1b[2J\x1b]0;pwned\x07\x1b[31m`,
		"one\ntwo\r\nthree\tfour":            `one\ntwo\r\nthree\tfour`,
		"\u009b31m, \u0085, \x7f":            `\u009b31m, \u0085, \x7f`,
		"user\u202egnp.exe\u2066x\u2069":     `user\u202egnp.exe\u2066x\u2069`,
		"\u200e\u200f\u061c\u2028\u2029":     `\u200e\u200f\u061c\u2028\u2029`,
		"no UTF-8: \xff\x9b1m":               `no UTF-8: \xff\x9b1m`,
		"the character \ufffd itself":        "the character \ufffd itself",
	} {
		got := Text(text)
		if got != want {
			t.Errorf("Text(%q) = %q, want %q", text, got, want)
		}
		if again := Text(got); again != got {
			t.Errorf("Text of Text(%q) = %q, want it unchanged", text, again)
		}
	}
}

func TestCut(t *testing.T) {
	if got, want := Cut("模型模型", 3), "模型…"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := Cut("short\a", 9), `short\x07`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestWriterInPieces: a table is written in pieces of any length, which may end within a character.
func TestWriterInPieces(t *testing.T) {
	text := "a\tb\n模\u202e型 \x1b[31m\u009b \xff🙂\n"
	want := "a\tb\n模\\u202e型 \\x1b[31m\\u009b \\xff🙂\n"
	for size := 1; size <= len(text); size++ {
		var out bytes.Buffer
		w := NewWriter(&out)
		for at := 0; at < len(text); at += size {
			piece := text[at:min(len(text), at+size)]
			if n, err := w.Write([]byte(piece)); n != len(piece) || err != nil {
				t.Fatalf("Write of %d bytes took %d: %v", len(piece), n, err)
			}
		}
		if out.String() != want {
			t.Errorf("in pieces of %d bytes: got %q, want %q", size, out.String(), want)
		}
	}
}

func FuzzText(f *testing.F) {
	f.Add("\x1b]8;;http://x\x07", 3)
	f.Fuzz(func(t *testing.T, text string, split int) {
		got := Text(text)
		if !utf8.ValidString(got) || strings.IndexFunc(got, obeyed) >= 0 {
			t.Errorf("Text(%q) = %q", text, got)
		}
		var out bytes.Buffer
		w := NewWriter(&out)
		at := min(max(split, 0), len(text))
		_, _ = w.Write([]byte(text[:at]))
		_, _ = w.Write([]byte(text[at:]))
		if at := strings.IndexFunc(out.String(), func(r rune) bool { return obeyed(r) && !isLayout(r) }); at >= 0 {
			t.Errorf("Writer passed on %q", out.String())
		}
	})
}
