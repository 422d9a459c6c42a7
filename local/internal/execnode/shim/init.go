package shim

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

func init() {
	if len(os.Args) == 0 || os.Args[0] != Argv0 {
		return
	}
	// Namespaces and parent death signals belong to a thread, and children inherit from the thread that starts them.
	runtime.LockOSThread()
	if err := serve(); err != nil {
		fmt.Fprintln(os.Stderr, Argv0+":", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// container is the state of the first process: which commands run, and how to tell the agent.
type container struct {
	control  *control
	ownProcs bool

	// mu is held across every fork, so that the end of a command is never seen before its start was noted.
	mu       sync.Mutex
	commands map[int]int // process ID to command ID
}

// serve answers the agent's requests until the agent goes away or the main command has ended.
func serve() error {
	unix.CloseOnExec(ControlFD)
	// Orphans of commands are reparented to this process rather than to the machine's init, even without a PID
	// namespace.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("becoming the reaper of the container: %w", err)
	}
	c := &container{control: &control{fd: ControlFD}, commands: map[int]int{}}
	for {
		var request Request
		files, err := c.control.receive(&request)
		if errors.Is(err, io.EOF) {
			c.killAll()
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading a request: %w", err)
		}
		switch {
		case request.Setup != nil:
			c.setup(request.Setup)
		case request.Start != nil:
			c.start(request.Start, files)
		case request.Signal != nil:
			c.signal(request.Signal)
		}
		for _, file := range files {
			syscall.Close(file)
		}
	}
}

func (c *container) setup(s *Setup) {
	if err := enter(s); err != nil {
		c.control.send(Reply{Failed: err.Error()})
		return
	}
	c.ownProcs = s.OwnProcesses
	c.control.send(Reply{Ready: true})
}

// enter creates the container's view and drops the privileges that this required.
func enter(s *Setup) error {
	if s.Hostname != "" {
		if err := unix.Sethostname([]byte(s.Hostname)); err != nil {
			return fmt.Errorf("setting the host name %q: %w", s.Hostname, err)
		}
	}
	if s.OwnMounts {
		if err := makeView(s.Mounts, s.Staging); err != nil {
			return err
		}
	}
	if s.MakeDir != "" {
		if err := os.MkdirAll(s.MakeDir, 0o755); err != nil {
			return fmt.Errorf("making the working directory: %w", err)
		}
	}
	if s.OwnProcesses {
		if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
			return fmt.Errorf("mounting /proc: %w", err)
		}
	}
	return dropCapabilities()
}

// dropCapabilities keeps commands from inheriting the capabilities, over the user namespace, that creating the view
// needed.
func dropCapabilities() error {
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil &&
		!errors.Is(err, unix.EINVAL) {
		return fmt.Errorf("giving up capabilities: %w", err)
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var sets [2]unix.CapUserData
	if err := unix.Capget(&header, &sets[0]); err != nil {
		return fmt.Errorf("reading capabilities: %w", err)
	}
	sets[0].Inheritable, sets[1].Inheritable = 0, 0
	if err := unix.Capset(&header, &sets[0]); err != nil {
		return fmt.Errorf("giving up capabilities: %w", err)
	}
	return nil
}

func (c *container) start(s *Start, files []int) {
	if err := c.fork(s, files); err != nil {
		c.control.send(Reply{ID: s.ID, Failed: err.Error()})
	}
}

func (c *container) fork(s *Start, files []int) error {
	if len(files) != 3 {
		return fmt.Errorf("command came with %d open files, not 3", len(files))
	}
	path, err := lookPath(s)
	if err != nil {
		return err
	}
	attributes := &syscall.SysProcAttr{Setsid: true, Setctty: s.Terminal}
	if !c.ownProcs {
		attributes.Pdeathsig = syscall.SIGKILL
	}
	if s.User != nil {
		attributes.Credential = &syscall.Credential{Uid: s.User.UID, Gid: s.User.GID, Groups: s.User.Groups}
	}
	descriptors := make([]uintptr, len(files))
	for i, file := range files {
		descriptors[i] = uintptr(file)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	pid, err := syscall.ForkExec(path, s.Argv,
		&syscall.ProcAttr{Dir: s.Dir, Env: s.Env, Files: descriptors, Sys: attributes})
	if err != nil {
		return fmt.Errorf("exec %q: %w", path, err)
	}
	c.commands[pid] = s.ID
	if s.ID == MainCommand {
		go c.reap()
	}
	c.control.send(Reply{ID: s.ID, Started: true})
	return nil
}

func (c *container) signal(s *Signal) {
	if s.All {
		c.killAll()
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for pid, id := range c.commands {
		if id != s.ID {
			continue
		}
		if syscall.Signal(s.Number) == syscall.SIGKILL {
			syscall.Kill(-pid, syscall.SIGKILL) // each command leads a process group
		} else {
			syscall.Kill(pid, syscall.Signal(s.Number))
		}
	}
}

// reap waits for every child, own or orphaned, and reports to the agent the ends of commands. It exits the process
// after the end of the main command, which was started first.
func (c *container) reap() {
	for {
		// Wait without reaping first (WNOWAIT): a fork under the lock may be about to record this very child.
		var info unix.Siginfo
		if err := unix.Waitid(unix.P_ALL, 0, &info, unix.WEXITED|unix.WNOWAIT, nil); err != nil {
			continue // interrupted
		}
		c.mu.Lock()
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
		id, isCommand := c.commands[pid]
		delete(c.commands, pid)
		c.mu.Unlock()
		if err != nil || !isCommand {
			continue
		}
		ended := Status{Code: status.ExitStatus()}
		if status.Signaled() {
			ended = Status{Signal: int(status.Signal())}
		}
		if id == MainCommand {
			c.killAll()
		}
		c.control.send(Reply{ID: id, Exited: &ended})
		if id == MainCommand {
			os.Exit(0)
		}
	}
}

// killAll kills everything in the container except this process. It finds orphans too, since they have become children.
func (c *container) killAll() {
	if c.ownProcs {
		syscall.Kill(-1, syscall.SIGKILL)
		return
	}
	for range 100 { // bounded, for a process that forks as fast as it is killed
		children := childProcesses()
		if len(children) == 0 {
			return
		}
		for _, pid := range children {
			syscall.Kill(-pid, syscall.SIGKILL)
			syscall.Kill(pid, syscall.SIGKILL)
			// Its own children become children of this process only once it is gone.
			unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		}
	}
}

// childProcesses lists the live children of every thread of this process.
func childProcesses() []int {
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return nil
	}
	var pids []int
	for _, thread := range threads {
		list, err := os.ReadFile("/proc/self/task/" + thread.Name() + "/children")
		if err != nil {
			continue
		}
		for _, field := range strings.Fields(string(list)) {
			pid, err := strconv.Atoi(field)
			if err == nil && !isZombie(pid) {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

func isZombie(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return true
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return strings.HasPrefix(rest, "Z") || strings.HasPrefix(rest, "X")
}
