//go:build bench

package admission

import (
	"flag"
	"testing"

	"github.com/musterhq/muster/internal/testcluster"
)

var (
	scale          = flag.Float64("scale", 1, "share of the workloads to play; the figures hold for 1 only")
	operatorFlags  = flag.String("operator-flags", "", "more flags for the operator, such as --decision-log=FILE")
	operatorBinary = flag.String("operator", "../../../bin/muster-operator", "the operator to measure")
)

func TestMain(m *testing.M) {
	flag.Parse()
	testcluster.Main(m, testcluster.Options{})
}

// scaled returns the share of n that -scale selects, at least 1.
func scaled(n int) int { return max(1, int(float64(n)**scale)) }
