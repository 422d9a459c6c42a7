// Package operator runs the operator as a child of a benchmark, so that the floor can be measured without it. Only
// benchmarks may import it.
package operator

import (
	"bytes"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/musterhq/muster/internal/install"
	"github.com/musterhq/muster/internal/testcluster"
	"github.com/musterhq/muster/test/bench/figure"
)

// Operator is a running operator.
type Operator struct {
	figure.Process
	command *exec.Cmd
	probes  string
	metrics string
	log     bytes.Buffer
	// Began is when it was started.
	Began time.Time
	ended chan struct{}
}

// Start starts the binary, with flags of the caller beside its own. It ends with the test, if nobody ends it before.
func Start(t *testing.T, binary string, cluster *testcluster.Cluster, flags ...string) *Operator {
	t.Helper()
	o := &Operator{probes: freeAddress(t), metrics: freeAddress(t), Began: time.Now(), ended: make(chan struct{})}
	o.command = exec.Command(binary, append([]string{"--kubeconfig", asOperator(t, cluster),
		"--leader-elect=false", // after a kill there is nobody to wait for
		"--metrics-bind-address", o.metrics, "--health-probe-bind-address", o.probes}, flags...)...)
	o.command.Stdout, o.command.Stderr = &o.log, &o.log
	o.command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // it must not outlive the benchmark
	started := make(chan error)
	go o.live(started)
	if err := <-started; err != nil {
		t.Fatalf("starting the operator (make build makes it): %v", err)
	}
	o.Process = figure.Process(o.command.Process.Pid)
	t.Cleanup(func() {
		o.End(syscall.SIGTERM)
		if t.Failed() {
			t.Logf("the last lines of the operator's log:\n%s", lastLines(o.log.String(), 20))
		}
	})
	return o
}

// asOperator gives a kubeconfig by which one is the operator to the API server: its policies take what only the operator
// may do from nobody else.
func asOperator(t *testing.T, cluster *testcluster.Cluster) string {
	t.Helper()
	config, err := clientcmd.LoadFromFile(cluster.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	for _, user := range config.AuthInfos {
		user.Impersonate, user.ImpersonateGroups = install.DefaultOperatorUser, []string{"system:masters"}
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// live starts the process and waits for its end on one thread: the kernel takes the
// end of the thread that started a child for the parent's death.
func (o *Operator) live(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := o.command.Start()
	started <- err
	if err == nil {
		_ = o.command.Wait() // how it ended is seen by who waits for something of it
		close(o.ended)
	}
}

// End sends the signal and waits for the end.
func (o *Operator) End(signal syscall.Signal) {
	_ = o.command.Process.Signal(signal) // it may be gone already
	<-o.ended
}

// AwaitReady waits until the operator says that it has read what the cluster has,
// and gives the time from its start.
func (o *Operator) AwaitReady(t *testing.T) time.Duration {
	t.Helper()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for {
		if response, err := http.Get("http://" + o.probes + "/readyz"); err == nil {
			response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return time.Since(o.Began)
			}
		}
		select {
		case <-ticker.C: // there is nothing to subscribe to
		case <-o.ended:
			t.Fatal("the operator ended before it was ready")
		case <-t.Context().Done():
			t.Fatal(t.Context().Err())
		}
	}
}

// Observed is how often a histogram of the operator's own was told something, and the sum of it.
func (o *Operator) Observed(t *testing.T, histogram string) (count uint64, sum float64) {
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
	for _, m := range families[histogram].GetMetric() {
		count += m.GetHistogram().GetSampleCount()
		sum += m.GetHistogram().GetSampleSum()
	}
	return count, sum
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

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
