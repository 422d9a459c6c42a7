package machine

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestHierarchiesOfBothVersions checks the cgroup folders that are found in the mounts of a machine.
func TestHierarchiesOfBothVersions(t *testing.T) {
	const v1 = `proc /proc proc rw 0 0
tmpfs /sys/fs/cgroup tmpfs rw,mode=755 0 0
cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,cpu,cpuacct 0 0
cgroup /sys/fs/cgroup/memory cgroup rw,memory 0 0
cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0
cgroup /elsewhere/memory cgroup rw,memory 0 0
`
	for what, test := range map[string]struct {
		unified bool
		mounts  string
		want    []string
	}{
		"cgroup v1":  {false, v1, []string{"/sys/fs/cgroup/cpu,cpuacct", "/sys/fs/cgroup/memory", "/sys/fs/cgroup/unified"}},
		"cgroup v2":  {true, "cgroup2 /sys/fs/cgroup cgroup2 rw,nsdelegate 0 0\n", []string{"/sys/fs/cgroup"}},
		"no cgroups": {false, "proc /proc proc rw 0 0\n", nil},
	} {
		if got := hierarchies(test.unified, test.mounts); !slices.Equal(got, test.want) {
			t.Errorf("%s: hierarchies = %v, want %v", what, got, test.want)
		}
	}
}

// TestControllersOfCgroupV2AreEnabled checks that those are enabled that the kernel has and that are not enabled yet,
// each by a write of its own. Of several writes, the plain files of this test keep only the last one.
func TestControllersOfCgroupV2AreEnabled(t *testing.T) {
	for what, test := range map[string]struct{ available, enabled, want string }{
		"none enabled":  {"cpuset cpu io memory pids\n", "", "+pids"},
		"one missing":   {"cpuset cpu io memory pids\n", "cpuset memory pids\n", "+cpu"},
		"all enabled":   {"cpuset cpu io memory pids\n", "cpuset cpu memory pids\n", "cpuset cpu memory pids\n"},
		"one available": {"memory\n", "", "+memory"},
	} {
		dir := t.TempDir()
		for name, content := range map[string]string{"cgroup.controllers": test.available,
			"cgroup.subtree_control": test.enabled} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := enableControllers(dir, ""); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(filepath.Join(dir, "cgroup.subtree_control")); err != nil || string(got) != test.want {
			t.Errorf("%s: cgroup.subtree_control = %q (%v), want %q", what, got, err, test.want)
		}
	}
	if err := enableControllers(t.TempDir(), ""); err == nil {
		t.Error("enableControllers accepts a folder that is no cgroup, want an error")
	}
}

// TestCPUSetOfCgroupV1IsInitialized checks that the CPUs are copied from the parent, and that a missing file is
// ignored.
func TestCPUSetOfCgroupV1IsInitialized(t *testing.T) {
	parent, dir := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(parent, "cpuset.cpus"), []byte("0-1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := initCPUSet(parent, dir); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(dir, "cpuset.cpus")); err != nil || string(got) != "0-1\n" {
		t.Errorf("cpuset.cpus = %q (%v), want that of the parent, 0-1", got, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "cpuset.mems")); err == nil {
		t.Error("cpuset.mems was created, although the parent has none")
	}
}
