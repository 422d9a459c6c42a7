package localcluster

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// defaultDir is where `muster up` keeps its state when no --dir is given: $XDG_STATE_HOME/muster, else
// ~/.local/state/muster. Empty if neither is known.
func defaultDir() string {
	if state := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(state) {
		return filepath.Join(state, "muster")
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	return filepath.Join(home, ".local", "state", "muster")
}

// runningKubeconfig gives the kubeconfig of the cluster that `muster up` runs from dir, or "" if none runs there.
func runningKubeconfig(dir string) string {
	if dir == "" || !running(filepath.Join(dir, "pid")) {
		return ""
	}
	kubeconfig := filepath.Join(dir, "kubeconfig")
	if _, err := os.Stat(kubeconfig); err != nil {
		return ""
	}
	return kubeconfig
}

// running tells whether the process named in a pid file lives. Signal 0 asks without disturbing; EPERM means that it
// lives and belongs to somebody else.
func running(pidFile string) bool {
	content, err := os.ReadFile(pidFile)
	if err != nil {
		return false
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(content)))
	if err != nil || pid <= 1 {
		return false
	}
	err = syscall.Kill(pid, 0)
	return err == nil || err == syscall.EPERM
}

// UseRunning points this process at the running default cluster when the user has named no other one: KUBECONFIG is
// unset and there is no ~/.kube/config. A kubeconfig of the user's own always wins, so that `kubectl get` and
// `kubectl muster jobs` in one shell never speak of two clusters.
func UseRunning() {
	if os.Getenv("KUBECONFIG") != "" {
		return
	}
	if home, err := os.UserHomeDir(); err == nil {
		if _, err := os.Stat(filepath.Join(home, ".kube", "config")); err == nil {
			return
		}
	}
	if kubeconfig := runningKubeconfig(defaultDir()); kubeconfig != "" {
		// Setenv fails only for impossible names and values; then the client says that it has no configuration.
		_ = os.Setenv("KUBECONFIG", kubeconfig)
	}
}
