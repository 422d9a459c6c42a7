package process

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// nobody is the UID of an unprivileged user that every machine has.
const nobody = 65534

// TestAllWithoutPrivileges runs the tests of containers again as a user without privileges.
func TestAllWithoutPrivileges(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("already runs without privileges")
	}
	// The directory from which go test runs the binary may not be readable for others.
	dir, err := os.MkdirTemp("", "process-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	binary := filepath.Join(dir, "process.test")
	program, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(binary, program, 0o755); err != nil {
		t.Fatal(err)
	}
	for path, mode := range map[string]os.FileMode{dir: 0o755, binary: 0o755} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	own := filepath.Join(dir, "tmp")
	if err := os.Mkdir(own, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(own, nobody, nobody); err != nil {
		t.Fatal(err)
	}
	run := exec.Command(binary, "-test.v", "-test.run", "^Test(Command|Stop|Volumes|Mounts|Process)")
	run.Env = append(os.Environ(), "TMPDIR="+own, "HOME="+own)
	run.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err := run.CombinedOutput()
	if err != nil {
		t.Errorf("%v:\n%s", err, out)
	}
	if !strings.Contains(string(out), "--- PASS: TestStopSendsSIGTERMAndThenKillsEverything/as_plain_processes") {
		t.Errorf("the tests did not run:\n%s", out)
	}
	t.Logf("user namespaces work: %v",
		strings.Contains(string(out), "--- PASS: TestVolumesAppearWhereTheManifestSays/in_a_user_namespace"))
}
