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
	// Said is the end of its standard error.
	Said []byte
}

// Family is the command that runs and all that it started.
type Family struct {
	calls chan func()
	ended chan End

	pid    int // of the command, 0 for none
	said   *tail
	killed int // processes killed for lack of memory when the command started
}

// prSetChildSubreaper is PR_SET_CHILD_SUBREAPER of prctl(2).
const prSetChildSubreaper = 36

// New has the process reap what its descendants leave behind. Call it once.
func New() *Family {
	// As process 1 it is that anyhow; otherwise orphans go past it where this fails.
	_, _, _ = syscall.RawSyscall(syscall.SYS_PRCTL, prSetChildSubreaper, 1, 0)
	f := &Family{calls: make(chan func()), ended: make(chan End, 1)}
	children := make(chan os.Signal, 1)
	signal.Notify(children, syscall.SIGCHLD)
	go f.live(children)
	return f
}

// live starts and reaps on one thread, which never ends: the kernel takes the end of the
// thread that started a child for its parent's death.
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

// Ended gives how the command ended, once for each that was started.
func (f *Family) Ended() <-chan End { return f.ended }

// Start runs a command with these variables. Its standard error passes through this
// process, which keeps the end of it.
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

// ExitCode is what a shell would end with if Start gave this error.
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
	f.pid, f.said = pid, follow(read, os.Stderr)
	return nil
}

// Signal sends a signal to the command, if it runs.
func (f *Family) Signal(s syscall.Signal) {
	f.do(func() {
		if f.pid != 0 {
			_ = syscall.Kill(f.pid, s) // it may have ended
		}
	})
}

// Kill ends all there is at once, and returns when it is gone. How the command ended
// comes by Ended, if it had not before.
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
				_ = syscall.Kill(-pid, syscall.SIGKILL) // those that it started, if it has a group
				_ = syscall.Kill(pid, syscall.SIGKILL)
				f.wait(pid, 0)
			}
		}
	})
}

// reap takes the ends of all children that have come to theirs.
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

// stragglersSay is how long the command's own children may hold its standard error open
// after it, before what they say is passed on without being looked at.
const stragglersSay = 50 * time.Millisecond

func (f *Family) report(status syscall.WaitStatus) {
	_ = syscall.Kill(-f.pid, syscall.SIGKILL) // what is left of its group
	end := End{Code: status.ExitStatus(), OutOfMemory: killedForMemory() > f.killed, Said: f.said.end(stragglersSay)}
	if status.Signaled() {
		end.Code, end.Signal = 0, status.Signal()
	}
	f.pid = 0
	f.ended <- end
}

// children are the processes whose parent is this one.
func children() []int {
	lists, _ := filepath.Glob("/proc/self/task/*/children")
	var out []int
	for _, list := range lists {
		text, err := os.ReadFile(list)
		if err != nil {
			continue // that thread has ended
		}
		for _, field := range bytes.Fields(text) {
			if pid, err := strconv.Atoi(string(field)); err == nil {
				out = append(out, pid)
			}
		}
	}
	return out
}

// killedForMemory is how many processes of the container the kernel has killed for lack
// of memory, as far as that can be seen from inside.
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
