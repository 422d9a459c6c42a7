package podnet

import (
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// newNamespace makes a network namespace that lives as long as the file, or a process in it, does. Its loopback is up.
func newNamespace() (*os.File, error) {
	var namespace *os.File
	err := away(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("making a network namespace: %w", err)
		}
		// As in other container runtimes: a container's user need not be root to listen on port 80. Best effort.
		os.WriteFile("/proc/sys/net/ipv4/ip_unprivileged_port_start", []byte("0"), 0)
		var err error
		namespace, err = os.Open("/proc/thread-self/ns/net")
		return err
	})
	return namespace, err
}

// inside runs the function in a network namespace. Sockets that it makes stay there.
func inside(namespace *os.File, f func() error) error {
	return away(func() error {
		if err := unix.Setns(int(namespace.Fd()), unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("entering a network namespace: %w", err)
		}
		return f()
	})
}

// away runs a function that may change the thread's network namespace, and then restores the namespace. If that fails
// the thread is not reused.
func away(f func() error) error {
	result := make(chan error)
	go func() {
		runtime.LockOSThread()
		home, err := os.Open("/proc/thread-self/ns/net")
		if err != nil {
			result <- fmt.Errorf("finding the machine's network namespace: %w", err)
			return
		}
		defer home.Close()
		err = f()
		if unix.Setns(int(home.Fd()), unix.CLONE_NEWNET) == nil {
			runtime.UnlockOSThread()
		}
		result <- err
	}()
	return <-result
}
