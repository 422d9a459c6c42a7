package architecture

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// rows returns the cells of the rows that begin with a name in backquotes, in the table under a heading of a page in
// docs/develop.
func rows(t *testing.T, name, heading string) (out [][]string) {
	t.Helper()
	page, err := os.ReadFile("../../docs/develop/" + name)
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(page), "\n"+heading+"\n")
	if !found {
		t.Fatalf("docs/develop/%s has no heading %s", name, heading)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	for line := range strings.Lines(section) {
		if strings.HasPrefix(line, "| `") {
			out = append(out, strings.Split(strings.Trim(line, "| \n"), " | "))
		}
	}
	return out
}

var quoted = regexp.MustCompile("`[^`]+`")

// named returns the names in backquotes in a cell.
func named(cell string) (out []string) {
	for _, name := range quoted.FindAllString(cell, -1) {
		out = append(out, strings.Trim(name, "`"))
	}
	return out
}
