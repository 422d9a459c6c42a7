package docs

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// root is the project's root folder.
var root, _ = filepath.Abs("../..")

// index is the page that lists the others.
var index = filepath.Join("docs", "README.md")

// languages holds the allowed languages of blocks, and how each is checked. A block of any other language, or of none,
// is an error.
var languages = map[string]string{
	"sh":      "commands, run from top to bottom as one script",
	"console": "commands after `$ `, run one after the other, and their output",
	"text":    "right after commands, lines of their output; elsewhere a drawing",
	"yaml":    "applied as a dry run, if it is a complete object",
	"python":  "parsed by Python",
	"promql":  "names metrics of docs/operate/metrics.md",
	"mermaid": "a picture: its first line says which kind",
}

// block is a fenced block of a page. shows holds the lines that its commands must print; … in them matches any text.
type block struct {
	language, text string
	shows          []string
}

// pages returns the README and all of docs/, relative to the project's root.
func pages(t *testing.T) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(root, "docs", "*", "*.md"))
	if err != nil || len(found) < 25 {
		t.Fatalf("found %d pages in docs/, want at least 25: %v (%v)", len(found), found, err)
	}
	for i, path := range found {
		found[i] = filepath.Join("docs", filepath.Base(filepath.Dir(path)), filepath.Base(path))
	}
	return append(found, "README.md", index, filepath.Join("docs", "glossary.md"))
}

// blocks returns the blocks of a page. A block `text` right after a block of commands becomes the shows of that block.
func blocks(t *testing.T, page string) (found []block) {
	t.Helper()
	var open *block
	afterCommands := false
	for line := range strings.Lines(read(t, page)) {
		fence, isFence := strings.CutPrefix(strings.TrimLeft(line, " "), "```")
		switch {
		case !isFence && open == nil:
			afterCommands = afterCommands && strings.TrimSpace(line) == ""
		case !isFence:
			open.text += line
		case open == nil:
			open = &block{language: strings.TrimSpace(fence)}
			if languages[open.language] == "" {
				t.Errorf("%s has a block of language %q, want one of %v", page, open.language, slices.Sorted(maps.Keys(languages)))
			}
		default:
			if open.language == "text" && afterCommands {
				found[len(found)-1].shows = strings.Split(strings.TrimSpace(open.text), "\n")
			} else {
				found = append(found, *open)
			}
			afterCommands, open = open.language == "sh", nil
		}
	}
	if open != nil {
		t.Fatalf("the last block of %s has no end", page)
	}
	return found
}

// commands returns the commands of a block, one per line in a console block, and the lines that they must print.
func (b block) commands() (commands, shows []string) {
	if b.language != "console" {
		return strings.Split(b.text, "\n"), b.shows
	}
	for line := range strings.Lines(b.text) {
		if command, ok := strings.CutPrefix(line, "$ "); ok {
			command, _, _ = strings.Cut(command, " # ")
			commands = append(commands, strings.TrimSpace(command))
		} else {
			shows = append(shows, strings.TrimSpace(line))
		}
	}
	return commands, shows
}

// inline returns the commands of programs in the text of a page, outside its blocks.
func inline(t *testing.T, page string) (commands [][]string) {
	t.Helper()
	text := regexp.MustCompile("(?ms)^ *```.*?^ *```").ReplaceAllString(read(t, page), "")
	for _, match := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(text, -1) {
		words := strings.Fields(match[1])
		if len(words) > 0 && slices.Contains(programs, strings.TrimPrefix(words[0], "bin/")) {
			words[0] = strings.TrimPrefix(words[0], "bin/")
			commands = append(commands, words)
		}
	}
	return commands
}

// read returns the content of a page, by its path from the project's root.
func read(t *testing.T, page string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, page))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
