package process

import (
	"context"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// StopContainer implements RuntimeService: the container's stop signal, the grace period in seconds, then SIGKILL to
// all of its processes. It returns when the container has ended.
func (r *Runtime) StopContainer(ctx context.Context, id string, graceSeconds int64) error {
	c, running, err := r.find(id)
	if err != nil || !running {
		return err
	}
	// The grace period is the container's: a caller that gives up does not shorten it.
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Duration(graceSeconds)*time.Second)
	defer cancel()
	c.stop(grace)
	return nil
}

// stop asks a running container to end, and kills it once the context is done.
func (c *container) stop(grace context.Context) {
	c.first.signal(0, stopSignal(c.status.GetStopSignal()))
	select {
	case <-c.ended:
	case <-grace.Done():
		c.kill()
	}
}

// unresponsive is how long a container's first process may take to kill the others, before it is killed itself. It
// has nothing to wait for, so this only passes where a process hangs in the kernel.
const unresponsive = 5 * time.Second

// kill ends all processes of a running container and returns when they are gone.
func (c *container) kill() {
	c.first.killAll()
	select {
	case <-c.ended:
	case <-time.After(unresponsive):
		c.first.process.Process.Kill()
		<-c.ended
	}
}

// stopSignal is the machine's number for a signal of the runtime interface. Its real-time signals follow each other
// in both.
func stopSignal(s runtimeapi.Signal) syscall.Signal {
	const firstRealTime = 34
	if s >= runtimeapi.Signal_SIGNAL_SIGRTMIN {
		return firstRealTime + syscall.Signal(s-runtimeapi.Signal_SIGNAL_SIGRTMIN)
	}
	if number := unix.SignalNum(s.String()); number != 0 {
		return number
	}
	return syscall.SIGTERM
}
