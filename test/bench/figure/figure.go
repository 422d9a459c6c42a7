// Package figure prints what benchmarks measure as rows of a table, and reads what
// processes cost. Only benchmarks may import it.
package figure

import (
	"fmt"
	"testing"
	"time"
)

const mebibyte = 1 << 20

// Reach prints a row with what the figure must reach, and fails the test if it does
// not.
func Reach(t testing.TB, what, figure, reach string, ok bool) {
	t.Helper()
	row(what, figure, reach)
	if !ok {
		t.Errorf("%s: %s, must reach %s", what, figure, reach)
	}
}

// Note prints a row that need not reach anything.
func Note(what, figure string) { row(what, figure, "-") }

func row(what, figure, reach string) { fmt.Printf("| %-56s | %12s | %12s |\n", what, figure, reach) }

// MiB is a size as people read it.
func MiB(bytes int64) string { return fmt.Sprintf("%d MiB", bytes/mebibyte) }

// Seconds is a time as people read it.
func Seconds(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }
