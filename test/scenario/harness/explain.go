package harness

import (
	"context"
	"errors"
	"os/exec"
)

// Explain returns the output of `muster explain` for a job, named as kind/name, and its exit code.
func (w *World) Explain(job string) (output string, code int) {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), Patience)
	defer cancel()
	command := exec.CommandContext(ctx, "../../../bin/muster", "explain", job, "-n", w.Namespace, "--kubeconfig", w.Cluster.Kubeconfig)
	text, err := command.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		w.Fatalf("explain: %v\n%s", err, text)
	}
	return string(text), command.ProcessState.ExitCode()
}
