package podvolume

import (
	"os"
	"path/filepath"
	"testing"
)

func TestMemoryOfDeadNodesIsRemovedAndOfLivingOnesKept(t *testing.T) {
	root := t.TempDir()
	living, err := claim(filepath.Join(root, "muster-0-living"))
	if err != nil {
		t.Fatal(err)
	}
	defer living.Close()
	for _, name := range []string{"muster-0-dead/uid/volume", "muster-7-other-user", "muster-0-own/old"} {
		if err := os.MkdirAll(filepath.Join(root, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	own, err := claim(filepath.Join(root, "muster-0-own"))
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	for name, want := range map[string]bool{
		"muster-0-living": true, "muster-7-other-user": true, "muster-0-own": true, "muster-0-own/old": false,
		"muster-0-dead": false,
	} {
		if _, err := os.Stat(filepath.Join(root, name)); (err == nil) != want {
			t.Errorf("directory %s: %v, want it kept: %t", name, err, want)
		}
	}
	if again, err := claim(filepath.Join(root, "muster-0-own")); err == nil {
		again.Close()
		t.Error("two nodes have the same directory")
	}
}

func TestNameWithoutDashHasNoFamily(t *testing.T) {
	parent := filepath.Join(t.TempDir(), "my-state")
	sibling := filepath.Join(filepath.Dir(parent), "my-data")
	for _, dir := range []string{parent, sibling} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	own, err := claim(filepath.Join(parent, "memory"))
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	if _, err := os.Stat(sibling); err != nil {
		t.Errorf("a directory of another owner was removed: %v", err)
	}
}
