package statedir

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// holdDir is the environment variable that makes this test binary hold a directory as another process would, until its
// input ends or it is stopped.
const holdDir = "STATEDIR_TEST_HOLD"

func TestMain(m *testing.M) {
	dir := os.Getenv(holdDir)
	if dir == "" {
		os.Exit(m.Run())
	}
	if _, err := Claim(dir); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("holding")
	_, _ = io.Copy(io.Discard, os.Stdin)
}

func TestClaimMakesAPrivateDirectoryAndReleaseLeavesItsData(t *testing.T) {
	root := filepath.Join(t.TempDir(), "a", "b")
	d, err := Claim(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{d.Path(), d.Etcd(), d.PKI(), d.Logs()} {
		info, err := os.Stat(folder)
		if err != nil {
			t.Fatal(err)
		}
		if mode := info.Mode().Perm(); mode != 0o700 {
			t.Errorf("mode of %s = %o, want 700", folder, mode)
		}
	}
	if pid, _ := os.ReadFile(d.Path("pid")); strings.TrimSpace(string(pid)) != strconv.Itoa(os.Getpid()) {
		t.Errorf("pid file = %q, want this process", pid)
	}
	if err := d.Release(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(d.Path("pid")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the pid file is left after Release: %v", err)
	}
	if _, err := os.Stat(d.Etcd()); err != nil {
		t.Errorf("the data was removed: %v", err)
	}
}

func TestATemporaryDirectoryIsRemovedAtRelease(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	d, err := ClaimTemporary()
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Release(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(d.Path()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the directory is left after Release: %v", err)
	}
}

func TestDirectoryHasOneHolderWhosePIDIsReported(t *testing.T) {
	root := t.TempDir()
	other := startHolder(t, root)

	_, err := Claim(root)
	var inUse *InUseError
	if !errors.As(err, &inUse) || inUse.PID != other.Process.Pid || inUse.Dir != root {
		t.Fatalf("Claim = %v, want an error that process %d holds %s", err, other.Process.Pid, root)
	}
	if strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), "muster down --dir "+root) {
		t.Errorf("got error %v, want one line with the next command", err)
	}
	if pid, held, err := Holder(root); pid != other.Process.Pid || !held || err != nil {
		t.Errorf("Holder = %d, %t, %v; want process %d", pid, held, err, other.Process.Pid)
	}
}

func TestKilledHolderReleasesTheDirectory(t *testing.T) {
	root := t.TempDir()
	other := startHolder(t, root)
	if err := other.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = other.Wait()
	if _, err := os.Stat(filepath.Join(root, "pid")); err != nil {
		t.Fatalf("the stale pid file for the test is missing: %v", err)
	}

	if _, held, err := Holder(root); held || err != nil {
		t.Errorf("Holder: held = %t, %v, want not held", held, err)
	}
	if _, err := Stop(t.Context(), root); !errors.Is(err, ErrNotRunning) {
		t.Errorf("Stop = %v, want ErrNotRunning", err)
	}
	d, err := Claim(root)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Release(); err != nil {
		t.Error(err)
	}
}

func TestStopEndsTheHolderAndReturnsWhenItIsGone(t *testing.T) {
	root := t.TempDir()
	other := startHolder(t, root)
	pid, err := Stop(t.Context(), root)
	if err != nil || pid != other.Process.Pid {
		t.Fatalf("Stop = %d, %v; want %d", pid, err, other.Process.Pid)
	}
	if _, held, err := Holder(root); held || err != nil {
		t.Errorf("Holder after Stop: held = %t, %v, want not held", held, err)
	}
}

func TestStopGivesUpWhenItsTimeEnds(t *testing.T) {
	root := t.TempDir()
	other := startHolder(t, root)
	// A process that is stopped by SIGSTOP does not react to other signals.
	if err := other.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := Stop(ctx, root); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "kill -9") {
		t.Errorf("Stop = %v, want a timeout and the next command", err)
	}
}

func TestMissingDirectoryHasNoHolder(t *testing.T) {
	if _, err := Stop(t.Context(), filepath.Join(t.TempDir(), "none")); !errors.Is(err, ErrNotRunning) {
		t.Errorf("Stop = %v, want ErrNotRunning", err)
	}
}

func TestUnusableDirectoryIsOneLineWithAdvice(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Claim(filepath.Join(file, "below"))
	if err == nil || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), "--dir") {
		t.Errorf("Claim = %v, want one line with --dir", err)
	}
}

func TestDefaultFollowsTheDesktopConvention(t *testing.T) {
	for _, test := range []struct{ name, state, home, want string }{
		{"the state home if it is set", "/s", "/h", "/s/muster"},
		{"below home if it is not", "", "/h", "/h/.local/state/muster"},
		{"below home if it is not absolute", "s", "/h", "/h/.local/state/muster"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Setenv("XDG_STATE_HOME", test.state)
			t.Setenv("HOME", test.home)
			if got, err := Default(); got != test.want || err != nil {
				t.Errorf("Default = %q, %v; want %q", got, err, test.want)
			}
		})
	}
}

// startHolder runs a process that holds the directory until the test ends.
func startHolder(t *testing.T, dir string) *exec.Cmd {
	t.Helper()
	holder := exec.Command(os.Args[0])
	holder.Env = append(os.Environ(), holdDir+"="+dir)
	input, err := holder.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := holder.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		input.Close()
		_ = holder.Process.Kill()
		_ = holder.Wait()
	})
	if line, err := bufio.NewReader(output).ReadString('\n'); line != "holding\n" {
		t.Fatalf("output of the holder = %q (%v)", line, err)
	}
	return holder
}
