package process

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	remote "k8s.io/cri-client/pkg"
	utilexec "k8s.io/utils/exec"
)

// longestProbeOutput bounds what is kept of the output of a probe or hook.
const longestProbeOutput = 1 << 20

// ExecSync implements RuntimeService: it runs a command in a running container. A command that fails is a
// utilexec.CodeExitError, one that takes longer than a timeout other than 0 is killed and is ErrCommandTimedOut.
func (r *Runtime) ExecSync(ctx context.Context, id string, command []string,
	timeout time.Duration) (stdout, stderr []byte, err error) {
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	out, errs := &bounded{limit: longestProbeOutput}, &bounded{limit: longestProbeOutput}
	code, err := r.Run(ctx, id, ExecOptions{Command: command, Stdout: out, Stderr: errs})
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, nil, fmt.Errorf("%w: %q timed out after %s", remote.ErrCommandTimedOut,
			strings.Join(command, " "), timeout)
	case err != nil:
		return nil, nil, err
	case code != 0:
		return out.Bytes(), errs.Bytes(), utilexec.CodeExitError{
			Err:  fmt.Errorf("command '%s' exited with %d: %s", strings.Join(command, " "), code, errs.Bytes()),
			Code: code,
		}
	}
	return out.Bytes(), errs.Bytes(), nil
}

// ExecOptions are one command to run in a container. Streams that are nil are not connected.
type ExecOptions struct {
	Command        []string
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	// Terminal runs the command on a terminal: Stderr is not used. Sizes are the sizes of the user's window, as they
	// change.
	Terminal bool
	Sizes    <-chan Size
}

// Size of a terminal, in characters.
type Size struct{ Width, Height uint16 }

// Run executes a command in a running container with the container's environment and working directory, and returns its
// exit code. A command whose context ends is killed, and the context's error given.
func (r *Runtime) Run(ctx context.Context, id string, options ExecOptions) (int, error) {
	c, err := r.findRunning(id)
	if err != nil {
		return 0, err
	}
	command := c.command
	if options.Terminal {
		command.Env = append(slices.Clone(command.Env), "TERM=xterm")
	}
	command.ID, command.Argv, command.Terminal = c.first.nextID(), options.Command, options.Terminal
	streams, err := options.connect()
	if err != nil {
		return 0, err
	}
	defer streams.close()
	ended, err := c.first.start(command, streams.files)
	streams.closeFiles()
	if err != nil {
		return 0, fmt.Errorf("running %q: %w", strings.Join(options.Command, " "), err)
	}
	stop := context.AfterFunc(ctx, func() { c.first.signal(command.ID, syscall.SIGKILL) })
	defer stop()
	status := <-ended
	streams.await(ctx)
	if err := ctx.Err(); err != nil && status.Signal == int(syscall.SIGKILL) {
		return 0, err
	}
	return status.ExitCode(), nil
}

// streams are the open files of a command and what carries data between them and a caller.
type streams struct {
	files  [3]*os.File
	output sync.WaitGroup
	own    []io.Closer
}

func (e ExecOptions) connect() (*streams, error) {
	s := &streams{}
	var err error
	if e.Terminal {
		err = s.connectTerminal(e)
	} else {
		err = s.connectPipes(e)
	}
	if err != nil {
		s.closeFiles()
		s.close()
		return nil, fmt.Errorf("connecting a command: %w", err)
	}
	return s, nil
}

func (s *streams) connectPipes(o ExecOptions) error {
	var err error
	if s.files[0], err = os.Open(os.DevNull); err != nil {
		return err
	}
	if o.Stdin != nil {
		reader, writer, err := os.Pipe()
		if err != nil {
			return err
		}
		s.files[0].Close()
		s.files[0] = reader
		s.own = append(s.own, writer)
		go func() {
			io.Copy(writer, o.Stdin)
			writer.Close()
		}()
	}
	for i, to := range []io.Writer{o.Stdout, o.Stderr} {
		reader, writer, err := os.Pipe()
		if err != nil {
			return err
		}
		s.files[1+i] = writer
		s.own = append(s.own, reader)
		s.output.Go(func() { drain(to, reader) })
	}
	return nil
}

func (s *streams) connectTerminal(o ExecOptions) error {
	ours, theirs, err := openTerminal()
	if err != nil {
		return err
	}
	defer theirs.Close()
	s.own = append(s.own, ours)
	for i := range s.files {
		if s.files[i], err = duplicate(theirs); err != nil {
			return err
		}
	}
	if o.Stdin != nil {
		go io.Copy(ours, o.Stdin)
	}
	go func() {
		for size := range o.Sizes {
			resize(ours, size)
		}
	}()
	s.output.Go(func() { drain(o.Stdout, ours) })
	return nil
}

// await waits for the last output of a command that has ended. Something that it left running may keep the streams
// open for longer than the caller wants to wait.
func (s *streams) await(ctx context.Context) {
	complete := make(chan struct{})
	go func() {
		s.output.Wait()
		close(complete)
	}()
	select {
	case <-complete:
	case <-ctx.Done():
	}
}

// drain copies until the end, and continues to read after the destination has failed, so that the command can end.
func drain(to io.Writer, from io.Reader) {
	if to != nil {
		io.Copy(to, from)
	}
	io.Copy(io.Discard, from)
}

// closeFiles closes this process's copies of the command's ends.
func (s *streams) closeFiles() {
	for _, file := range s.files {
		if file != nil {
			file.Close()
		}
	}
}

func (s *streams) close() {
	for _, end := range slices.Backward(s.own) {
		end.Close()
	}
}

// bounded keeps the first bytes written to it and drops the rest.
type bounded struct {
	bytes.Buffer
	limit int
}

func (b *bounded) Write(p []byte) (int, error) {
	b.Buffer.Write(p[:min(len(p), b.limit-b.Len())])
	return len(p), nil
}
