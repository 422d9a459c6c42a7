package localcluster

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// defaultDir returns where `muster up` keeps its state if --dir is not given: $XDG_STATE_HOME/muster, or else
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

// runningKubeconfig returns the kubeconfig of the cluster that `muster up` runs from dir, "" if none is running.
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

// running reports whether the process in a pid file is alive, by signal 0. EPERM means that it is alive and belongs to
// another user.
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

// UseRunning sets KUBECONFIG to the running default cluster if the user has not configured any cluster: KUBECONFIG is
// unset and ~/.kube/config does not exist. A kubeconfig of the user always wins, so that `kubectl get` and `kubectl
// muster jobs` in one shell refer to the same cluster.
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
		// Setenv fails only for invalid names and values; then the client reports that it has no configuration.
		_ = os.Setenv("KUBECONFIG", kubeconfig)
	}
}
