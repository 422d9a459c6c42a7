package testcluster

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	modulePath = "github.com/musterhq/muster"

	// stopTimeout is how long a cluster may take to stop before it is killed.
	stopTimeout = 2 * time.Minute
)

// process is a running bin/muster-local.
type process struct {
	command  *exec.Cmd
	guardian *guardian
	ended    chan struct{} // closed when it has exited
	err      error         // how it exited; read after ended is closed
	forget   func() error  // removes its configuration file; nil if there is none
}

// findBinary finds bin/muster-local under the root of the module that contains the working directory, since go test
// runs tests in the folder of their package.
func findBinary() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("finding the working directory: %w", err)
	}
	for {
		module, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && bytes.HasPrefix(module, []byte("module "+modulePath+"\n")) {
			break
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("the tests do not run within Muster's source: run go test in a checkout")
		}
		dir = parent
	}
	binary := filepath.Join(dir, "bin", "muster-local")
	if _, err := os.Stat(binary); err != nil {
		return "", errors.New("bin/muster-local is not built: run make build, then the tests again")
	}
	return binary, nil
}

// startProcess starts a cluster and returns the path of its kubeconfig once it is ready.
func startProcess(ctx context.Context, binary string, arguments []string) (*process, string, error) {
	output, input, err := os.Pipe()
	if err != nil {
		return nil, "", fmt.Errorf("making a pipe: %w", err)
	}
	command := exec.Command(binary, arguments...)
	command.Stdout, command.Stderr = input, input
	command.SysProcAttr = ownGroup()
	if err := command.Start(); err != nil {
		return nil, "", errors.Join(fmt.Errorf("starting %s: %w", filepath.Base(binary), err), input.Close(), output.Close())
	}
	started := &process{command: command, ended: make(chan struct{})}
	go func() {
		started.err = command.Wait()
		close(started.ended)
	}()
	started.guardian, err = guard(command.Process.Pid)
	if err != nil {
		return nil, "", errors.Join(err, started.stop(), input.Close(), output.Close())
	}
	// Once this process has closed its writing end, reading ends when the cluster exits.
	if err := input.Close(); err != nil {
		return nil, "", errors.Join(err, started.stop())
	}
	found := make(chan ready, 1)
	go readOutput(output, found)
	select {
	case line := <-found:
		if line.kubeconfig != "" {
			return started, line.kubeconfig, nil
		}
		return nil, "", errors.Join(fmt.Errorf("the cluster ended before it was ready; it said:\n%s",
			line.said), started.stop())
	case <-ctx.Done():
		return nil, "", errors.Join(fmt.Errorf("waiting for the cluster to be ready: %w", ctx.Err()), started.stop())
	}
}

// stop asks the cluster to stop and waits until it has exited. It kills a cluster that takes too long.
func (p *process) stop() error {
	if err := p.command.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("asking the cluster to stop: %w", err)
	}
	late := time.NewTimer(stopTimeout)
	defer late.Stop()
	err := error(nil)
	select {
	case <-p.ended:
		err = p.err
	case <-late.C:
		err = errors.Join(fmt.Errorf("the cluster did not stop within %s and was killed", stopTimeout),
			p.command.Process.Kill())
		<-p.ended
	}
	if p.forget != nil {
		err = errors.Join(err, p.forget())
	}
	return errors.Join(err, p.guardian.dismiss())
}

// guardian is a shell that stops a process when this process dies. A parent death signal is not suitable: the child
// receives one for each thread of the parent, and the cluster would take the second for a request to exit at once,
// leaving its state behind.
type guardian struct {
	command *exec.Cmd
	alive   io.Closer // closed by the kernel when this process dies, which ends the shell's input
}

func guard(pid int) (*guardian, error) {
	command := exec.Command("/bin/sh", "-c", `read -r _; kill -TERM "$0"`, strconv.Itoa(pid))
	command.SysProcAttr = ownGroup()
	alive, err := command.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("making a pipe to the cluster's guardian: %w", err)
	}
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("starting the cluster's guardian: %w", err)
	}
	return &guardian{command: command, alive: alive}, nil
}

// dismiss kills the guardian before it can signal a PID that may have been reused.
func (g *guardian) dismiss() error {
	if g == nil {
		return nil
	}
	if err := g.command.Process.Kill(); err != nil {
		return fmt.Errorf("dismissing the cluster's guardian: %w", err)
	}
	_ = g.command.Wait() // it was killed, so there is always an error
	return nil
}

// ownGroup puts a child in a process group of its own, so that Ctrl-C does not reach it directly; the end of this
// process does.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// ready has the kubeconfig of the cluster's ready line, or all of its output if it exited without one.
type ready struct{ kubeconfig, said string }

// readOutput reads to the end, so that the cluster never waits for a reader.
func readOutput(output io.ReadCloser, found chan<- ready) {
	defer output.Close()
	var said strings.Builder
	lines := bufio.NewScanner(output)
	for lines.Scan() {
		if _, kubeconfig, ok := strings.Cut(lines.Text(), "KUBECONFIG="); ok && strings.HasPrefix(lines.Text(), "ready") {
			found <- ready{kubeconfig: strings.TrimSpace(kubeconfig)}
			_, _ = io.Copy(io.Discard, output)
			return
		}
		said.WriteString(lines.Text() + "\n")
	}
	found <- ready{said: said.String()}
}

func stateDir(kubeconfig string) string { return filepath.Dir(kubeconfig) }
