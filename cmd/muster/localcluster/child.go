package localcluster

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// stopGrace is how long a child may take to stop its cluster before it is killed.
const stopGrace = 30 * time.Second

// Child is a `muster-local up` that this process started and must Stop.
type Child struct {
	command *exec.Cmd
	ready   chan string   // receives the kubeconfig once
	exited  chan struct{} // closed when the process has exited and its output is read
	waitErr error         // set before exited is closed
	last    string        // the last line it wrote; set before exited is closed
	served  bool          // whether it was ready; set before exited is closed
}

// Start runs `binary up args…` in a process group of its own: Ctrl-C in the terminal reaches only this process, which
// then decides when to stop the cluster. onLine is called for each line that the child prints.
func Start(binary string, args []string, onLine func(string)) (*Child, error) {
	child := &Child{
		command: exec.Command(binary, append([]string{"up"}, args...)...),
		ready:   make(chan string, 1),
		exited:  make(chan struct{}),
	}
	child.command.SysProcAttr = childAttributes()
	// A process of the cluster may outlive the child and keep its output open; do not wait for that.
	child.command.WaitDelay = 5 * time.Second
	output, input := io.Pipe()
	child.command.Stdout, child.command.Stderr = input, input
	if err := child.command.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", binary, err)
	}

	read := make(chan struct{})
	go func() {
		defer close(read)
		child.read(output, onLine)
	}()
	go func() {
		child.waitErr = child.command.Wait()
		_ = input.Close() // ends read
		<-read
		close(child.exited)
	}()
	return child, nil
}

// read passes lines to onLine until the child exits. A line longer than the buffer ends the scan, which would block the
// child, so the remaining output is drained.
func (c *Child) read(output io.Reader, onLine func(string)) {
	lines := bufio.NewScanner(output)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		if strings.TrimSpace(line) != "" {
			c.last = line
		}
		onLine(line)
		if kubeconfig := kubeconfigOf(line); kubeconfig != "" && !c.served {
			c.served = true
			c.ready <- kubeconfig // buffered
		}
	}
	_, _ = io.Copy(io.Discard, output)
}

// kubeconfigOf returns the path in a ready line, `ready in 3.9s: export KUBECONFIG=PATH`; "" for any other line.
func kubeconfigOf(line string) string {
	const marker = "KUBECONFIG="
	if !strings.HasPrefix(line, "ready") {
		return ""
	}
	_, path, found := strings.Cut(line, marker)
	if !found {
		return ""
	}
	return strings.Trim(strings.TrimSpace(path), `"'`)
}

// Ready waits for the child's ready line and returns the kubeconfig in it. It fails if the child exits before.
func (c *Child) Ready(ctx context.Context) (string, error) {
	select {
	case kubeconfig := <-c.ready:
		return kubeconfig, nil
	case <-c.exited:
		return "", c.ExitError()
	case <-ctx.Done():
	}
	select {
	case <-c.exited: // prefer this reason: it may be why ctx was cancelled
		return "", c.ExitError()
	default:
		return "", fmt.Errorf("wait for the cluster to be ready: %w", context.Cause(ctx))
	}
}

// Exited returns a channel that is closed when the child has exited.
func (c *Child) Exited() <-chan struct{} { return c.exited }

// ExitError returns why the child exited, with its last line of output. Call it only after Exited is closed.
func (c *Child) ExitError() error {
	when, how := "before it was ready", "exit code 0"
	if c.served {
		when = "while it was in use"
	}
	if c.waitErr != nil {
		how = c.waitErr.Error()
	}
	if c.last == "" {
		return fmt.Errorf("the cluster stopped %s (%s)", when, how)
	}
	return fmt.Errorf("the cluster stopped %s (%s): %s", when, how, c.last)
}

// Stop asks the child to stop its cluster and waits for it to exit. After stopGrace the child is killed, and Stop
// returns an error.
func (c *Child) Stop() error {
	if err := c.command.Process.Signal(syscall.SIGTERM); err != nil {
		// It has exited already.
		<-c.exited
		return nil
	}
	select {
	case <-c.exited:
		return nil
	case <-time.After(stopGrace):
		_ = c.command.Process.Kill()
		<-c.exited
		return errors.New("the cluster did not stop in 30s and was killed")
	}
}
