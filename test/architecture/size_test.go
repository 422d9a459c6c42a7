package architecture

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// The caps of the code. A room that a reader can hold in the head is small in each of these ways.
const (
	mostFiles   = 25 // Go files in a folder
	mostMethods = 40 // methods of a type
	mostInCycle = 12 // files of a package that use each other, directly or by way of others
	mostLines   = 60 // lines of a function
	mostOnMean  = 12 // lines of a function, on average over all
)

// TestFoldersAreSmall checks the number of Go files in each folder.
func TestFoldersAreSmall(t *testing.T) {
	check(t, "Go files in a folder", loadGraph(t).files, mostFiles)
}

// TestTypesHaveFewMethods checks the number of methods of each type.
func TestTypesHaveFewMethods(t *testing.T) {
	check(t, "methods of a type", loadGraph(t).methods, mostMethods)
}

// TestFewFilesUseEachOther checks the number of files in the largest cycle of mutual use in each package: of files that
// can only be understood together.
func TestFewFilesUseEachOther(t *testing.T) {
	g, sizes := loadGraph(t), map[string]int{}
	for folder, cycle := range g.cycles {
		if sizes[folder] = len(cycle); len(cycle) > mostInCycle {
			t.Logf("%s: %s", folder, strings.Join(cycle, ", "))
		}
	}
	check(t, "files that use each other", sizes, mostInCycle)
}

// TestFunctionsAreShort checks the number of lines of each function, and their mean.
func TestFunctionsAreShort(t *testing.T) {
	g, total := loadGraph(t), 0
	for _, lines := range g.functions {
		total += lines
	}
	check(t, "lines of a function", g.functions, mostLines)
	mean := float64(total) / float64(len(g.functions))
	t.Logf("%d functions have %.2f lines on average", len(g.functions), mean)
	if mean > mostOnMean {
		t.Errorf("functions have %.2f lines on average, want at most %d", mean, mostOnMean)
	}
}

// check fails for each room that is larger than the cap, and logs the largest rooms.
func check(t *testing.T, what string, sizes map[string]int, most int) {
	t.Helper()
	for _, room := range sortedKeys(sizes) {
		if sizes[room] > most {
			t.Errorf("%s: %d %s, want at most %d", room, sizes[room], what, most)
		}
	}
	t.Logf("%s, at most %d:\n%s", what, most, largest(sizes))
}

// largest returns the 40 largest rooms, one a line.
func largest(sizes map[string]int) string {
	rooms := sortedKeys(sizes)
	slices.SortStableFunc(rooms, func(a, b string) int { return sizes[b] - sizes[a] })
	var out strings.Builder
	for _, room := range rooms[:min(len(rooms), 40)] {
		fmt.Fprintf(&out, "%6d %s\n", sizes[room], room)
	}
	return out.String()
}

// sortedKeys returns the keys of a map in order.
func sortedKeys[V any](m map[string]V) []string {
	return slices.Sorted(maps.Keys(m))
}
