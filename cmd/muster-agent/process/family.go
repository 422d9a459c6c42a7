package process

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// End is how a command ended: by Signal, or else with Code.
type End struct {
	Code        int
	Signal      syscall.Signal
	OutOfMemory bool
	// Stderr is the end of the command's standard error.
	Stderr []byte
}

// Family is the running command with all its descendants.
type Family struct {
	calls chan func()
	ended chan End

	pid    int // of the command, 0 for none
	stderr *tail
	killed int // processes killed for lack of memory when the command started
}

// prSetChildSubreaper is PR_SET_CHILD_SUBREAPER of prctl(2).
const prSetChildSubreaper = 36

// New makes this process a child subreaper and returns its Family. Call it once.
func New() *Family {
	// Process 1 is the reaper anyhow; elsewhere, if this fails, orphans are reparented to another process.
	_, _, _ = syscall.RawSyscall(syscall.SYS_PRCTL, prSetChildSubreaper, 1, 0)
	f := &Family{calls: make(chan func()), ended: make(chan End, 1)}
	children := make(chan os.Signal, 1)
	signal.Notify(children, syscall.SIGCHLD)
	go f.live(children)
	return f
}

// live starts and reaps on one OS thread that never ends: the parent death signal of a child is sent when the thread
// that started it exits.
func (f *Family) live(children <-chan os.Signal) {
	runtime.LockOSThread()
	for {
		select {
		case call := <-f.calls:
			call()
		case <-children:
			f.reap()
		}
	}
}

func (f *Family) do(call func()) {
	done := make(chan struct{})
	f.calls <- func() { defer close(done); call() }
	<-done
}

// Ended returns a channel that receives how the command ended, once for each start.
func (f *Family) Ended() <-chan End { return f.ended }

// Start runs a command with this environment. Its standard error goes through this process, which keeps its end.
func (f *Family) Start(command, environment []string) error {
	path, err := exec.LookPath(command[0])
	if err != nil {
		return fmt.Errorf("running %q: %w", command[0], err)
	}
	f.do(func() { err = f.start(path, command, environment) })
	if err != nil {
		return fmt.Errorf("running %q: %w", command[0], err)
	}
	return nil
}

// ExitCode returns the exit code that a shell would return for an error of Start.
func ExitCode(err error) int {
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist) {
		return 127
	}
	return 126
}

func (f *Family) start(path string, command, environment []string) error {
	read, write, err := os.Pipe()
	if err != nil {
		return err
	}
	defer write.Close()
	f.killed = killedForMemory()
	pid, err := syscall.ForkExec(path, command, &syscall.ProcAttr{
		Env:   environment,
		Files: []uintptr{os.Stdin.Fd(), os.Stdout.Fd(), write.Fd()},
		Sys:   &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL},
	})
	if err != nil {
		read.Close()
		return err
	}
	f.pid, f.stderr = pid, follow(read, os.Stderr)
	return nil
}

// Signal sends a signal to the command, if it is running.
func (f *Family) Signal(s syscall.Signal) {
	f.do(func() {
		if f.pid != 0 {
			_ = syscall.Kill(f.pid, s) // it may have ended
		}
	})
}

// Kill kills the command and all its descendants, and returns when they are gone. Ended reports the end of the command,
// if it had not before.
func (f *Family) Kill() {
	f.do(func() {
		if f.pid != 0 {
			_ = syscall.Kill(-f.pid, syscall.SIGKILL)
		}
		for {
			children := children()
			if len(children) == 0 {
				return
			}
			for _, pid := range children {
				_ = syscall.Kill(-pid, syscall.SIGKILL) // its process group, if it leads one
				_ = syscall.Kill(pid, syscall.SIGKILL)
				f.wait(pid, 0)
			}
		}
	})
}

// reap waits for all children that have exited.
func (f *Family) reap() {
	for f.wait(-1, syscall.WNOHANG) {
	}
}

func (f *Family) wait(pid, options int) (reaped bool) {
	var status syscall.WaitStatus
	for {
		got, err := syscall.Wait4(pid, &status, options, nil)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil || got <= 0 {
			return false
		}
		if got == f.pid {
			f.report(status)
		}
		return true
	}
}

// stragglerOutputWait is how long to wait, after the command's end, for descendants that keep its standard error open;
// what they write later is passed on but not part of Stderr.
const stragglerOutputWait = 50 * time.Millisecond

func (f *Family) report(status syscall.WaitStatus) {
	_ = syscall.Kill(-f.pid, syscall.SIGKILL) // the rest of its process group
	end := End{Code: status.ExitStatus(), OutOfMemory: killedForMemory() > f.killed,
		Stderr: f.stderr.end(stragglerOutputWait)}
	if status.Signaled() {
		end.Code, end.Signal = 0, status.Signal()
	}
	f.pid = 0
	f.ended <- end
}

// children returns the PIDs of the children of this process.
func children() []int {
	lists, _ := filepath.Glob("/proc/self/task/*/children")
	var out []int
	for _, list := range lists {
		text, err := os.ReadFile(list)
		if err != nil {
			continue // the thread has exited
		}
		for _, field := range bytes.Fields(text) {
			if pid, err := strconv.Atoi(string(field)); err == nil {
				out = append(out, pid)
			}
		}
	}
	return out
}

// killedForMemory returns how many processes of the container the kernel's OOM killer has killed, as far as the
// container's own cgroup shows it.
func killedForMemory() int {
	text, err := os.ReadFile("/sys/fs/cgroup/memory.events")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if count, is := strings.CutPrefix(strings.TrimSpace(line), "oom_kill "); is {
			n, _ := strconv.Atoi(count)
			return n
		}
	}
	return 0
}
