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

// Default gives the directory used when none is named:
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

// Claim makes the directory at path if need be, readable by this user only,
// and takes it for this process. The error is an *InUseError when another
// process holds it. A process claims a directory at most once.
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

// ClaimTemporary makes and claims a new directory that Release removes.
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

// prepare makes the folders that every part expects, and says who is here.
func (d *Dir) prepare() error {
	for _, folder := range []string{d.Etcd(), d.PKI(), d.Logs()} {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return err
		}
	}
	return atomicfile.Write(d.Path("pid"), []byte(strconv.Itoa(os.Getpid())+"\n"))
}

// Temporary says whether Release removes the directory.
func (d *Dir) Temporary() bool { return d.temporary }

// Path gives the absolute path of a file in the directory; of the directory
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

// Release gives the directory up, or removes it if it is temporary. Whoever
// waits for the directory may proceed from here on, so everything that uses
// it has ended before.
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
