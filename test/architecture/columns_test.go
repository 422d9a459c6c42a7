package architecture

import (
	"bytes"
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

const (
	mostColumns = 120 // of a line, where a tab is one
	mostAround  = 40  // of a longer line that is a string or a pair of them, besides these
)

// TestLinesFit checks that no line of code or comment is longer than 120 columns. A line may be longer if it cannot be
// cut: if it is a string, or a pair of them, with little around it, part of a string of several lines, a field with a
// tag, a marker for a generator, or a comment with an address.
func TestLinesFit(t *testing.T) {
	files := 0
	err := filepath.WalkDir("../..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") ||
			strings.HasPrefix(entry.Name(), "zz_generated") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		files++
		path = strings.TrimPrefix(filepath.ToSlash(path), "../../")
		for _, line := range longLines(text) {
			t.Errorf("%s:%d has more than %d columns", path, line, mostColumns)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if files < 1000 {
		t.Errorf("found %d files, want at least 1,000", files)
	}
}

// longLines returns the numbers of the lines that are too long and can be cut.
func longLines(text []byte) (numbers []int) {
	if bytes.Contains(text, []byte("\n// Code generated ")) || bytes.HasPrefix(text, []byte("// Code generated ")) {
		return nil
	}
	lines := strings.Split(string(text), "\n")
	texts, within := stringsOf(text)
	for i, line := range lines {
		columns := utf8.RuneCountInString(line)
		if columns > mostColumns && !within[i+1] && columns-texts[i+1] > mostAround && !cannotBeCut(line) {
			numbers = append(numbers, i+1)
		}
	}
	return numbers
}

// stringsOf returns the columns of the strings of each line: of the pair if there are two, else of the longest. It also
// returns which lines are part of a string of several lines.
func stringsOf(text []byte) (columns map[int]int, within map[int]bool) {
	columns, within = map[int]int{}, map[int]bool{}
	of := map[int][]int{}
	var tokens scanner.Scanner
	file := token.NewFileSet().AddFile("", -1, len(text))
	tokens.Init(file, text, nil, 0)
	for {
		position, kind, literal := tokens.Scan()
		first := file.Line(position)
		switch lines := strings.Count(literal, "\n"); {
		case kind == token.EOF:
			return columns, within
		case kind == token.STRING && lines == 0:
			of[first] = append(of[first], utf8.RuneCountInString(literal))
			if columns[first] = slices.Max(of[first]); len(of[first]) == 2 {
				columns[first] = of[first][0] + of[first][1]
			}
		case kind == token.STRING:
			for n := range lines + 1 {
				within[first+n] = true
			}
		}
	}
}

// cannotBeCut reports whether a line is a field with a tag, a marker for a generator, or a comment with an address.
func cannotBeCut(line string) bool {
	line = strings.TrimSpace(line)
	if comment, ok := strings.CutPrefix(line, "//"); ok {
		return strings.HasPrefix(comment, "go:") || strings.HasPrefix(strings.TrimSpace(comment), "+") ||
			strings.Contains(comment, "://")
	}
	return strings.HasSuffix(line, "\"`") && strings.Contains(line, "`json:")
}

// TestLongLinesAreFound checks which lines of a small file are too long.
func TestLongLinesAreFound(t *testing.T) {
	long := strings.Repeat("x", mostColumns)
	for line, want := range map[string]bool{
		"// " + long:                         true,
		"// see https://example.com/" + long: false,
		"// +kubebuilder:" + long:            false,
		"var " + long + " = 1":               true,
		"var s = \"" + long + "\"":           false,
		"var s = `a\n" + long + "`":          false,
		"var s = f(g(h(i(j(k(l(m(n(1, 2, 3)))))))), a, b, c, d, \"" + long + "\")": true,
	} {
		if got := len(longLines([]byte("package p\n\n"+line+"\n"))) > 0; got != want {
			t.Errorf("%.40s: too long is %t, want %t", line, got, want)
		}
	}
}
