package process

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/musterhq/muster/local/internal/execnode/shim"
)

// Spawner starts the first processes of containers, all from one thread of this process that lives as long as the
// spawner: the kernel ties a parent-death signal to the thread that forked, not to the process.
type Spawner struct {
	work chan func()
	stop chan struct{}
}

// NewSpawner returns a spawner. Stop must be called after the last of its processes has ended, which it otherwise ends.
func NewSpawner() *Spawner {
	s := &Spawner{work: make(chan func()), stop: make(chan struct{})}
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with this goroutine
		for {
			select {
			case job := <-s.work:
				job()
			case <-s.stop:
				return
			}
		}
	}()
	return s
}

// Stop ends the spawner's thread.
func (s *Spawner) Stop() { close(s.stop) }

var errSpawnerStopped = errors.New("the node is stopping")

// run executes the function on the spawner's thread.
func (s *Spawner) run(f func() error) error {
	result := make(chan error, 1)
	select {
	case s.work <- func() { result <- f() }:
		return <-result
	case <-s.stop:
		return errSpawnerStopped
	}
}

type spawnOptions struct {
	name      string // for people who look at the process list
	isolation Isolation
	netns     *os.File // nil is the machine's network
}

// first is the agent's side of a container's first process.
type first struct {
	process *exec.Cmd
	conn    *net.UnixConn
	ready   chan error
	gone    chan struct{} // closed when the process has ended and was reaped

	mu       sync.Mutex
	lastID   int
	starting map[int]chan error
	running  map[int]chan shim.Status
}

// spawn starts a first process. Call setup on it next, and end at last.
func (s *Spawner) spawn(options spawnOptions) (*first, error) {
	ours, theirs, err := socketPair()
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	process := &exec.Cmd{
		Path:        "/proc/self/exe",
		Args:        []string{shim.Argv0, options.name},
		Env:         []string{"GOMAXPROCS=1"},
		Dir:         "/",
		Stderr:      os.Stderr,
		ExtraFiles:  []*os.File{theirs},
		SysProcAttr: options.isolation.attributes(),
	}
	if err := s.run(func() error { return startIn(options.netns, process) }); err != nil {
		ours.Close()
		return nil, fmt.Errorf("starting the first process of container %s: %w", options.name, err)
	}
	f := &first{
		process: process, conn: ours, ready: make(chan error, 1), gone: make(chan struct{}),
		lastID: shim.MainCommand, starting: map[int]chan error{}, running: map[int]chan shim.Status{},
	}
	go f.listen()
	return f, nil
}

// startIn starts a process in a network namespace. It must run on a locked thread.
func startIn(netns *os.File, process *exec.Cmd) (err error) {
	if netns == nil {
		return process.Start()
	}
	home, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		return err
	}
	defer home.Close()
	if err := unix.Setns(int(netns.Fd()), unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("entering the pod's network: %w", err)
	}
	defer func() {
		if back := unix.Setns(int(home.Fd()), unix.CLONE_NEWNET); back != nil {
			// Every later container would be started in this pod's network.
			panic(fmt.Sprintf("execnode: cannot return to the machine's network: %v", back))
		}
	}()
	return process.Start()
}

func socketPair() (*net.UnixConn, *os.File, error) {
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("making a socket to a container: %w", err)
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "container"), os.NewFile(uintptr(pair[1]), "agent")
	defer ours.Close()
	conn, err := net.FileConn(ours)
	if err != nil {
		theirs.Close()
		return nil, nil, fmt.Errorf("making a socket to a container: %w", err)
	}
	return conn.(*net.UnixConn), theirs, nil
}

var errContainerEnded = errors.New("the container has ended")

// listen passes each reply to its waiter, and after the last one completes all that are still waiting.
func (f *first) listen() {
	for {
		var reply shim.Reply
		if err := shim.Decode(f.conn, &reply); err != nil {
			break
		}
		f.handle(reply)
	}
	f.process.Wait()
	f.conn.Close()
	f.mu.Lock()
	defer f.mu.Unlock()
	for id, waiting := range f.starting {
		waiting <- errContainerEnded
		delete(f.starting, id)
	}
	for id, waiting := range f.running {
		// It was killed together with the first process, before that could report it.
		waiting <- shim.Status{Signal: int(syscall.SIGKILL)}
		delete(f.running, id)
	}
	select {
	case f.ready <- errContainerEnded:
	default:
	}
	close(f.gone)
}

func (f *first) handle(reply shim.Reply) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch waiting, starting := f.starting[reply.ID]; {
	case reply.Exited != nil:
		if waiting, ok := f.running[reply.ID]; ok {
			waiting <- *reply.Exited
			delete(f.running, reply.ID)
		}
	case starting:
		if reply.Failed != "" {
			waiting <- errors.New(reply.Failed)
			delete(f.running, reply.ID)
		} else {
			waiting <- nil
		}
		delete(f.starting, reply.ID)
	case reply.Failed != "":
		f.ready <- errors.New(reply.Failed)
	case reply.Ready:
		f.ready <- nil
	}
}

// setup creates the container's view of the machine and waits until it is ready.
func (f *first) setup(setup shim.Setup) error {
	if err := f.send(shim.Request{Setup: &setup}, nil); err != nil {
		return err
	}
	return <-f.ready
}

// start runs a command with the given input, output and errors, which the caller may close afterwards. It returns
// once the command runs; its end comes over the channel, which is buffered.
func (f *first) start(command shim.Start, files [3]*os.File) (<-chan shim.Status, error) {
	started, ended := make(chan error, 1), make(chan shim.Status, 1)
	f.mu.Lock()
	f.starting[command.ID], f.running[command.ID] = started, ended
	f.mu.Unlock()
	if err := f.send(shim.Request{Start: &command}, files[:]); err != nil {
		f.mu.Lock()
		delete(f.starting, command.ID)
		delete(f.running, command.ID)
		f.mu.Unlock()
		return nil, err
	}
	if err := <-started; err != nil {
		return nil, err
	}
	return ended, nil
}

// nextID returns an ID for a command beside the main one.
func (f *first) nextID() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lastID++
	return f.lastID
}

// signal sends a signal to a command. A command that has ended is no error.
func (f *first) signal(id int, signal syscall.Signal) {
	f.send(shim.Request{Signal: &shim.Signal{ID: id, Number: int(signal)}}, nil)
}

// killAll ends every command of the container, and with the main one the container.
func (f *first) killAll() {
	f.send(shim.Request{Signal: &shim.Signal{All: true}}, nil)
}

// end kills the first process itself, and with it a PID namespace if it has one. It returns when it is gone.
func (f *first) end() {
	f.process.Process.Kill()
	<-f.gone
}

func (f *first) send(request shim.Request, files []*os.File) error {
	message, err := shim.Encode(request)
	if err != nil {
		return err
	}
	var rights []byte
	if len(files) > 0 {
		descriptors := make([]int, len(files))
		for i, file := range files {
			descriptors[i] = int(file.Fd())
		}
		rights = syscall.UnixRights(descriptors...)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	n, _, err := f.conn.WriteMsgUnix(message, rights, nil)
	if err == nil && n < len(message) {
		_, err = f.conn.Write(message[n:])
	}
	if err != nil {
		return fmt.Errorf("%w: %w", errContainerEnded, err)
	}
	return nil
}
