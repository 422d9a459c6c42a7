package harness

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Explain returns the output of `muster explain` for a job, named as kind/name, and its exit code.
func (w *World) Explain(job string) (output string, code int) {
	w.Helper()
	return w.Muster("explain", job)
}

// Muster returns the output of a command of `muster` in the namespace, and its exit code.
func (w *World) Muster(args ...string) (output string, code int) {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), Patience)
	defer cancel()
	command := exec.CommandContext(ctx, binary(w.T),
		append(args, "-n", w.Namespace, "--kubeconfig", w.Cluster.Kubeconfig)...)
	text, err := command.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		w.Fatalf("muster %s: %v\n%s", args[0], err, text)
	}
	return string(text), command.ProcessState.ExitCode()
}

// binary returns the path of bin/muster, which lies beside the folder of the tests.
func binary(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	for ; err == nil && filepath.Base(dir) != "test"; dir = filepath.Dir(dir) {
		if dir == filepath.Dir(dir) {
			err = errors.New("the test does not run below the folder test")
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(filepath.Dir(dir), "bin", "muster")
}
