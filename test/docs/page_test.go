package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// root is the project's, from here.
var root, _ = filepath.Abs("../..")

// languages are those of blocks, and what is made of them; a block of another one, or of none, is nobody's to check.
var languages = map[string]string{
	"sh":      "commands, which are run from top to bottom as one script",
	"console": "commands behind `$ ` as people type them, one after the other, with what they print",
	"text":    "right after commands some of the lines that they print; else a drawing, which has no commands",
	"yaml":    "what the API server takes, if it is whole",
	"python":  "what Python can read",
	"promql":  "metrics that there are",
}

// block of a page. Shows are the lines that the page says its commands print: … in them is any text.
type block struct {
	language, text string
	shows          []string
}

// pages are the README and all of docs/, from the project's root.
func pages(t *testing.T) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil || len(found) < 25 {
		t.Fatalf("only found %v: %v", found, err)
	}
	for i, path := range found {
		found[i] = filepath.Join("docs", filepath.Base(path))
	}
	return append(found, "README.md")
}

// blocks reads the blocks of a page. A block `text` right after commands becomes what these show.
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
				t.Errorf("%s has a block of %q: here are %v", page, open.language, languages)
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
		t.Fatalf("%s ends within a block", page)
	}
	return found
}

// commands of a block, a line each where the block is typed, with what it shows.
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

// inline are the commands within the text of a page, without its blocks: those of the programs that pages are about.
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

// read gives what a page says, by its path from the project's root.
func read(t *testing.T, page string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, page))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
