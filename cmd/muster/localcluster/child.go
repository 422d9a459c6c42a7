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

// stopGrace is how long a child gets to stop its cluster before it is killed.
const stopGrace = 30 * time.Second

// Child is a `muster-local up` that this process started and must Stop.
type Child struct {
	command *exec.Cmd
	ready   chan string   // receives the kubeconfig once
	exited  chan struct{} // closed when the process is gone and its output read
	waitErr error         // set before exited is closed
	last    string        // the last line it wrote; set before exited is closed
	served  bool          // it has been ready; set before exited is closed
}

// Start runs `binary up args…` in a process group of its own: a Ctrl-C in the terminal reaches this process only,
// which then decides when to stop the cluster. Each line that the child writes is given to onLine.
func Start(binary string, args []string, onLine func(string)) (*Child, error) {
	child := &Child{
		command: exec.Command(binary, append([]string{"up"}, args...)...),
		ready:   make(chan string, 1),
		exited:  make(chan struct{}),
	}
	child.command.SysProcAttr = childAttributes()
	// A process of the cluster that outlives it must not hold this one through an inherited output.
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

// read passes lines on until the child is gone. A line longer than the buffer would end the scan and then block the
// child, so what remains is drained.
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
			c.ready <- kubeconfig // has room for the one
		}
	}
	_, _ = io.Copy(io.Discard, output)
}

// kubeconfigOf reads the path out of a ready line, `ready in 3.9s: export KUBECONFIG=PATH`; "" for any other line.
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

// Ready waits for the child's ready line and gives the kubeconfig that it names. It fails when the child ends before.
func (c *Child) Ready(ctx context.Context) (string, error) {
	select {
	case kubeconfig := <-c.ready:
		return kubeconfig, nil
	case <-c.exited:
		return "", c.ExitError()
	case <-ctx.Done():
	}
	select {
	case <-c.exited: // which may be why the caller gave up
		return "", c.ExitError()
	default:
		return "", fmt.Errorf("wait for the cluster to be ready: %w", context.Cause(ctx))
	}
}

// Exited is closed when the child is gone.
func (c *Child) Exited() <-chan struct{} { return c.exited }

// ExitError says why a child that is gone went, with its last line as the reason. Call it after Exited is closed.
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

// Stop asks the child to stop its cluster and waits until it is gone; after 30 seconds it is killed, which is an error.
func (c *Child) Stop() error {
	if err := c.command.Process.Signal(syscall.SIGTERM); err != nil {
		// Already gone: nothing is left to stop.
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
