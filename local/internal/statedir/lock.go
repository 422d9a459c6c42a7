package statedir

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

const lockName = "lock"

// InUseError says that another process holds a directory.
type InUseError struct {
	Dir string
	// PID of the holder; 0 if it is in another PID namespace.
	PID int
}

func (i *InUseError) Error() string {
	holder := "another process"
	if i.PID != 0 {
		holder = fmt.Sprintf("process %d", i.PID)
	}
	return fmt.Sprintf("%s is in use by %s; stop it with `muster down --dir %s`, or name another directory with --dir",
		i.Dir, holder, i.Dir)
}

// acquire locks the file at path. It uses a POSIX record lock rather than flock: only the former reports its owner, and
// a forked child never inherits it. It is lost when this process closes any descriptor of the file, so nothing else in
// the program may open it.
func acquire(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	err = unix.FcntlFlock(file.Fd(), unix.F_SETLK, wholeFile())
	if err == nil {
		return file, nil
	}
	file.Close()
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
		pid, holderErr := holder(path)
		if holderErr != nil {
			return nil, holderErr
		}
		return nil, &InUseError{PID: pid}
	}
	return nil, fmt.Errorf("locking %s: %w", path, err)
}

// Holder returns the PID of the process that holds the directory at path, and whether there is one. The PID is 0 if the
// holder is in another PID namespace.
func Holder(path string) (pid int, held bool, err error) {
	lock := filepath.Join(path, lockName)
	if _, err := os.Stat(lock); err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return 0, false, nil
		}
		return 0, false, fmt.Errorf("looking for a cluster in %s: %w", path, err)
	}
	found, err := query(lock)
	if err != nil {
		return 0, false, fmt.Errorf("looking for a cluster in %s: %w", path, err)
	}
	return int(found.Pid), found.Type != unix.F_UNLCK, nil
}

func holder(lock string) (int, error) {
	found, err := query(lock)
	if err != nil {
		return 0, err
	}
	return int(found.Pid), nil
}

func query(lock string) (*unix.Flock_t, error) {
	file, err := os.OpenFile(lock, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	asked := wholeFile()
	if err := unix.FcntlFlock(file.Fd(), unix.F_GETLK, asked); err != nil {
		return nil, fmt.Errorf("asking who holds %s: %w", lock, err)
	}
	return asked, nil
}

func wholeFile() *unix.Flock_t {
	return &unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart}
}
