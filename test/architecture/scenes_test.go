package architecture

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestEachFileOfTheEngineHasAScene checks that the table of docs/develop/engine.md names each scene and each file of
// the engine, and nothing else.
func TestEachFileOfTheEngineHasAScene(t *testing.T) {
	page, err := os.ReadFile("../../docs/develop/engine.md")
	if err != nil {
		t.Fatal(err)
	}
	var scenes, files []string
	rows := regexp.MustCompile(`(?m)^\| \[.*/scenes/(\S+)\) \|.*\| (.*) \|$`)
	for _, row := range rows.FindAllStringSubmatch(string(page), -1) {
		scenes = append(scenes, row[1])
		for file := range strings.SplitSeq(row[2], ", ") {
			files = append(files, strings.Trim(file, "` "))
		}
	}
	const engine = "../../internal/engine/"
	compare(t, "scene", scenes, base(t, engine+"testdata/scenes/*.txt"))
	compare(t, "file", files, slices.DeleteFunc(base(t, engine+"*.go"), func(file string) bool {
		return strings.HasSuffix(file, "_test.go")
	}))
}

// base returns the names of the files that match.
func base(t *testing.T, pattern string) (names []string) {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	if err != nil || len(paths) == 0 {
		t.Fatalf("no files match %s (%v)", pattern, err)
	}
	for _, path := range paths {
		names = append(names, filepath.Base(path))
	}
	return names
}

func compare(t *testing.T, what string, named, there []string) {
	t.Helper()
	for _, name := range there {
		if !slices.Contains(named, name) {
			t.Errorf("docs/develop/engine.md does not name the %s %s: add it to the table of worked examples", what, name)
		}
	}
	for _, name := range named {
		if name != "" && !slices.Contains(there, name) {
			t.Errorf("docs/develop/engine.md names the %s %s, which does not exist", what, name)
		}
	}
}
