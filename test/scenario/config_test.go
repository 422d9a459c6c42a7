package scenario

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// wrongConfiguration has two mistakes.
const wrongConfiguration = `apiVersion: config.muster.dev/v1alpha1
kind: Configuration
waitForPodsReady: {timeout: 0s}
queueStatus: {often: true}
`

func TestOperatorRejectsAnInvalidConfiguration(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(file, []byte(wrongConfiguration), 0o600); err != nil {
		t.Fatal(err)
	}
	state := filepath.Join(t.TempDir(), "state")
	for name, command := range map[string]*exec.Cmd{
		"the operator":    exec.Command("../../bin/muster-operator", "--config", file, "--kubeconfig", filepath.Join(state, "none")),
		"a local cluster": exec.Command("../../bin/muster", "up", "--dir", state, "--config", file),
	} {
		t.Run(name, func(t *testing.T) {
			said, err := command.CombinedOutput()
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.ExitCode() != 1 {
				t.Errorf("it ended with %v, want exit code 1", err)
			}
			for _, words := range []string{file, "waitForPodsReady.timeout: ", "queueStatus.often: "} {
				if !strings.Contains(string(said), words) {
					t.Errorf("it does not say %q:\n%s", words, said)
				}
			}
			if _, err := os.Stat(state); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("it left a state directory: %v", err)
			}
		})
	}
}
