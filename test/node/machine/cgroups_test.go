package machine

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestHierarchiesOfBothVersions(t *testing.T) {
	const first = `proc /proc proc rw 0 0
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
		"the first":  {false, first, []string{"/sys/fs/cgroup/cpu,cpuacct", "/sys/fs/cgroup/memory", "/sys/fs/cgroup/unified"}},
		"the second": {true, "cgroup2 /sys/fs/cgroup cgroup2 rw,nsdelegate 0 0\n", []string{"/sys/fs/cgroup"}},
		"neither":    {false, "proc /proc proc rw 0 0\n", nil},
	} {
		if got := hierarchies(test.unified, test.mounts); !slices.Equal(got, test.want) {
			t.Errorf("%s: %v, want %v", what, got, test.want)
		}
	}
}

// TestCgroupV2PassesOnControllers: those that the kernel has and that are not enabled yet, each by a write of its own.
func TestCgroupV2PassesOnControllers(t *testing.T) {
	for what, test := range map[string]struct{ has, passes, want string }{
		"nothing yet": {"cpuset cpu io memory pids\n", "", "+pids"}, // a plain file keeps only the last write
		"one lacks":   {"cpuset cpu io memory pids\n", "cpuset memory pids\n", "+cpu"},
		"all are":     {"cpuset cpu io memory pids\n", "cpuset cpu memory pids\n", "cpuset cpu memory pids\n"},
		"few there":   {"memory\n", "", "+memory"},
	} {
		dir := t.TempDir()
		for name, content := range map[string]string{"cgroup.controllers": test.has, "cgroup.subtree_control": test.passes} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := enableControllers(dir, ""); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(filepath.Join(dir, "cgroup.subtree_control")); err != nil || string(got) != test.want {
			t.Errorf("%s: %q, %v, want %q", what, got, err, test.want)
		}
	}
	if err := enableControllers(t.TempDir(), ""); err == nil {
		t.Error("a folder of no cgroups passes something on")
	}
}

func TestCgroupV1PassesOnCPUs(t *testing.T) {
	above, dir := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(above, "cpuset.cpus"), []byte("0-1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := initCPUSet(above, dir); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(dir, "cpuset.cpus")); err != nil || string(got) != "0-1\n" {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "cpuset.mems")); err == nil {
		t.Error("what is not there is passed on")
	}
}
