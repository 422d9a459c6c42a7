package docs

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// kindsOfPictures are the kinds of Mermaid pictures on the pages: what goes where, what state follows which, and who
// tells whom.
var kindsOfPictures = []string{"flowchart TD", "flowchart LR", "stateDiagram-v2", "sequenceDiagram"}

// TestPicturesCanBeDrawn checks what most often keeps Mermaid from drawing a picture: a first line that names no kind,
// a quotation mark or a bracket that has no partner, and the word end as the name of a node.
func TestPicturesCanBeDrawn(t *testing.T) {
	found := 0
	for _, page := range pages(t) {
		for _, block := range blocks(t, page) {
			if block.language != "mermaid" {
				continue
			}
			found++
			kind, rest, _ := strings.Cut(block.text, "\n")
			if !slices.Contains(kindsOfPictures, strings.TrimSpace(kind)) {
				t.Errorf("%s: a picture begins with %q, want one of %v", page, kind, kindsOfPictures)
			}
			for line := range strings.Lines(rest) {
				if why := cannotDraw(line); why != "" {
					t.Errorf("%s: %s in %q", page, why, strings.TrimSpace(line))
				}
			}
		}
	}
	if found < 1 {
		t.Error("found no pictures")
	}
}

// cannotDraw returns what is wrong in a line of a picture, "" if nothing is.
func cannotDraw(line string) string {
	if strings.Count(line, `"`)%2 != 0 {
		return "a quotation mark without a partner"
	}
	bare := regexp.MustCompile(`"[^"]*"`).ReplaceAllString(line, "")
	for _, pair := range []string{"[]", "()", "{}"} {
		if strings.Count(bare, pair[:1]) != strings.Count(bare, pair[1:]) {
			return "a bracket without a partner"
		}
	}
	if regexp.MustCompile(`(>|-) end\b|\bend(\[|\()`).MatchString(bare) {
		return "a node called end"
	}
	return ""
}

// TestLinesOfPagesFit checks that no line of text on a page is longer than 120 columns. Tables and blocks may be wider,
// and so may a line that is one long word.
func TestLinesOfPagesFit(t *testing.T) {
	for _, page := range pages(t) {
		inBlock := false
		for i, line := range strings.Split(read(t, page), "\n") {
			text := strings.TrimSpace(line)
			if strings.HasPrefix(text, "```") {
				inBlock = !inBlock
			}
			if !inBlock && !strings.HasPrefix(text, "|") && utf8.RuneCountInString(line) > 120 && strings.Contains(text, " ") {
				t.Errorf("%s:%d has more than 120 columns", page, i+1)
			}
		}
	}
}
