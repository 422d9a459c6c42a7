package operatorproc

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/musterhq/muster/local/internal/atomicfile"
	"github.com/musterhq/muster/local/internal/freeport"
)

// readyPollInterval is the interval at which /readyz is polled.
const readyPollInterval = 20 * time.Millisecond

// process is one run of the operator.
type process struct {
	command *exec.Cmd
	probes  string // host:port of /readyz
	began   time.Time
	// exited is closed when the process has exited; then fate says how.
	exited chan struct{}
	fate   string
}

// start runs the operator on ports that are free now. If another program takes one first, the operator exits, and the
// next start uses other ports. Its output goes to log.
func start(c Config, log *os.File) (*process, error) {
	probes, err := freeport.OnLoopback()
	if err != nil {
		return nil, err
	}
	metrics, err := freeport.OnLoopback()
	if err != nil {
		return nil, err
	}
	p := &process{probes: probes.String(), began: time.Now(), exited: make(chan struct{})}
	arguments := []string{
		"--kubeconfig", c.Kubeconfig,
		"--leader-election-namespace", c.Namespace,
		// It is the only one: after a kill the next one must not wait for a lease.
		"--leader-elect=false",
		"--health-probe-bind-address", probes.String(),
		"--metrics-bind-address", metrics.String(),
	}
	if c.Rendezvous != "" {
		arguments = append(arguments, "--rendezvous-address", c.Rendezvous, "--rendezvous-bind-address", c.Rendezvous)
	}
	if c.Configuration != "" {
		arguments = append(arguments, "--config", c.Configuration)
	}
	p.command = exec.Command(c.Path, arguments...)
	p.command.Stdout, p.command.Stderr = log, log
	p.command.SysProcAttr = &syscall.SysProcAttr{
		// The child dies with this process even if that is killed.
		Pdeathsig: syscall.SIGKILL,
		// Ctrl-C must reach only this process, which then stops everything in order.
		Setpgid: true,
	}
	started := make(chan error)
	go p.live(started)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("starting the operator: %w", err)
	}
	if err := atomicfile.Write(c.PIDFile, []byte(strconv.Itoa(p.command.Process.Pid)+"\n")); err != nil {
		p.stop(0)
		return nil, fmt.Errorf("writing the operator's pid: %w", err)
	}
	return p, nil
}

// live starts the process and waits for it on one OS thread: the kernel sends the parent death signal when the thread
// that started the child exits, and the Go runtime ends idle threads.
func (p *process) live(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := p.command.Start()
	started <- err
	if err != nil {
		return
	}
	_ = p.command.Wait() // ProcessState has all that the error says
	p.fate = p.command.ProcessState.String()
	close(p.exited)
}

// awaitReady blocks until /readyz succeeds; it returns an error if the process exits before.
func (p *process) awaitReady(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-p.exited:
			cancel()
		case <-ctx.Done():
		}
	}()
	last := "it did not answer"
	err := wait.PollUntilContextCancel(ctx, readyPollInterval, true, func(ctx context.Context) (bool, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.probes+"/readyz", nil)
		if err != nil {
			return false, err
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return false, nil // not listening yet
		}
		response.Body.Close()
		last = "it last answered " + response.Status
		return response.StatusCode == http.StatusOK, nil
	})
	if err == nil {
		return nil
	}
	select {
	case <-p.exited:
		return fmt.Errorf("the operator ended before it was ready (%s)", p.fate)
	default:
		return fmt.Errorf("waiting for the operator to be ready: %w; %s", err, last)
	}
}

// lived returns how long the process has run.
func (p *process) lived() time.Duration { return time.Since(p.began) }

// stop ends the process, by force if it takes longer than patience.
func (p *process) stop(patience time.Duration) {
	_ = p.command.Process.Signal(syscall.SIGTERM) // it may be gone already
	select {
	case <-p.exited:
		return
	case <-time.After(patience):
	}
	_ = p.command.Process.Kill()
	<-p.exited
}
