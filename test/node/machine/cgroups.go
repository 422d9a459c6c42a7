package machine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	cgroupRoot     = "/sys/fs/cgroup"
	cgroupPrefix   = "muster-node-"
	cgroupVariable = "MUSTER_NODE_CGROUP" // the cgroup of all pods, inside
)

// removePatience is how long the kernel may take to bury those who were in a cgroup.
const removePatience = 10 * time.Second

// cgroups are the folders of one cgroup, one a hierarchy.
type cgroups []string

func cgroupName(pid int) string { return cgroupPrefix + strconv.Itoa(pid) }

// makeCgroups makes the cgroup in each hierarchy, after those that killed processes left. What it made is to be removed
// after an error too.
func makeCgroups(name string) (made cgroups, err error) {
	for _, hierarchy := range hierarchies() {
		removeLeft(hierarchy)
		dir := filepath.Join(hierarchy, name)
		if err := os.Mkdir(dir, 0o755); err != nil {
			return made, fmt.Errorf("no cgroup can be made: %w", err)
		}
		made = append(made, dir)
		// In the first version of cgroups a new set has no processors, and takes no process.
		for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
			content, err := os.ReadFile(filepath.Join(hierarchy, file))
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err == nil {
				err = os.WriteFile(filepath.Join(dir, file), content, 0o644)
			}
			if err != nil {
				return made, fmt.Errorf("no processors can be given to a cgroup: %w", err)
			}
		}
	}
	if len(made) == 0 {
		return nil, fmt.Errorf("no cgroups are mounted in %s", cgroupRoot)
	}
	return made, nil
}

// hierarchies are the folders of the cgroup file systems: one in the second version, one a controller in the first.
func hierarchies() (found []string) {
	mounts, _ := os.ReadFile("/proc/self/mounts")
	for line := range strings.Lines(string(mounts)) {
		fields := strings.Fields(line)
		if len(fields) > 2 && (fields[2] == "cgroup" || fields[2] == "cgroup2") && strings.HasPrefix(fields[1], cgroupRoot) {
			found = append(found, fields[1])
		}
	}
	return found
}

// remove removes the cgroup with all below it: whoever was in it has been killed, and may take a moment to end.
func (c cgroups) remove() error {
	var failed []error
	deadline := time.Now().Add(removePatience)
	for _, dir := range c {
		err := removeTree(dir)
		for errors.Is(err, syscall.EBUSY) && time.Now().Before(deadline) {
			time.Sleep(20 * time.Millisecond) // a cgroup of the first version tells nobody when it is empty
			err = removeTree(dir)
		}
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}

func removeTree(dir string) error {
	var dirs []string
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			dirs = append(dirs, path)
		}
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, path := range slices.Backward(dirs) {
		if err := syscall.Rmdir(path); err != nil && !errors.Is(err, syscall.ENOENT) {
			return fmt.Errorf("removing %s: %w", path, err)
		}
	}
	return err
}

// removeLeft removes the cgroups of test processes that were killed with no time to do it.
func removeLeft(hierarchy string) {
	entries, _ := os.ReadDir(hierarchy)
	for _, entry := range entries {
		number, ours := strings.CutPrefix(entry.Name(), cgroupPrefix)
		pid, err := strconv.Atoi(number)
		if ours && err == nil && errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			_ = removeTree(filepath.Join(hierarchy, entry.Name())) // the next start tries again
		}
	}
}

// tunables are what a kubelet sets in the kernel of the whole machine.
type tunables map[string][]byte

func readTunables() tunables {
	t := tunables{}
	for _, name := range []string{"vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops", "kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes"} {
		if value, err := os.ReadFile(filepath.Join("/proc/sys", name)); err == nil {
			t[name] = value
		}
	}
	return t
}

func (t tunables) restore() {
	for name, value := range t {
		if err := os.WriteFile(filepath.Join("/proc/sys", name), value, 0o644); err != nil {
			fmt.Fprintf(os.Stderr, "setting %s as it was: %v\n", name, err)
		}
	}
}
