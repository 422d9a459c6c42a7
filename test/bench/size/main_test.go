//go:build bench

package size

import (
	"flag"
	"testing"

	"github.com/musterhq/muster/internal/testcluster"
)

var (
	scale = flag.Float64("scale", 1,
		"share of the queues, and so of the Workloads, pods and nodes; the figures hold for 1 only")
	operatorBinary = flag.String("operator", "../../../bin/muster-operator", "the operator to measure")
)

func TestMain(m *testing.M) {
	flag.Parse()
	testcluster.Main(m, testcluster.Options{SimNodes: scaled(nodes), SimGPUs: 8})
}

// scaled returns the share of n that -scale selects, at least 1.
func scaled(n int) int { return max(1, int(float64(n)**scale)) }
