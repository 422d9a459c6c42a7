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

// removeTimeout is how long the kernel may take to reap killed processes of a cgroup.
const removeTimeout = 10 * time.Second

// cgroups are the folders of one cgroup, one for each hierarchy.
type cgroups []string

func cgroupName(pid int) string { return cgroupPrefix + strconv.Itoa(pid) }

// unifiedMagic is the file system type of cgroup v2. With cgroup v1 it is mounted, if at all, below a folder of another
// type.
const unifiedMagic = 0x63677270

// makeCgroups creates the cgroup in each hierarchy, after it has removed leftovers of killed processes. Remove what it
// returns also after an error.
func makeCgroups(name string) (made cgroups, err error) {
	var root syscall.Statfs_t
	if err := syscall.Statfs(cgroupRoot, &root); err != nil {
		return nil, fmt.Errorf("reading the file system type of %s: %w", cgroupRoot, err)
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return nil, err
	}
	unified := root.Type == unifiedMagic
	for _, hierarchy := range hierarchies(unified, string(mounts)) {
		removeLeftovers(hierarchy)
		prepare := initCPUSet
		if unified {
			prepare = enableControllers
		}
		dir := filepath.Join(hierarchy, name)
		if err := os.Mkdir(dir, 0o755); err != nil {
			return made, fmt.Errorf("creating a cgroup: %w", err)
		}
		made = append(made, dir)
		if err := prepare(hierarchy, dir); err != nil {
			return made, err
		}
	}
	if len(made) == 0 {
		return nil, fmt.Errorf("no cgroups are mounted in %s", cgroupRoot)
	}
	return made, nil
}

// hierarchies returns the folders of the cgroup file systems: one for cgroup v2; for cgroup v1 one for each controller,
// and possibly v2 as one without controllers.
func hierarchies(unified bool, mounts string) (found []string) {
	if unified {
		return []string{cgroupRoot}
	}
	for line := range strings.Lines(mounts) {
		fields := strings.Fields(line)
		if len(fields) > 2 && (fields[2] == "cgroup" || fields[2] == "cgroup2") &&
			strings.HasPrefix(fields[1], cgroupRoot+"/") {
			found = append(found, fields[1])
		}
	}
	return found
}

// initCPUSet sets the CPUs and memory nodes of a cpuset of cgroup v1, which is created empty and then accepts no
// process.
func initCPUSet(hierarchy, dir string) error {
	for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
		content, err := os.ReadFile(filepath.Join(hierarchy, file))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, file), content, 0o644)
		}
		if err != nil {
			return fmt.Errorf("setting %s of a cgroup: %w", file, err)
		}
	}
	return nil
}

// enableControllers enables controllers for the children of a cgroup v2. A kubelet requires those that the kernel has
// in the cgroup that it is given; below that it enables them itself.
func enableControllers(hierarchy, _ string) error {
	available, err := os.ReadFile(filepath.Join(hierarchy, "cgroup.controllers"))
	if err != nil {
		return fmt.Errorf("reading the controllers of cgroups: %w", err)
	}
	file := filepath.Join(hierarchy, "cgroup.subtree_control")
	enabled, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("reading the controllers of cgroups: %w", err)
	}
	for _, controller := range []string{"cpu", "cpuset", "memory", "pids", "hugetlb"} {
		if !slices.Contains(strings.Fields(string(available)), controller) ||
			slices.Contains(strings.Fields(string(enabled)), controller) {
			continue
		}
		if err := os.WriteFile(file, []byte("+"+controller), 0o644); err != nil {
			return fmt.Errorf("enabling the controller %s for cgroups: %w", controller, err)
		}
	}
	return nil
}

// remove removes the cgroup with its children. Its processes have been killed but may take a moment to exit.
func (c cgroups) remove() error {
	var failed []error
	deadline := time.Now().Add(removeTimeout)
	for _, dir := range c {
		err := removeTree(dir)
		for errors.Is(err, syscall.EBUSY) && time.Now().Before(deadline) {
			time.Sleep(20 * time.Millisecond) // cgroup v1 does not notify when it becomes empty
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

// removeLeftovers removes the cgroups of test processes that were killed before they could do it.
func removeLeftovers(hierarchy string) {
	entries, _ := os.ReadDir(hierarchy)
	for _, entry := range entries {
		number, ours := strings.CutPrefix(entry.Name(), cgroupPrefix)
		pid, err := strconv.Atoi(number)
		if ours && err == nil && errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			_ = removeTree(filepath.Join(hierarchy, entry.Name())) // the next start tries again
		}
	}
}

// tunables are the sysctls of the whole machine that a kubelet sets.
type tunables map[string][]byte

// readTunables returns the current values. Files that do not exist are left out.
func readTunables() tunables {
	t := tunables{}
	for _, name := range []string{"vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops",
		"kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes"} {
		if value, err := os.ReadFile(filepath.Join("/proc/sys", name)); err == nil {
			t[name] = value
		}
	}
	return t
}

func (t tunables) restore() {
	for name, value := range t {
		if err := os.WriteFile(filepath.Join("/proc/sys", name), value, 0o644); err != nil {
			fmt.Fprintf(os.Stderr, "restoring the sysctl %s: %v\n", name, err)
		}
	}
}
