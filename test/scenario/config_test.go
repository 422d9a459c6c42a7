package scenario

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// invalidConfiguration has an invalid value and an unknown field.
const invalidConfiguration = `apiVersion: config.muster.dev/v1alpha1
kind: Configuration
waitForPodsReady: {timeout: 0s}
queueStatus: {often: true}
`

// TestOperatorRejectsAnInvalidConfiguration: the operator and "muster up" exit with code 1, name the file and each
// invalid field, and leave nothing on disk.
func TestOperatorRejectsAnInvalidConfiguration(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(file, []byte(invalidConfiguration), 0o600); err != nil {
		t.Fatal(err)
	}
	state := filepath.Join(t.TempDir(), "state")
	for name, command := range map[string]*exec.Cmd{
		"the operator": exec.Command("../../bin/muster-operator", "--config", file, "--kubeconfig",
			filepath.Join(state, "none")),
		"a local cluster": exec.Command("../../bin/muster", "up", "--dir", state, "--config", file),
	} {
		t.Run(name, func(t *testing.T) {
			output, err := command.CombinedOutput()
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.ExitCode() != 1 {
				t.Errorf("command ended with %v, want exit code 1", err)
			}
			for _, want := range []string{file, "waitForPodsReady.timeout: ", "queueStatus.often: "} {
				if !strings.Contains(string(output), want) {
					t.Errorf("output does not contain %q:\n%s", want, output)
				}
			}
			if _, err := os.Stat(state); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("stat of the state directory: %v, want that it does not exist", err)
			}
		})
	}
}
