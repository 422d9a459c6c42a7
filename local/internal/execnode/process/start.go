package process

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/musterhq/muster/local/internal/execnode/shim"
)

// startFailedCode and startFailedReason are the exit code and reason of a container whose command could not be run, as
// with other runtimes.
const (
	startFailedCode   = 128
	startFailedReason = "StartError"
)

// StartContainer implements RuntimeService. It returns once the container's command runs.
func (r *Runtime) StartContainer(_ context.Context, id string) error {
	r.mu.Lock()
	c, err := r.container(id)
	if err != nil {
		r.mu.Unlock()
		return err
	}
	s, err := r.sandbox(c.sandbox)
	if err == nil && (r.closed || s.stopped) {
		err = errSpawnerStopped
	}
	r.mu.Unlock()
	if err != nil {
		return err
	}
	ended, err := c.start(s)
	if err != nil {
		c.finish(startFailedCode, startFailedReason, err.Error())
		return err
	}
	r.mu.Lock()
	c.status.State = runtimeapi.ContainerState_CONTAINER_RUNNING
	c.status.StartedAt = time.Now().UnixNano()
	err = r.saveRecord(c)
	closed := r.closed || s.stopped
	r.mu.Unlock()
	go c.await(ended)
	if closed { // stopped meanwhile, by a caller that did not observe it running
		c.kill()
	}
	r.options.Changed(s.uid())
	return err
}

// run is a container's command under way.
type run struct {
	status <-chan shim.Status
	output sync.WaitGroup
}

func (c *container) start(s *sandbox) (*run, error) {
	var err error
	if c.log, err = openLog(c.status.GetLogPath()); err != nil {
		return nil, err
	}
	started := &run{}
	defer func() {
		if started.status == nil {
			c.log.close()
		}
	}()
	setup, command, err := c.plan(s)
	if err != nil {
		return nil, err
	}
	var netns *os.File
	if s.network != nil {
		netns = s.network.Namespace()
	}
	meta := s.config.GetMetadata()
	c.first, err = c.runtime.options.Spawner.spawn(spawnOptions{
		name:      meta.GetNamespace() + "/" + meta.GetName() + "/" + c.config.GetMetadata().GetName(),
		isolation: c.runtime.isolationFor(s), netns: netns,
	})
	if err != nil {
		return nil, err
	}
	if err := c.first.setup(setup); err != nil {
		c.first.end()
		return nil, err
	}
	files, err := c.connect(&started.output)
	if err != nil {
		c.first.end()
		return nil, err
	}
	status, err := c.first.start(command, files)
	for _, file := range files {
		file.Close()
	}
	if err != nil {
		c.first.end()
		started.output.Wait()
		return nil, err
	}
	c.command, started.status = command, status
	return started, nil
}

// isolationFor returns the isolation of a sandbox: with hostPID its containers have no PID namespace.
func (r *Runtime) isolationFor(s *sandbox) Isolation {
	isolation := r.options.Isolation
	if s.config.GetLinux().GetSecurityContext().GetNamespaceOptions().GetPid() == runtimeapi.NamespaceMode_NODE {
		isolation.Processes = false
	}
	return isolation
}

// homeOfOthers is where containers that run as another user have the pod's working directory.
const homeOfOthers = "/home/container"

// plan returns the container's view of the machine and its command.
func (c *container) plan(s *sandbox) (shim.Setup, shim.Start, error) {
	r := c.runtime
	isolation := r.isolationFor(s)
	podDir := r.options.PodDir(s.uid())
	work := filepath.Join(podDir, "work")
	home := work
	setup := shim.Setup{OwnMounts: isolation.Mounts, OwnProcesses: isolation.Processes}
	command := shim.Start{
		ID: shim.MainCommand, Argv: slices.Concat(c.config.GetCommand(), c.config.GetArgs()),
		Dir: c.config.GetWorkingDir(), Terminal: c.config.GetTty(), User: userOf(c.config, isolation),
	}
	for _, mount := range c.config.GetMounts() {
		setup.Mounts = append(setup.Mounts,
			shim.Mount{Source: mount.GetHostPath(), Target: mount.GetContainerPath(), ReadOnly: mount.GetReadonly()})
	}
	if command.User != nil && isolation.Mounts {
		// Another user may not have access to the directories above the pod's.
		home = homeOfOthers
		setup.Mounts = append(setup.Mounts, shim.Mount{Source: work, Target: home})
		if err := os.Chown(work, int(command.User.UID), int(command.User.GID)); err != nil {
			return setup, command, fmt.Errorf("giving the working directory to the container's user: %w", err)
		}
	}
	switch dir := command.Dir; {
	case dir == "":
		command.Dir = home
	case inVolume(dir, setup.Mounts):
		setup.MakeDir = dir
	case !isDirectory(dir) && isolation.Mounts:
		// The working directory that an image would contain. The pod's working directory replaces it.
		setup.Mounts = append(setup.Mounts, shim.Mount{Source: work, Target: dir})
	}
	command.Env = environment(c.config.GetEnvs(), home, s.config.GetHostname(), c.config.GetTty())
	if isolation.Mounts {
		setup.Hostname = s.config.GetHostname()
		if path := s.resolvConf(podDir); path != "" {
			setup.Mounts = append(setup.Mounts, shim.Mount{Source: path, Target: "/etc/resolv.conf"})
		}
		setup.Staging = filepath.Join(r.stagingDir(), c.id)
		if err := os.MkdirAll(setup.Staging, 0o700); err != nil {
			return setup, command, fmt.Errorf("making room for the container's root: %w", err)
		}
	}
	if !isolation.Mounts && len(setup.Mounts) > 0 {
		return setup, command, fmt.Errorf("volume mount %s cannot be made: this machine allows no mounts without root",
			setup.Mounts[0].Target)
	}
	return setup, command, nil
}

// environment is the container's variables over the few that every command needs and no image is there to set.
func environment(configured []*runtimeapi.KeyValue, home, hostname string, terminal bool) []string {
	defaults := map[string]string{"HOME": home, "PATH": os.Getenv("PATH"), "LANG": os.Getenv("LANG"), "HOSTNAME": hostname}
	if terminal {
		defaults["TERM"] = "xterm"
	}
	var env []string
	for _, variable := range configured {
		env = append(env, variable.GetKey()+"="+string(variable.GetValue()))
		delete(defaults, variable.GetKey())
	}
	for name, value := range defaults {
		if value != "" {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// userOf returns the user that a container asks to run as, if the node is root and so can switch to it.
func userOf(config *runtimeapi.ContainerConfig, isolation Isolation) *shim.User {
	security := config.GetLinux().GetSecurityContext()
	if os.Geteuid() != 0 || isolation.UserNamespace || security.GetRunAsUser() == nil {
		return nil
	}
	user := &shim.User{UID: uint32(security.GetRunAsUser().GetValue()), GID: uint32(security.GetRunAsGroup().GetValue())}
	for _, group := range security.GetSupplementalGroups() {
		user.Groups = append(user.Groups, uint32(group))
	}
	if user.UID == 0 && user.GID == 0 && len(user.Groups) == 0 {
		return nil
	}
	return user
}

func inVolume(path string, mounts []shim.Mount) bool {
	return slices.ContainsFunc(mounts, func(m shim.Mount) bool {
		return strings.HasPrefix(filepath.Clean(path)+"/", filepath.Clean(m.Target)+"/")
	})
}

func isDirectory(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// connect returns the input, output and errors of the container's command. The output goes to the container's log until
// the wait group is done.
func (c *container) connect(output *sync.WaitGroup) (files [3]*os.File, err error) {
	if c.config.GetTty() {
		return c.connectTerminal(output)
	}
	if files[0], err = os.Open(os.DevNull); err != nil {
		return files, err
	}
	for i, stream := range []runtimeapi.LogStreamType{runtimeapi.Stdout, runtimeapi.Stderr} {
		reader, writer, err := os.Pipe()
		if err != nil {
			return files, fmt.Errorf("making a pipe for the container's output: %w", err)
		}
		files[1+i] = writer
		output.Go(func() {
			defer reader.Close()
			c.log.copy(stream, reader)
		})
	}
	return files, nil
}

func (c *container) connectTerminal(output *sync.WaitGroup) (files [3]*os.File, err error) {
	ours, theirs, err := openTerminal()
	if err != nil {
		return files, err
	}
	output.Go(func() {
		defer ours.Close()
		c.log.copy(runtimeapi.Stdout, ours)
	})
	for i := range files {
		if files[i], err = duplicate(theirs); err != nil {
			return files, err
		}
	}
	return files, theirs.Close()
}

// await waits for the end of the container's command and of its output, and notes how it ended.
func (c *container) await(started *run) {
	status := <-started.status
	<-c.first.gone
	started.output.Wait()
	c.log.close()
	reason := "Completed"
	if status.ExitCode() != 0 {
		reason = "Error"
	}
	c.finish(status.ExitCode(), reason, "")
}

// finish records the end of a container and calls Changed.
func (c *container) finish(code int, reason, message string) {
	r := c.runtime
	os.Remove(filepath.Join(r.stagingDir(), c.id))
	r.mu.Lock()
	c.status.State = runtimeapi.ContainerState_CONTAINER_EXITED
	c.status.ExitCode, c.status.Reason, c.status.Message = int32(code), reason, message
	c.status.FinishedAt = time.Now().UnixNano()
	if c.status.GetStartedAt() == 0 {
		c.status.StartedAt = c.status.GetFinishedAt()
	}
	r.saveRecord(c) // without it, the next run of the node says that the container was killed
	close(c.ended)
	uid := c.podUID()
	r.mu.Unlock()
	r.options.Changed(uid)
}

// podUID must be called with Runtime.mu held.
func (c *container) podUID() string {
	if s, ok := c.runtime.sandboxes[c.sandbox]; ok {
		return s.uid()
	}
	return ""
}
