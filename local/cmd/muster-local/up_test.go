package main

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestAClusterKeepsItsDataBetweenStarts(t *testing.T) {
	dir := filepath.Join(t.TempDir(), strings.Repeat("long-", 30))
	first := up(t, "--dir", dir, "--no-operator", "--nodes", "0")
	if info, err := os.Stat(first.kubeconfig()); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("kubeconfig = %v, %v, want mode 600", info, err)
	}
	stored := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "kept"}, Data: map[string]string{"key": "value"}}
	if _, err := first.client(t).CoreV1().ConfigMaps("default").Create(t.Context(), stored,
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}

	t.Run("its directory is refused to another cluster", func(t *testing.T) {
		line, code := fails(t, "up", "--dir", dir, "--no-operator")
		if code != exitFailed || !strings.Contains(line, "process "+strconv.Itoa(first.command.Process.Pid)) ||
			!strings.Contains(line, "muster down --dir "+dir) {
			t.Errorf("exit code %d and error %s, want the directory refused", code, line)
		}
	})

	if code := first.stop(t, syscall.SIGTERM); code != 0 || first.errors.Len() != 0 {
		t.Errorf("after SIGTERM: exit code %d and errors %q, want none", code, first.errors.String())
	}

	second := up(t, "--dir", dir, "--no-operator", "--nodes", "0")
	got, err := second.client(t).CoreV1().ConfigMaps("default").Get(t.Context(), "kept", metav1.GetOptions{})
	if err != nil || got.Data["key"] != "value" {
		t.Errorf("the second start reads %v, %v, want the data of the first", got, err)
	}

	t.Run("down stops a cluster from another process", func(t *testing.T) {
		ended := make(chan int, 1)
		go func() { ended <- second.wait() }()
		out, err := program("down", "--dir", dir).Output()
		if err != nil || !strings.HasPrefix(string(out), "stopped process ") {
			t.Errorf("output of down = %q, %v", out, err)
		}
		if code := <-ended; code != 0 {
			t.Errorf("up exited with code %d: %s", code, second.errors.String())
		}
	})
	t.Run("down without a cluster", func(t *testing.T) {
		out, err := program("down", "--dir", dir).Output()
		if err != nil || !strings.HasPrefix(string(out), "nothing runs in ") {
			t.Errorf("output of down = %q, %v", out, err)
		}
	})
}

func TestEphemeralClustersRunSideBySideAndLeaveNothing(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	one := up(t, "--ephemeral", "--no-operator")
	other := up(t, "--ephemeral", "--no-operator")
	if _, err := one.client(t).CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "of-one"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := other.client(t).CoreV1().Namespaces().Get(t.Context(), "of-one",
		metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("reading the first cluster's namespace in the other: got error %v, want not found", err)
	}
	for _, p := range []*process{one, other} {
		createPod(t, p.client(t), "same-name", "true")
		awaitPhase(t, p.client(t), "same-name", corev1.PodSucceeded)
	}
	for _, p := range []*process{one, other} {
		if code := p.stop(t, syscall.SIGINT); code != 0 {
			t.Errorf("after Ctrl-C: exit code %d: %s", code, p.errors.String())
		}
	}
	left, err := os.ReadDir(os.Getenv("TMPDIR"))
	if err != nil || len(left) != 0 {
		t.Errorf("files left = %v, %v, want none", left, err)
	}
}

func TestAKilledClusterEndsItsOperatorAndStartsAgain(t *testing.T) {
	dir, operator := t.TempDir(), fakeOperator(t)
	first := up(t, "--dir", dir, "--operator", operator, "--nodes", "0")
	child := operatorPID(t, dir)
	if !alive(child) {
		t.Fatalf("the operator, process %d, is not running", child)
	}
	first.stop(t, syscall.SIGKILL)
	for deadline := time.Now().Add(readyWithin); alive(child); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the operator, process %d, still runs after its parent was killed", child)
		}
	}

	second := up(t, "--dir", dir, "--operator", operator, "--nodes", "0")
	child = operatorPID(t, dir)
	// As from make in a terminal: one signal to the process group, and one from make.
	if err := second.command.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if code := second.stop(t, syscall.SIGTERM); code != 0 {
		t.Errorf("the second start exited with code %d: %s", code, second.errors.String())
	}
	if alive(child) {
		t.Errorf("the operator, process %d, still runs after its parent was stopped", child)
	}
	if _, err := os.Stat(filepath.Join(dir, "operator.pid")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the operator's pid file is left: %v", err)
	}
}

// TestInterruptedStartEndsCleanly interrupts the start at each of its steps.
func TestInterruptedStartEndsCleanly(t *testing.T) {
	for _, step := range []string{"state is in", "etcd serves", "kube-apiserver serves", "node local-0"} {
		t.Run("at "+step, func(t *testing.T) {
			p := upTo(t, step, "--ephemeral", "--no-operator")
			if code := p.stop(t, syscall.SIGINT); code != 0 {
				t.Errorf("exit code %d: %s", code, p.errors.String())
			}
			if p.errors.Len() > 0 {
				t.Errorf("errors = %s, want none", p.errors.String())
			}
			line, _, _ := strings.Cut(p.output.String(), " (")
			if _, err := os.Stat(strings.TrimPrefix(line, "state is in ")); !os.IsNotExist(err) {
				t.Errorf("the state directory is left: %v", err)
			}
		})
	}
}

func TestUsageErrorIsOneLineWithAdvice(t *testing.T) {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	port := strconv.Itoa(listener.Addr().(*net.TCPAddr).Port)
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}

	for _, test := range []struct {
		name string
		args string
		code int
		say  []string
	}{
		{"a port in use", "up --ephemeral --no-operator --port " + port, exitFailed, []string{port, "taken", "--port"}},
		{"a directory that cannot be created", "up --no-operator --dir " + file + "/below", exitFailed,
			[]string{file, "not a directory", "--dir"}},
		{"a missing operator", "up --ephemeral --operator " + file + "-none", exitUsage,
			[]string{file + "-none", "no such file", "make build", "--no-operator"}},
		{"an operator that is not executable", "up --ephemeral --operator " + file, exitUsage,
			[]string{file, "not an executable file"}},
		{"an unknown flag", "up --frobnicate", exitUsage, []string{"--frobnicate", "`muster up --help`"}},
		{"a flag of a linked package", "up --version", exitUsage, []string{"--version", "`muster up --help`"}},
		{"an unknown flag of down", "down --port 1", exitUsage, []string{"--port", "down --help"}},
		{"a flag that is not a number", "up --nodes many", exitUsage, []string{"many", "--nodes"}},
		{"a negative number", "up --nodes -1", exitUsage, []string{"--nodes", "0 or more"}},
		{"too many nodes", "up --nodes 1000000", exitUsage, []string{"--nodes", "100", "--sim-nodes"}},
		{"a product that is not a label", "up --ephemeral --no-operator --sim-nodes 1 --sim-gpu-product bad@name", exitUsage,
			[]string{"--sim-gpu-product", "bad@name"}},
		{"an invalid port", "up --port 70000", exitUsage, []string{"70000", "65535"}},
		{"an unknown runtime", "up --runtime docker", exitUsage, []string{"docker", "exec or none"}},
		{"a directory of an ephemeral cluster", "up --ephemeral --dir /x", exitUsage, []string{"--ephemeral", "--dir"}},
		{"an operator and no operator", "up --no-operator --operator /x", exitUsage, []string{"--operator", "--no-operator"}},
		{"a configuration without an operator", "up --no-operator --config " + file, exitUsage,
			[]string{"--config", "--no-operator"}},
		{"an invalid configuration", "up --ephemeral --operator " + fakeOperator(t) + " --config " + file, exitFailed,
			[]string{"refused", file}},
		{"an argument", "up here", exitUsage, []string{"here", "up --help"}},
		{"an unknown command", "sideways", exitUsage, []string{"sideways", "--help"}},
		{"no command", "", exitUsage, []string{"`muster up`", "--help"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			line, code := fails(t, strings.Fields(test.args)...)
			if code != test.code {
				t.Errorf("exit code %d, want %d", code, test.code)
			}
			for _, word := range test.say {
				if !strings.Contains(line, word) {
					t.Errorf("the error does not have %q: %s", word, line)
				}
			}
		})
	}
}

func TestADirectoryThatIsNotWritableIsRefused(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may write everywhere")
	}
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o500); err != nil {
		t.Fatal(err)
	}
	line, code := fails(t, "up", "--no-operator", "--dir", dir)
	if code != exitFailed || !strings.Contains(line, "permission denied") || !strings.Contains(line, "--dir") {
		t.Errorf("exit code %d and error %s, want permission denied", code, line)
	}
}

func operatorPID(t *testing.T, dir string) int {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(dir, "operator.pid"))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(content)))
	if err != nil {
		t.Fatal(err)
	}
	return pid
}
