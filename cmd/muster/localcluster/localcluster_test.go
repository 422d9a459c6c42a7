package localcluster

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

func TestKubeconfigOfReadyLine(t *testing.T) {
	tests := []struct{ line, want string }{
		{"ready in 3.9s: export KUBECONFIG=/tmp/a b/kubeconfig", "/tmp/a b/kubeconfig"},
		{"ready in 3.9s: export KUBECONFIG='/tmp/x'", "/tmp/x"},
		{"starting: KUBECONFIG=/tmp/x", ""},
		{"ready soon", ""},
	}
	for _, test := range tests {
		if got := kubeconfigOf(test.line); got != test.want {
			t.Errorf("kubeconfigOf(%q) = %q, want %q", test.line, got, test.want)
		}
	}
}

// program writes a shell script that acts as muster-local.
func program(t *testing.T, script string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), binaryName)
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestChildReportsReadyAndStops(t *testing.T) {
	path := program(t, `sleep 600 > /dev/null 2>&1 & waiting=$!
trap 'kill $waiting; echo stopped; exit 0' TERM
echo "etcd $1 $2"
echo "ready in 1s: export KUBECONFIG=/tmp/x"
wait`)
	var lines []string
	child, err := Start(path, []string{"--ephemeral"}, func(line string) { lines = append(lines, line) })
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig, err := child.Ready(context.Background())
	if err != nil || kubeconfig != "/tmp/x" {
		t.Errorf("Ready = %q, %v", kubeconfig, err)
	}
	if err := child.Stop(); err != nil {
		t.Errorf("Stop: %v", err)
	}
	if got := strings.Join(lines, "|"); got != "etcd up --ephemeral|ready in 1s: export KUBECONFIG=/tmp/x|stopped" {
		t.Errorf("output lines = %q", got)
	}
}

func TestChildThatExitsEarlyReportsWhy(t *testing.T) {
	child, err := Start(program(t, "echo 'port 1 is taken: choose another with --port' >&2; exit 3"), nil, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	_, err = child.Ready(context.Background())
	const want = "the cluster stopped before it was ready (exit status 3): port 1 is taken: choose another with --port"
	if err == nil || err.Error() != want {
		t.Errorf("Ready: %v, want %s", err, want)
	}
	over, giveUp := context.WithCancel(context.Background())
	giveUp()
	for range 50 { // select chooses at random, so repeat
		if _, err := child.Ready(over); err == nil || err.Error() != want {
			t.Fatalf("Ready with an ended context: %v, want %s", err, want)
		}
	}
	if err := child.Stop(); err != nil {
		t.Errorf("Stop of a child that has exited: %v", err)
	}
}

func TestMissingBinaryNamesTheNextCommand(t *testing.T) {
	_, err := beside(filepath.Join(t.TempDir(), "muster"))
	if err == nil || !strings.Contains(err.Error(), "make build") || strings.Contains(err.Error(), "\n") {
		t.Errorf("got %v, want one line that says `make build`", err)
	}
}

func TestRunningKubeconfig(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got := runningKubeconfig(dir); got != "" {
		t.Errorf("kubeconfig of an empty directory = %q, want none", got)
	}
	write("kubeconfig", "")
	write("pid", strconv.Itoa(os.Getpid())+"\n")
	if got, want := runningKubeconfig(dir), filepath.Join(dir, "kubeconfig"); got != want {
		t.Errorf("kubeconfig of a running cluster = %q, want %q", got, want)
	}
	write("pid", "99999999")
	if got := runningKubeconfig(dir); got != "" {
		t.Errorf("kubeconfig of a stopped cluster = %q, want none", got)
	}
}

func TestUseRunningNeverReplacesTheUsersOwnChoice(t *testing.T) {
	state, home := t.TempDir(), t.TempDir()
	t.Setenv("XDG_STATE_HOME", state)
	t.Setenv("HOME", home)
	dir := filepath.Join(state, "muster")
	running := filepath.Join(dir, "kubeconfig")
	for path, content := range map[string]string{running: "", filepath.Join(dir, "pid"): strconv.Itoa(os.Getpid())} {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	after := func(kubeconfig string) string {
		t.Setenv("KUBECONFIG", kubeconfig)
		UseRunning()
		return os.Getenv("KUBECONFIG")
	}
	if got := after(""); got != running {
		t.Errorf("KUBECONFIG without a user's choice = %q, want %q", got, running)
	}
	if got := after("/mine"); got != "/mine" {
		t.Errorf("KUBECONFIG=/mine was replaced by %q", got)
	}
	if err := os.MkdirAll(filepath.Join(home, ".kube"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, ".kube", "config"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := after(""); got != "" {
		t.Errorf("with ~/.kube/config KUBECONFIG = %q, want none", got)
	}
}
