package process

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/musterhq/muster/local/internal/execnode/shim"
)

// Isolation says which parts of the machine a container has for itself. The zero value is a plain process of this
// machine.
type Isolation struct {
	// Mounts: volumes and files such as /etc/hosts appear where the container expects them, in it alone.
	Mounts bool
	// Processes: the container's processes are a PID namespace, which ends as one.
	Processes bool
	// UserNamespace: the others are achieved without root, in a user namespace that maps this user to itself.
	UserNamespace bool
}

// Unprivileged is the most isolation possible without root.
var Unprivileged = Isolation{Mounts: true, Processes: true, UserNamespace: true}

// Detect finds by trial the most isolation that this machine allows, within the limit. The scratch directory is used
// for the trial and must be empty.
func Detect(s *Spawner, limit Isolation, scratch string) (Isolation, error) {
	var refusals []error
	for _, candidate := range []Isolation{
		{Mounts: true, Processes: true},
		{Mounts: true},
		{Mounts: true, Processes: true, UserNamespace: true},
		{Mounts: true, UserNamespace: true},
	} {
		if candidate.Mounts && !limit.Mounts || candidate.Processes && !limit.Processes ||
			!candidate.UserNamespace && (limit.UserNamespace || os.Geteuid() != 0) {
			continue
		}
		err := try(s, candidate, scratch)
		if err == nil {
			return candidate, nil
		}
		refusals = append(refusals, err)
	}
	return Isolation{}, errors.Join(refusals...)
}

// try makes one view with a mount that needs a new root and ends it.
func try(s *Spawner, isolation Isolation, scratch string) error {
	source, staging := filepath.Join(scratch, "source"), filepath.Join(scratch, "root")
	for _, directory := range []string{source, staging} {
		if err := os.MkdirAll(directory, 0o700); err != nil {
			return fmt.Errorf("trying what containers may have: %w", err)
		}
	}
	first, err := s.spawn(spawnOptions{name: "trial", isolation: isolation})
	if err != nil {
		return err
	}
	defer first.end()
	setup := shim.Setup{
		Hostname: "trial", OwnMounts: true, OwnProcesses: isolation.Processes, Staging: staging,
		Mounts: []shim.Mount{{Source: source, Target: "/muster-trial/volume", ReadOnly: true}},
	}
	return first.setup(setup)
}

// attributes are what a container's first process is started with.
func (i Isolation) attributes() *syscall.SysProcAttr {
	attributes := &syscall.SysProcAttr{
		// Ctrl-C at the terminal of the agent is for the agent: it ends its containers in order.
		Setsid: true,
		// A fallback: the first process also ends when its socket to the agent closes.
		Pdeathsig: syscall.SIGKILL,
	}
	if i.Mounts {
		attributes.Cloneflags |= syscall.CLONE_NEWNS | syscall.CLONE_NEWUTS
	}
	if i.Processes {
		attributes.Cloneflags |= syscall.CLONE_NEWPID
	}
	if i.UserNamespace {
		attributes.Cloneflags |= syscall.CLONE_NEWUSER
		attributes.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Geteuid(), HostID: os.Geteuid(), Size: 1}}
		attributes.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getegid(), HostID: os.Getegid(), Size: 1}}
		attributes.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN}
	}
	return attributes
}
