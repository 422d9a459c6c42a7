package statedir

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/musterhq/muster/local/internal/atomicfile"
)

// Dir is a claimed directory. Its paths are absolute.
type Dir struct {
	root      string
	temporary bool
	lock      *os.File
}

// Default returns the directory used when none is named:
// $XDG_STATE_HOME/muster, else ~/.local/state/muster.
func Default() (string, error) {
	if state := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(state) {
		return filepath.Join(state, "muster"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("no home directory for the cluster's state: %w; name a directory with --dir", err)
	}
	return filepath.Join(home, ".local", "state", "muster"), nil
}

// Claim creates the directory at path if necessary, accessible to this user only, and locks it for this process. It
// returns an *InUseError if another process holds it. A process may claim a directory only once.
func Claim(path string) (*Dir, error) {
	root, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("state directory %s: %w", path, err)
	}
	if err := os.MkdirAll(root, 0o700); err != nil {
		return nil, unusable(root, err)
	}
	lock, err := acquire(filepath.Join(root, lockName))
	if err != nil {
		var inUse *InUseError
		if errors.As(err, &inUse) {
			inUse.Dir = root
			return nil, inUse
		}
		return nil, unusable(root, err)
	}
	d := &Dir{root: root, lock: lock}
	if err := d.prepare(); err != nil {
		lock.Close()
		return nil, unusable(root, err)
	}
	return d, nil
}

// ClaimTemporary creates and claims a new directory, which Release removes.
func ClaimTemporary() (*Dir, error) {
	root, err := os.MkdirTemp("", "muster-")
	if err != nil {
		return nil, fmt.Errorf("cannot make a temporary directory: %w; set TMPDIR to one that is writable", err)
	}
	d, err := Claim(root)
	if err != nil {
		os.RemoveAll(root)
		return nil, err
	}
	d.temporary = true
	return d, nil
}

// prepare creates the subfolders and records the PID of this process.
func (d *Dir) prepare() error {
	for _, folder := range []string{d.Etcd(), d.PKI(), d.Logs()} {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return err
		}
	}
	return atomicfile.Write(d.Path("pid"), []byte(strconv.Itoa(os.Getpid())+"\n"))
}

// Temporary reports whether Release removes the directory.
func (d *Dir) Temporary() bool { return d.temporary }

// Path returns the absolute path of a file in the directory; of the directory
// itself without elements.
func (d *Dir) Path(elements ...string) string {
	return filepath.Join(append([]string{d.root}, elements...)...)
}

// Etcd is the folder of the database.
func (d *Dir) Etcd() string { return d.Path("etcd") }

// PKI is the folder of keys, certificates and the components' kubeconfigs.
func (d *Dir) PKI() string { return d.Path("pki") }

// Logs is the folder of the components' logs.
func (d *Dir) Logs() string { return d.Path("logs") }

// Release unlocks the directory, or removes it if it is temporary. Another process may claim it from then on, so
// everything that uses it must have ended before.
func (d *Dir) Release() error {
	defer d.lock.Close()
	if d.temporary {
		if err := os.RemoveAll(d.root); err != nil {
			return fmt.Errorf("removing the temporary directory: %w", err)
		}
		return nil
	}
	if err := os.Remove(d.Path("pid")); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("removing the pid file: %w", err)
	}
	return nil
}

func unusable(root string, err error) error {
	// The path is in the message already; the cause alone reads better.
	var pathErr *os.PathError
	if errors.As(err, &pathErr) {
		err = fmt.Errorf("%s %s: %w", pathErr.Op, pathErr.Path, pathErr.Err)
	}
	return fmt.Errorf("cannot use %s for the cluster's state: %w; name a writable directory with --dir", root, err)
}
