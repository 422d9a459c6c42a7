//go:build bench

package genericjob

import (
	"flag"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/testcluster"
	"github.com/musterhq/muster/test/bench/operator"
)

var (
	scale          = flag.Float64("scale", 1, "share of the small jobs to run; the figures hold for 1 only")
	operatorBinary = flag.String("operator", "../../../bin/muster-operator", "the operator to measure")
)

func TestMain(m *testing.M) {
	flag.Parse()
	testcluster.Main(m, testcluster.Options{SimNodes: 80})
}

// startOperator starts an operator that ends with the test, and waits until its caches have synced.
func startOperator(t *testing.T, cluster *testcluster.Cluster) *operator.Operator {
	t.Helper()
	o := operator.Start(t, *operatorBinary, cluster)
	o.AwaitReady(t)
	return o
}

// reconciles returns how many reconciles of GenericJobs the operator has made, and their total time.
func reconciles(t *testing.T, o *operator.Operator) (count uint64, took time.Duration) {
	t.Helper()
	count, sum := o.Observed(t, "controller_runtime_reconcile_time_seconds", "controller=GenericJob.batch.tensorstack.dev")
	return count, time.Duration(sum * float64(time.Second))
}
