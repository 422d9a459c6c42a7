package architecture

import (
	"os"
	"regexp"
	"slices"
	"testing"
)

// TestEachRuleOfPlannedStartsHasAScene checks that the table of docs/operate/planned-starts.md and the titles of the
// scenes that show its rows are the same, in the same order.
func TestEachRuleOfPlannedStartsHasAScene(t *testing.T) {
	read := func(file, pattern string) (rows []string) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range regexp.MustCompile(pattern).FindAllStringSubmatch(string(text), -1) {
			rows = append(rows, row[1]+": "+row[2])
		}
		return rows
	}
	scenes := read("../../internal/engine/testdata/scenes/backfill-rules.txt", `(?m)^# ([^:\n]+): ([^\n]+)\.$`)
	table := read("../../docs/operate/planned-starts.md", `(?m)^\| ([^|]+) \| ([^|]+) \|$`)
	at := slices.Index(table, "rule: with a planned start")
	if at < 0 || len(scenes) == 0 {
		t.Fatalf("the table or the scenes are not found: %d rows, %d scenes", len(table), len(scenes))
	}
	if !slices.Equal(table[at+1:], scenes) {
		t.Errorf("the table has the rows\n%q\nand the scenes show\n%q", table[at+1:], scenes)
	}
}
