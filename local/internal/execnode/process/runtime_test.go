package process

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	utilexec "k8s.io/utils/exec"
)

// machine is a runtime with the operations that tests need.
type machine struct {
	*Runtime
	t      testing.TB
	dir    string
	config *runtimeapi.PodSandboxConfig
	box    string
}

// newMachine returns a runtime with one sandbox and the most isolation within the limit.
func newMachine(t testing.TB, limit Isolation) *machine {
	t.Helper()
	m := &machine{t: t, dir: t.TempDir()}
	spawner := NewSpawner()
	t.Cleanup(spawner.Stop)
	isolation, err := Detect(spawner, limit, t.TempDir())
	if err != nil && limit.Mounts {
		t.Skipf("this machine does not allow this isolation: %v", err)
	}
	m.Runtime, err = New(Options{
		Dir: m.dir, PodDir: func(uid string) string { return filepath.Join(m.dir, "pods", uid) },
		Isolation: isolation, Spawner: spawner, HostAddress: netip.MustParseAddr("192.0.2.1"), Changed: func(string) {},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		killNow, cancel := context.WithCancel(context.Background())
		cancel()
		m.Close(killNow)
	})
	m.config = &runtimeapi.PodSandboxConfig{
		Metadata: &runtimeapi.PodSandboxMetadata{Name: "pod", Namespace: "ns", Uid: "uid-1"},
		Hostname: "pod-host", LogDirectory: filepath.Join(m.dir, "logs"),
		DnsConfig: &runtimeapi.DNSConfig{Servers: []string{"10.1.2.3"}, Searches: []string{"ns.svc.cluster.local"}},
	}
	if m.box, err = m.RunPodSandbox(t.Context(), m.config, ""); err != nil {
		t.Fatal(err)
	}
	return m
}

// start runs a shell script as a container and returns its ID.
func (m *machine) start(script string, change ...func(*runtimeapi.ContainerConfig)) string {
	m.t.Helper()
	id, err := m.tryStart(script, change...)
	if err != nil {
		m.t.Fatal(err)
	}
	return id
}

func (m *machine) tryStart(script string, change ...func(*runtimeapi.ContainerConfig)) (string, error) {
	m.t.Helper()
	config := &runtimeapi.ContainerConfig{
		Metadata: &runtimeapi.ContainerMetadata{Name: "main"}, Image: &runtimeapi.ImageSpec{},
		Command: []string{"sh", "-c", script}, LogPath: newID() + ".log",
	}
	for _, f := range change {
		f(config)
	}
	id, err := m.CreateContainer(m.t.Context(), m.box, config, m.config)
	if err != nil {
		m.t.Fatal(err)
	}
	return id, m.StartContainer(m.t.Context(), id)
}

// patience bounds every wait; it suffices on a machine that is busy with other tests.
const patience = 2 * time.Minute

// awaitEnd waits for the end of a container.
func (m *machine) awaitEnd(id string) *runtimeapi.ContainerStatus {
	m.t.Helper()
	m.mu.Lock()
	c := m.containers[id]
	m.mu.Unlock()
	select {
	case <-c.ended:
	case <-time.After(patience):
		m.t.Fatalf("timed out waiting until container %s ends", id)
	}
	response, err := m.ContainerStatus(m.t.Context(), id, false)
	if err != nil {
		m.t.Fatal(err)
	}
	return response.GetStatus()
}

// log returns the output of a container, without times.
func (m *machine) log(id string) string {
	m.t.Helper()
	response, err := m.ContainerStatus(m.t.Context(), id, false)
	if err != nil {
		m.t.Fatal(err)
	}
	data, err := os.ReadFile(response.GetStatus().GetLogPath())
	if err != nil {
		m.t.Fatal(err)
	}
	var text strings.Builder
	for line := range strings.Lines(string(data)) {
		_, rest, _ := strings.Cut(line, " ")
		text.WriteString(rest)
	}
	return text.String()
}

// levels are the kinds of machine on which the tests below run.
var levels = map[string]Isolation{
	"with root":             {Mounts: true, Processes: true},
	"in a user namespace":   Unprivileged,
	"without PID namespace": {Mounts: true},
	"as plain processes":    {},
}

func onEveryMachine(t *testing.T, test func(t *testing.T, m *machine)) {
	for name, limit := range levels {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t, limit)
			if m.options.Isolation != limit {
				t.Skipf("this machine allows only %+v", m.options.Isolation)
			}
			test(t, m)
		})
	}
}

func TestCommandRunsAndItsEndIsReported(t *testing.T) {
	onEveryMachine(t, func(t *testing.T, m *machine) {
		id := m.start("echo out; echo err >&2; pwd; exit 3")
		status := m.awaitEnd(id)
		if status.GetExitCode() != 3 || status.GetReason() != "Error" {
			t.Errorf("ended with %d %q, want 3 Error", status.GetExitCode(), status.GetReason())
		}
		log := m.log(id)
		for _, line := range []string{"stdout F out\n", "stderr F err\n",
			"stdout F " + filepath.Join(m.dir, "pods/uid-1/work") + "\n"} {
			if !strings.Contains(log, line) {
				t.Errorf("log does not have %q:\n%s", line, log)
			}
		}
	})
}

func TestCommandThatIsNotThereIsAStartError(t *testing.T) {
	onEveryMachine(t, func(t *testing.T, m *machine) {
		id, err := m.tryStart("", func(c *runtimeapi.ContainerConfig) { c.Command = []string{"no-such-program"} })
		if err == nil || !strings.Contains(err.Error(), "not found in $PATH") {
			t.Errorf("got error %v, want one about the PATH", err)
		}
		if status := m.awaitEnd(id); status.GetExitCode() != 128 || status.GetReason() != "StartError" {
			t.Errorf("ended with %d %q, want 128 StartError", status.GetExitCode(), status.GetReason())
		}
	})
}

func TestStopSendsSIGTERMAndThenKillsEverything(t *testing.T) {
	onEveryMachine(t, func(t *testing.T, m *machine) {
		polite := m.start("exec sleep 1000")
		if err := m.StopContainer(t.Context(), polite, 30); err != nil {
			t.Fatal(err)
		}
		if code := m.awaitEnd(polite).GetExitCode(); code != 143 {
			t.Errorf("a process without a handler ended with %d, want 143", code)
		}
		stubborn := m.start(`trap "" TERM; echo ready; (setsid sleep 1000 &) ; while :; do sleep 1; done`)
		m.awaitLogLine(stubborn, "ready")
		if err := m.StopContainer(t.Context(), stubborn, 0); err != nil {
			t.Fatal(err)
		}
		if code := m.awaitEnd(stubborn).GetExitCode(); code != 137 {
			t.Errorf("a process that ignores SIGTERM ended with %d, want 137", code)
		}
	})
}

// awaitLogLine waits until a container has logged a line.
func (m *machine) awaitLogLine(id, line string) {
	m.t.Helper()
	err := wait.PollUntilContextTimeout(m.t.Context(), 5*time.Millisecond, patience,
		true, func(context.Context) (bool, error) {
			return strings.Contains(m.log(id), line), nil
		})
	if err != nil {
		m.t.Fatalf("timed out waiting until the container logs %q:\n%s", line, m.log(id))
	}
}

func TestVolumesAppearWhereTheManifestSays(t *testing.T) {
	volume := t.TempDir()
	if err := os.WriteFile(filepath.Join(volume, "greeting"), []byte("hello\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(volume, 0o755); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(volume, "greeting")
	for name, limit := range levels {
		if !limit.Mounts {
			continue
		}
		t.Run(name, func(t *testing.T) {
			m := newMachine(t, limit)
			mounts := func(c *runtimeapi.ContainerConfig) {
				c.Mounts = []*runtimeapi.Mount{
					{HostPath: volume, ContainerPath: "/muster-test/deep/volume", Readonly: true},
					{HostPath: volume, ContainerPath: "/muster-test/again"},
					{HostPath: file, ContainerPath: "/dev/muster-test-log"},
					{HostPath: volume, ContainerPath: "/etc/muster-test"},
					{HostPath: file, ContainerPath: "/etc/hosts"},
				}
			}
			id := m.start(`cat /muster-test/deep/volume/greeting /muster-test/again/greeting /dev/muster-test-log /etc/muster-test/greeting /etc/hosts
				ls /dev/null /etc/passwd /proc/self/exe
				touch /muster-test/deep/volume/x || echo read-only
				hostname; head -1 /etc/resolv.conf`, mounts)
			status := m.awaitEnd(id)
			log := m.log(id)
			if status.GetExitCode() != 0 || strings.Count(log, "hello") != 5 || !strings.Contains(log, "stdout F read-only") ||
				!strings.Contains(log, "stdout F pod-host") || !strings.Contains(log, "stdout F nameserver 10.1.2.3") {
				t.Errorf("ended with %d:\n%s", status.GetExitCode(), log)
			}
			for _, path := range []string{"/muster-test", "/dev/muster-test-log", "/etc/muster-test"} {
				if _, err := os.Lstat(path); !os.IsNotExist(err) {
					t.Errorf("%s was created on the machine: %v", path, err)
				}
			}
		})
	}
}

func TestMountsInsideMountsFindTheirPlace(t *testing.T) {
	for name, limit := range levels {
		if !limit.Mounts {
			continue
		}
		t.Run(name, func(t *testing.T) {
			m := newMachine(t, limit)
			readOnly, writable, inner := t.TempDir(), t.TempDir(), t.TempDir()
			for _, file := range []string{filepath.Join(readOnly, "kept"), filepath.Join(writable, "kept"),
				filepath.Join(inner, "deep")} {
				if err := os.WriteFile(file, nil, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			id := m.start(`cd /muster-test && ls ro ro/inner rw rw/inner && touch rw/new`, func(c *runtimeapi.ContainerConfig) {
				c.Mounts = []*runtimeapi.Mount{
					// The order is not one in which they can be mounted.
					{HostPath: inner, ContainerPath: "/muster-test/ro/inner"},
					{HostPath: inner, ContainerPath: "/muster-test/rw/inner"},
					{HostPath: writable, ContainerPath: "/muster-test/rw"},
					{HostPath: readOnly, ContainerPath: "/muster-test/ro", Readonly: true},
				}
			})
			if status := m.awaitEnd(id); status.GetExitCode() != 0 || strings.Count(m.log(id), "F deep\n") != 2 ||
				strings.Count(m.log(id), "F kept\n") != 2 {
				t.Errorf("ended with %d:\n%s", status.GetExitCode(), m.log(id))
			}
			if _, err := os.Stat(filepath.Join(writable, "new")); err != nil {
				t.Errorf("the file that the container wrote is not in the volume: %v", err)
			}
			if _, err := os.Stat(filepath.Join(readOnly, "inner")); !os.IsNotExist(err) {
				t.Errorf("a read-only volume has a new entry: %v", err)
			}
		})
	}
}

func TestCommandsRunInsideAContainer(t *testing.T) {
	onEveryMachine(t, func(t *testing.T, m *machine) {
		id := m.start("echo ready; exec sleep 1000", func(c *runtimeapi.ContainerConfig) {
			c.Envs = []*runtimeapi.KeyValue{{Key: "GREETING", Value: []byte("hello")}}
		})
		out, errs, err := m.ExecSync(t.Context(), id, []string{"sh", "-c", "echo $GREETING; echo oops >&2"}, 0)
		if err != nil || string(out) != "hello\n" || string(errs) != "oops\n" {
			t.Errorf("exec = %q, %q, %v", out, errs, err)
		}
		_, _, err = m.ExecSync(t.Context(), id, []string{"sh", "-c", "exit 7"}, 0)
		var exit utilexec.CodeExitError
		if !errors.As(err, &exit) || exit.Code != 7 {
			t.Errorf("exec of exit 7: got error %v, want code 7", err)
		}
		if _, _, err = m.ExecSync(t.Context(), id, []string{"sleep", "1000"}, 50*time.Millisecond); err == nil {
			t.Error("a command longer than its timeout returned no error")
		}
	})
}

func TestProcessLeftBehindEndsWithItsContainer(t *testing.T) {
	onEveryMachine(t, func(t *testing.T, m *machine) {
		id := m.start(`setsid sleep 4242 & exit 0`)
		if code := m.awaitEnd(id).GetExitCode(); code != 0 { // awaitEnd waits for its output too, which the sleep keeps open
			t.Errorf("ended with %d, want 0", code)
		}
	})
}

func TestContainersOfAnEarlierRunAreKnown(t *testing.T) {
	m := newMachine(t, Isolation{})
	done, running := m.start("exit 5"), m.start("exec sleep 1000")
	m.awaitEnd(done)
	later, err := New(m.options)
	if err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]int32{done: 5, running: 137} {
		response, err := later.ContainerStatus(t.Context(), id, false)
		if err != nil {
			t.Fatal(err)
		}
		if got := response.GetStatus(); got.GetState() != runtimeapi.ContainerState_CONTAINER_EXITED ||
			got.GetExitCode() != want {
			t.Errorf("after a restart the container is %v with %d, want exited with %d", got.GetState(), got.GetExitCode(), want)
		}
	}
}

func BenchmarkFourContainersStart(b *testing.B) {
	for name, limit := range levels {
		b.Run(name, func(b *testing.B) {
			m := newMachine(b, limit)
			for b.Loop() {
				for range 4 {
					m.start("exit 0")
				}
			}
		})
	}
}
