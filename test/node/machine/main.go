package machine

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"github.com/musterhq/muster/internal/testcluster"
)

const (
	// RequireVariable, if set to 1, makes the tests fail rather than be skipped on a machine that cannot run
	// containers.
	RequireVariable = "MUSTER_REQUIRE_NODE"

	stageVariable = "MUSTER_NODE_STAGE" // the stage of this process
	dirVariable   = "MUSTER_NODE_DIR"   // where the node's state is, inside
)

// The stages of the processes inside; the outer process has none.
const (
	stageInit  = "init"
	stageTests = "tests"
)

// cannotPrepare is the exit code of a process 1 that could not prepare the machine; the file reasonFile says why.
const (
	cannotPrepare = 77
	reasonFile    = "reason"
)

// unable is the reason why this machine cannot run a node, with which tests are skipped; empty if it can.
var unable string

// Main runs the tests of a package, and exits with their result.
func Main(m *testing.M, options testcluster.Options) {
	switch os.Getenv(stageVariable) {
	case stageInit:
		os.Exit(beInit())
	case stageTests:
		testcluster.Main(m, options)
	}
	var code int
	if unable = missing(); unable == "" {
		code = enter()
	}
	if unable == "" {
		os.Exit(code)
	}
	if os.Getenv(RequireVariable) == "1" {
		fmt.Fprintln(os.Stderr, RequireVariable+" is set, and this machine cannot run containers:", unable)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// enter runs this program in new namespaces and returns its exit code, or sets unable if it could not start.
func enter() (code int) {
	dir, err := os.MkdirTemp("", "muster-node-")
	if err != nil {
		unable = err.Error()
		return 1
	}
	defer os.RemoveAll(dir)
	tunables := readTunables()
	defer tunables.restore()
	groups, err := makeCgroups(cgroupName(os.Getpid()))
	defer func() {
		if err := groups.remove(); err != nil {
			fmt.Fprintln(os.Stderr, "removing the node's cgroups:", err)
			code = max(code, 1)
		}
	}()
	if err != nil {
		unable = err.Error()
		return 1
	}
	// The parent death signal is sent when the thread that started the process exits.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	inside := self(stageInit)
	inside.Env = append(inside.Env, dirVariable+"="+dir, cgroupVariable+"="+cgroupName(os.Getpid()))
	inside.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWNET | syscall.CLONE_NEWPID | syscall.CLONE_NEWIPC |
			syscall.CLONE_NEWUTS,
		Pdeathsig: syscall.SIGKILL,
	}
	err = inside.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		code = exit.ExitCode()
		if reason, err := os.ReadFile(filepath.Join(dir, reasonFile)); code == cannotPrepare && err == nil {
			unable = string(reason)
		}
		return max(code, 1)
	}
	if err != nil {
		unable = fmt.Sprintf("creating namespaces: %v", err)
		return 1
	}
	return 0
}

// self returns a command that runs this program with the same arguments in another stage.
func self(stage string) *exec.Cmd {
	command := exec.Command("/proc/self/exe", os.Args[1:]...)
	command.Args[0] = os.Args[0]
	command.Env = append(os.Environ(), stageVariable+"="+stage)
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
	return command
}
