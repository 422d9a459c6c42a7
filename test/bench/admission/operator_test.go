//go:build bench

package admission

import (
	"bytes"
	"net"
	"net/http"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/testcluster"
	"github.com/musterhq/muster/test/bench/figure"
)

// operator is a running operator, a child of the benchmark.
type operator struct {
	figure.Process
	command *exec.Cmd
	probes  string
	log     bytes.Buffer
	began   time.Time
	ended   chan struct{}
}

// startOperator starts one. It ends with the test, if nobody ends it before.
func startOperator(t *testing.T, cluster *testcluster.Cluster) *operator {
	t.Helper()
	o := &operator{probes: freeAddress(t), began: time.Now(), ended: make(chan struct{})}
	o.command = exec.Command(*operatorBinary, append([]string{"--kubeconfig", cluster.Kubeconfig,
		"--leader-elect=false", // after a kill there is nobody to wait for
		"--metrics-bind-address=0", "--health-probe-bind-address", o.probes}, strings.Fields(*operatorFlags)...)...)
	o.command.Stdout, o.command.Stderr = &o.log, &o.log
	o.command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // it must not outlive the benchmark
	started := make(chan error)
	go o.live(started)
	if err := <-started; err != nil {
		t.Fatalf("starting the operator (make build makes it): %v", err)
	}
	o.Process = figure.Process(o.command.Process.Pid)
	t.Cleanup(func() {
		o.end(syscall.SIGTERM)
		if t.Failed() {
			t.Logf("the last lines of the operator's log:\n%s", lastLines(o.log.String(), 20))
		}
	})
	return o
}

// live starts the process and waits for its end on one thread: the kernel takes the
// end of the thread that started a child for the parent's death.
func (o *operator) live(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := o.command.Start()
	started <- err
	if err == nil {
		_ = o.command.Wait() // how it ended is seen by who waits for something of it
		close(o.ended)
	}
}

// end sends the signal and waits for the end.
func (o *operator) end(signal syscall.Signal) {
	_ = o.command.Process.Signal(signal) // it may be gone already
	<-o.ended
}

// awaitReady waits until the operator says that it has read what the cluster has,
// and gives the time from its start.
func (o *operator) awaitReady(t *testing.T) time.Duration {
	t.Helper()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for {
		if response, err := http.Get("http://" + o.probes + "/readyz"); err == nil {
			response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return time.Since(o.began)
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
