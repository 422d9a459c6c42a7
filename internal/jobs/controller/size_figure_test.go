//go:build bench

package controller_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/musterhq/muster/test/bench/figure"
)

// TestReconcileTime measures a reconcile of a JobSet of 1,000 Jobs with nothing left to do, and of smaller and larger
// ones. The shortest of several runs counts: other processes can only make a run longer.
func TestReconcileTime(t *testing.T) {
	const most = 5 * time.Millisecond
	best := func(size int) time.Duration {
		reconcile, best := largeJobSet(t, size), time.Hour
		for range 100 {
			start := time.Now()
			reconcile()
			best = min(best, time.Since(start))
		}
		return best
	}
	thousand := best(1000)
	figure.Reach(t, "reconcile of a JobSet of 1,000 Jobs", thousand.Round(10*time.Microsecond).String(), most.String(),
		thousand <= most)
	for _, size := range []int{100, 2000, 5000, 10_000} {
		figure.Note(fmt.Sprintf("  of %d", size), best(size).Round(10*time.Microsecond).String())
	}
}
