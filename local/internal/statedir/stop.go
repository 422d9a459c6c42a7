package statedir

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// ErrNotRunning is returned by Stop if no process holds the directory.
var ErrNotRunning = errors.New("nothing runs there")

// Stop asks the holder of the directory at path to stop (SIGTERM) and waits until it has exited or ctx ends. It returns
// the PID that was stopped, or ErrNotRunning if there was none.
func Stop(ctx context.Context, path string) (int, error) {
	root, err := filepath.Abs(path)
	if err != nil {
		return 0, fmt.Errorf("state directory %s: %w", path, err)
	}
	pid, held, err := Holder(root)
	switch {
	case err != nil:
		return 0, err
	case !held:
		return 0, ErrNotRunning
	case pid == 0:
		return 0, fmt.Errorf("the process that holds %s is in another pid namespace; stop it from there", root)
	}

	process, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return pid, nil
	} else if err != nil {
		return pid, fmt.Errorf("opening process %d: %w", pid, err)
	}
	defer unix.Close(process)
	// The pidfd now refers to one process for good; check again that it is the holder, in case the PID was reused in
	// between.
	if now, held, err := Holder(root); err != nil || !held || now != pid {
		return pid, err
	}
	if err := unix.PidfdSendSignal(process, unix.SIGTERM, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return pid, fmt.Errorf("stopping process %d: %w", pid, err)
	}
	if err := awaitExit(ctx, process); err != nil {
		return pid, fmt.Errorf("process %d was asked to stop but still runs: %w; `kill -9 %d` ends it and its children",
			pid, err, pid)
	}
	return pid, nil
}

// awaitExit blocks until the process behind the descriptor has ended.
func awaitExit(ctx context.Context, process int) error {
	for {
		timeout := time.Second
		if deadline, ok := ctx.Deadline(); ok {
			timeout = min(timeout, max(0, time.Until(deadline)))
		}
		ready, err := unix.Poll([]unix.PollFd{{Fd: int32(process), Events: unix.POLLIN}}, int(timeout.Milliseconds()))
		if err != nil && !errors.Is(err, unix.EINTR) {
			return err
		}
		if ready > 0 {
			return nil
		}
		if err := context.Cause(ctx); err != nil {
			return err
		}
	}
}
