//go:build bench

package genericjob

import (
	"bytes"
	"flag"
	"net"
	"net/http"
	"os/exec"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/musterhq/muster/internal/testcluster"
	"github.com/musterhq/muster/test/bench/figure"
)

var (
	scale          = flag.Float64("scale", 1, "share of the small jobs to run; the figures hold for 1 only")
	operatorBinary = flag.String("operator", "../../../bin/muster-operator", "the operator to measure")
)

func TestMain(m *testing.M) {
	flag.Parse()
	testcluster.Main(m, testcluster.Options{SimNodes: 80})
}

// operator is a running operator, a child of the benchmark.
type operator struct {
	figure.Process
	metrics string
	log     bytes.Buffer
	ended   chan struct{}
}

// startOperator starts one that ends with the test, and waits until it has read the cluster.
func startOperator(t *testing.T, cluster *testcluster.Cluster) *operator {
	t.Helper()
	o := &operator{metrics: freeAddress(t), ended: make(chan struct{})}
	probes := freeAddress(t)
	command := exec.Command(*operatorBinary, "--kubeconfig", cluster.Kubeconfig, "--leader-elect=false",
		"--metrics-bind-address", o.metrics, "--health-probe-bind-address", probes)
	command.Stdout, command.Stderr = &o.log, &o.log
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // it must not outlive the benchmark
	started := make(chan error)
	go func() { // on one thread: the kernel takes the end of the thread that started a child for the parent's death
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := command.Start()
		started <- err
		if err == nil {
			_ = command.Wait() // how it ended is seen by who waits for something of it
			close(o.ended)
		}
	}()
	if err := <-started; err != nil {
		t.Fatalf("starting the operator (make build makes it): %v", err)
	}
	o.Process = figure.Process(command.Process.Pid)
	t.Cleanup(func() {
		_ = command.Process.Signal(syscall.SIGTERM) // it may be gone already
		<-o.ended
		if log := o.log.String(); t.Failed() {
			t.Logf("the end of the operator's log:\n%s", log[max(0, len(log)-4000):])
		}
	})
	for {
		if response, err := http.Get("http://" + probes + "/readyz"); err == nil {
			response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return o
			}
		}
		select {
		case <-time.After(10 * time.Millisecond): // there is nothing to subscribe to
		case <-o.ended:
			t.Fatal("the operator ended before it was ready")
		case <-t.Context().Done():
			t.Fatal(t.Context().Err())
		}
	}
}

// reconciles are how many looks at GenericJobs the operator has taken, and how long.
func (o *operator) reconciles(t *testing.T) (count uint64, took time.Duration) {
	t.Helper()
	response, err := http.Get("http://" + o.metrics + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range families["controller_runtime_reconcile_time_seconds"].GetMetric() {
		for _, label := range m.Label {
			if label.GetName() == "controller" && label.GetValue() == "GenericJob.batch.tensorstack.dev" {
				return m.Histogram.GetSampleCount(), time.Duration(m.Histogram.GetSampleSum() * float64(time.Second))
			}
		}
	}
	return 0, 0
}

func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}
