package podvolume

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// claim creates an empty directory in memory and locks it as long as the returned file is open, so that it can be told
// from the directory of a process that was killed. claim removes the latter, which would otherwise occupy memory
// forever.
func claim(dir string) (*os.File, error) {
	for _, other := range append(family(dir), dir) {
		if err := removeIfAbandoned(other); err != nil {
			return nil, fmt.Errorf("removing volumes of an earlier run: %w", err)
		}
	}
	for {
		if err := os.Mkdir(dir, 0o711); err != nil && !os.IsExist(err) {
			return nil, fmt.Errorf("making a directory for volumes in memory: %w", err)
		}
		file, err := lock(dir)
		if err != nil {
			return nil, fmt.Errorf("claiming the directory for volumes in memory: %w", err)
		}
		if isStill(file, dir) {
			return file, nil
		}
		file.Close() // another process removed it as abandoned before it was locked
	}
}

// family lists the directories beside this one whose names are equal up to the last dash.
func family(dir string) []string {
	parent, name := filepath.Split(dir)
	dash := strings.LastIndex(name, "-")
	if dash < 0 {
		return nil
	}
	entries, err := os.ReadDir(parent)
	if err != nil {
		return nil // then there is none
	}
	var list []string
	for _, entry := range entries {
		if entry.IsDir() && strings.HasPrefix(entry.Name(), name[:dash+1]) {
			list = append(list, filepath.Join(parent, entry.Name()))
		}
	}
	return list
}

func removeIfAbandoned(dir string) error {
	file, err := lock(dir)
	if err != nil {
		return nil // in use, not this user's, or gone
	}
	defer file.Close()
	return os.RemoveAll(dir)
}

func lock(dir string) (*os.File, error) {
	file, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		file.Close()
		return nil, fmt.Errorf("locking %s, which another node has: %w", dir, err)
	}
	return file, nil
}

// isStill reports whether the open directory is the one at the path.
func isStill(file *os.File, path string) bool {
	open, err := file.Stat()
	if err != nil {
		return false
	}
	there, err := os.Stat(path)
	return err == nil && os.SameFile(open, there)
}
