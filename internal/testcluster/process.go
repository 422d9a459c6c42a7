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
	ended    chan struct{} // closed when it has ended
	err      error         // how it ended; read after ended is closed
	forget   func() error  // removes what was written for it; nil if nothing was
}

// findBinary looks for bin/muster-local under the root of the module that the working directory lies in: go test runs
// each package's tests in its own folder.
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

// startProcess starts a cluster and gives the path of its kubeconfig once it is ready.
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
	// With our end closed, reading ends when the cluster does.
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
		return nil, "", errors.Join(fmt.Errorf("the cluster ended before it was ready; it said:\n%s", line.said), started.stop())
	case <-ctx.Done():
		return nil, "", errors.Join(fmt.Errorf("waiting for the cluster to be ready: %w", ctx.Err()), started.stop())
	}
}

// stop asks the cluster to stop and waits until it has. One that will not is killed.
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
		err = errors.Join(fmt.Errorf("the cluster did not stop within %s and was killed", stopTimeout), p.command.Process.Kill())
		<-p.ended
	}
	if p.forget != nil {
		err = errors.Join(err, p.forget())
	}
	return errors.Join(err, p.guardian.dismiss())
}

// guardian is a shell that stops a process when this one dies. The kernel's own signal on a parent's death would not do:
// it comes once for each thread of the parent, and a cluster takes a second signal for impatience and leaves its state
// behind.
type guardian struct {
	command *exec.Cmd
	alive   io.Closer // never closed by us: the kernel does it when this process dies, which ends what the shell reads
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

// dismiss ends the guardian without a signal to a process id that may by now be another's.
func (g *guardian) dismiss() error {
	if g == nil {
		return nil
	}
	if err := g.command.Process.Kill(); err != nil {
		return fmt.Errorf("dismissing the cluster's guardian: %w", err)
	}
	_ = g.command.Wait() // It was killed: that is no news.
	return nil
}

// ownGroup keeps a terminal's Ctrl-C from a child, which the end of this process reaches anyway.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// ready is the line in which a cluster says that it is, or all that it said where it ended without.
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
