package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// actAs is the environment variable that makes this test binary act as muster-local or as a fake operator, so that the
// tests run the current code in a process of its own.
const actAs = "MUSTER_LOCAL_TEST_ACT_AS"

func TestMain(m *testing.M) {
	switch os.Getenv(actAs) {
	case "":
		os.Exit(m.Run())
	case "muster-local":
		if strings.HasSuffix(os.Args[0], "operator") {
			serveAsOperator()
		}
		main()
	}
}

// serveAsOperator is a fake operator that is ready at once and runs until it is stopped. It ignores its configuration
// and installs nothing.
func serveAsOperator() {
	if at := slices.Index(os.Args, "--config"); at >= 0 {
		fmt.Fprintln(os.Stderr, "muster-operator: refused:", os.Args[at+1])
		os.Exit(1)
	}
	if slices.Contains(os.Args, "--install-for") {
		os.Exit(0)
	}
	probes := os.Args[slices.Index(os.Args, "--health-probe-bind-address")+1]
	http.HandleFunc("/readyz", func(http.ResponseWriter, *http.Request) {})
	fmt.Println(http.ListenAndServe(probes, nil))
	os.Exit(1)
}

// fakeOperator returns the path of a program that acts as the operator.
func fakeOperator(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "operator")
	if err := os.Symlink(self, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// process is a running `muster-local`.
type process struct {
	command *exec.Cmd
	out     *bufio.Reader
	// output is the output so far, up to the ready line.
	output strings.Builder
	errors bytes.Buffer
}

// readyWithin is long because tests share the machine.
const readyWithin = 3 * time.Minute

func program(args ...string) *exec.Cmd {
	command := exec.Command(os.Args[0], args...)
	command.Args[0] = "muster" // argv[0] as cmd/muster sets it
	command.Env = append(os.Environ(), actAs+"=muster-local")
	return command
}

// up starts a cluster and returns when it is ready. The cluster is killed when the test ends, if it has not ended
// before.
func up(t *testing.T, flags ...string) *process {
	t.Helper()
	return upTo(t, "ready", flags...)
}

// upTo runs `muster-local up`, and returns at the output line with that prefix.
func upTo(t *testing.T, line string, flags ...string) *process {
	t.Helper()
	until := line
	p := &process{command: program(append([]string{"up"}, flags...)...)}
	p.command.Stderr = &p.errors
	out, err := p.command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.out = bufio.NewReader(out)
	if err := p.command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.command.Process.Kill()
		_ = p.command.Wait()
	})
	// Killing the process ends its output, and so the loop.
	watchdog := time.AfterFunc(readyWithin, func() { _ = p.command.Process.Kill() })
	defer watchdog.Stop()
	for {
		line, err := p.out.ReadString('\n')
		p.output.WriteString(line)
		if strings.HasPrefix(line, until) {
			return p
		}
		if err != nil {
			t.Fatalf("up %s ended before the line %q:\n%s%s", strings.Join(flags, " "), until, p.output.String(),
				p.errors.String())
		}
	}
}

// kubeconfig returns the path that the ready line contains.
func (p *process) kubeconfig() string {
	_, path, _ := strings.Cut(p.output.String(), "export KUBECONFIG=")
	return strings.TrimSpace(path)
}

func (p *process) client(t *testing.T) *kubernetes.Clientset {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", p.kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// stop sends the signal and returns the exit code.
func (p *process) stop(t *testing.T, signal syscall.Signal) int {
	t.Helper()
	if err := p.command.Process.Signal(signal); err != nil {
		t.Fatal(err)
	}
	return p.wait()
}

func (p *process) wait() int {
	_, _ = io.Copy(&p.output, p.out)
	_ = p.command.Wait()
	return p.command.ProcessState.ExitCode()
}

// fails runs a command that must fail, and returns its one line on standard error and its exit code.
func fails(t *testing.T, args ...string) (line string, code int) {
	t.Helper()
	command := program(args...)
	var errors bytes.Buffer
	command.Stderr = &errors
	if err := command.Run(); err == nil {
		t.Errorf("muster-local %s succeeded, want a failure", strings.Join(args, " "))
	}
	line = errors.String()
	if strings.Count(line, "\n") != 1 || !strings.HasPrefix(line, "muster: ") {
		t.Errorf("standard error of muster %s is not one line:\n%s", strings.Join(args, " "), line)
	}
	return strings.TrimSpace(line), command.ProcessState.ExitCode()
}

func alive(pid int) bool { return syscall.Kill(pid, 0) == nil }
