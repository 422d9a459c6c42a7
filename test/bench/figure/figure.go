// Package figure prints the figures of benchmarks as rows of a table, and reads the CPU time and memory of processes
// from /proc. Only benchmarks and package operator may import it.
package figure

import (
	"fmt"
	"testing"
	"time"
)

const mebibyte = 1 << 20

// Reach prints a row with the limit that the figure must reach, and fails the test unless ok.
func Reach(t testing.TB, what, figure, reach string, ok bool) {
	t.Helper()
	row(what, figure, reach)
	if !ok {
		t.Errorf("%s: got %s, must reach %s", what, figure, reach)
	}
}

// Note prints a row without a limit.
func Note(what, figure string) { row(what, figure, "-") }

func row(what, figure, reach string) { fmt.Printf("| %-72s | %12s | %12s |\n", what, figure, reach) }

// MiB formats a number of bytes in mebibytes, rounded down.
func MiB(bytes int64) string { return fmt.Sprintf("%d MiB", bytes/mebibyte) }

// Seconds formats a duration in seconds with two decimals.
func Seconds(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }
