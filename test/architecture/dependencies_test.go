package architecture

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestPageListsDirectDependencies checks that docs/develop/dependencies.md has every direct dependency of each module,
// and no others.
func TestPageListsDirectDependencies(t *testing.T) {
	page, err := os.ReadFile("../../docs/develop/dependencies.md")
	if err != nil {
		t.Fatal(err)
	}
	sections := map[string]string{}
	for _, section := range strings.Split(string(page), "\n## ")[1:] {
		title, text, _ := strings.Cut(section, "\n")
		folder := strings.TrimPrefix(strings.TrimSuffix(title, "/"), "Module ")
		if folder == "Main module" {
			folder = "."
		}
		sections[folder] = text
	}
	files, err := filepath.Glob("../../go.mod")
	for _, pattern := range []string{"../../*/go.mod", "../../*/*/go.mod", "../../*/*/*/go.mod"} {
		more, _ := filepath.Glob(pattern)
		files = append(files, more...)
	}
	if err != nil || len(files) != len(sections) {
		t.Errorf("docs/develop/dependencies.md has %d sections, want one for each of the %d modules (%v)",
			len(sections), len(files), err)
	}
	for _, file := range files {
		folder := filepath.ToSlash(filepath.Dir(strings.TrimPrefix(file, "../../")))
		direct, all := required(t, file)
		named := firstColumn(sections[folder])
		for _, path := range direct {
			if !slices.Contains(named, path) {
				t.Errorf("%s requires %s, which docs/develop/dependencies.md does not list", file, path)
			}
		}
		for _, path := range named {
			if !slices.Contains(all, path) {
				t.Errorf("docs/develop/dependencies.md lists %s, which %s does not require", path, file)
			}
		}
	}
}

// required returns the direct dependencies in a go.mod, and all of them, without the project's own modules.
func required(t *testing.T, file string) (direct, all []string) {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	within := false
	for line := range strings.Lines(string(content)) {
		line, single := strings.CutPrefix(strings.TrimSpace(line), "require ")
		words := strings.Fields(line)
		switch {
		case single && words[0] == "(":
			within = true
		case line == ")":
			within = false
		case (single || within) && len(words) > 1 && !strings.HasPrefix(words[0], strings.TrimSuffix(module, "/")):
			all = append(all, words[0])
			if !strings.HasSuffix(line, "// indirect") {
				direct = append(direct, words[0])
			}
		}
	}
	return direct, all
}

// firstColumn returns the modules in the first column of the tables.
func firstColumn(section string) (modules []string) {
	for line := range strings.Lines(section) {
		cells := strings.Split(line, "|")
		if len(cells) < 3 || strings.HasPrefix(cells[1], "-") || strings.TrimSpace(cells[1]) == "module" {
			continue
		}
		for _, path := range strings.Split(cells[1], ",") {
			modules = append(modules, strings.TrimSpace(path))
		}
	}
	return modules
}
