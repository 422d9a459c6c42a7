package harness

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Operator is the operator of the cluster, which another process starts again after it has exited.
type Operator struct {
	*testing.T
	folder string // of the cluster, in which that process keeps the PID
}

// Operator returns the operator of the cluster.
func (w *World) Operator() Operator { return Operator{w.T, w.Cluster.Dir} }

// PID returns the PID of the running operator, 0 if there is none.
func (o Operator) PID() int {
	o.Helper()
	text, err := os.ReadFile(filepath.Join(o.folder, "operator.pid"))
	if errors.Is(err, os.ErrNotExist) {
		return 0
	}
	if err != nil {
		o.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		o.Fatal(err)
	}
	return pid
}

// kill kills the running operator and returns its PID. If it has just exited, or is not started yet, kill polls the PID
// file for the next one.
func (o Operator) kill(deadline time.Time) (pid int) {
	o.Helper()
	for ; time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if pid = o.PID(); pid <= 0 {
			continue // kill(0) would signal this whole process group
		}
		err := syscall.Kill(pid, syscall.SIGKILL)
		if err == nil {
			return pid
		}
		if !errors.Is(err, syscall.ESRCH) {
			o.Fatalf("killing the operator, process %d: %v", pid, err)
		}
	}
	o.Fatal("there is no operator to kill")
	return 0
}

// Kill kills the operator and returns when another one runs.
func (o Operator) Kill() {
	o.Helper()
	deadline := time.Now().Add(Patience)
	before := o.kill(deadline)
	for {
		if pid := o.PID(); pid != 0 && pid != before && syscall.Kill(pid, 0) == nil {
			return
		}
		if time.Now().After(deadline) {
			o.Fatal("no operator was started to replace the killed one")
		}
		time.Sleep(10 * time.Millisecond) // another process writes the PID file: poll
	}
}
