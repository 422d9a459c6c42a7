package localcluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// binaryName is the program that holds the embedded control plane. It is a program of its own because it is large:
// most users of muster talk to a cluster that somebody else runs.
const binaryName = "muster-local"

// Binary gives the path of the muster-local that stands beside this program, following links: a kubectl-muster in
// another folder that points here counts as here. The error of a missing binary says how to get one.
func Binary() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find the path of this program: %w", err)
	}
	if real, err := filepath.EvalSymlinks(self); err == nil {
		self = real
	}
	return beside(self)
}

func beside(self string) (string, error) {
	path := filepath.Join(filepath.Dir(self), binaryName)
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return "", fmt.Errorf("there is no %s beside %s: run `make build` in Muster's source folder and use its bin/muster", binaryName, self)
	case err != nil:
		return "", fmt.Errorf("look for %s: %w", binaryName, err)
	case info.IsDir() || info.Mode().Perm()&0o111 == 0:
		return "", fmt.Errorf("%s is not a program: run `make build` in Muster's source folder", path)
	}
	return path, nil
}

// calledAs is the name that muster-local is called by: it speaks of itself by that, and people typed `muster up`.
const calledAs = "muster"

// Exec replaces this process by `muster-local args…`, so that signals, the terminal and the exit code are its own.
// It returns only when that failed.
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
