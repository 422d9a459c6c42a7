package localcluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// binaryName is the program with the embedded control plane. It is a separate binary because it is large, and most
// users of muster use an existing cluster.
const binaryName = "muster-local"

// Binary returns the path of the muster-local beside this program, after symbolic links have been resolved, so that a
// kubectl-muster linked from another folder works. The error for a missing binary says how to get one.
func Binary() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find the path of this program: %w", err)
	}
	if resolved, err := filepath.EvalSymlinks(self); err == nil {
		self = resolved
	}
	return beside(self)
}

func beside(self string) (string, error) {
	path := filepath.Join(filepath.Dir(self), binaryName)
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return "", fmt.Errorf("there is no %s beside %s: run `make build` in Muster's source folder and use its bin/muster",
			binaryName, self)
	case err != nil:
		return "", fmt.Errorf("look for %s: %w", binaryName, err)
	case info.IsDir() || info.Mode().Perm()&0o111 == 0:
		return "", fmt.Errorf("%s is not a program: run `make build` in Muster's source folder", path)
	}
	return path, nil
}

// calledAs is the argv[0] of muster-local, which it uses in its messages: the user typed `muster up`.
const calledAs = "muster"

// Exec replaces this process by `muster-local args…`, so that signals, the terminal and the exit code are handled by
// it. It returns only on failure.
func Exec(args ...string) error {
	path, err := Binary()
	if err != nil {
		return err
	}
	if err := syscall.Exec(path, append([]string{calledAs}, args...), os.Environ()); err != nil {
		return fmt.Errorf("run %s: %w", path, err)
	}
	return nil
}
