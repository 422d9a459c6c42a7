package rendezvous

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	fakeclients "k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/musterhq/muster/internal/certificate"
	"github.com/musterhq/muster/internal/rendezvous/round"
)

// These tests run the real agent binary against the server, over TLS.

var agentBinary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "muster-agent-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "muster-agent")
	build := exec.Command("go", "build", "-ldflags", "-s -w", "-o", path, "github.com/musterhq/muster/cmd/muster-agent")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("building the agent: %w: %s", err, out)
	}
	return path, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if path, err := agentBinary(); err == nil {
		os.RemoveAll(filepath.Dir(path))
	}
	os.Exit(code)
}

// testTimeout bounds every wait; it suffices on a busy machine.
const testTimeout = 3 * time.Minute

// operator is a server that tests can stop and start.
type operator struct {
	t         *testing.T
	address   string
	authority *certificate.Authority
	sizes     string
	timeouts  round.Timeouts
	pods      map[string]*corev1.Pod
	registry  *registry
	deposed   atomic.Bool   // another operator may lead
	hold      time.Duration // 0 for protocol.Hold
	stop      func()
}

func newOperator(t *testing.T, sizes string) *operator {
	return newOperatorOf(t, sizes, clock.RealClock{})
}

// newOperatorOf uses the clock to renew certificates.
func newOperatorOf(t *testing.T, sizes string, clock clock.WithTicker) *operator {
	authority, err := certificate.OpenAuthority(t.Context(), fakeclients.NewClientset().CoreV1().Secrets("muster-system"),
		certificateUse, clock, logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	o := &operator{
		t: t, address: "127.0.0.1:0", authority: authority, sizes: sizes,
		timeouts: round.Timeouts{Gather: 2 * time.Second, Presence: time.Minute}, pods: map[string]*corev1.Pod{},
	}
	o.start()
	t.Cleanup(func() { o.stop() })
	return o
}

func (o *operator) start() {
	o.t.Helper()
	listener, err := net.Listen("tcp", o.address)
	if err != nil {
		o.t.Fatal(err)
	}
	o.address = listener.Addr().String()
	o.registry = newRegistry(fake.NewClientBuilder().Build())
	o.registry.timeouts = o.timeouts
	for _, pod := range o.pods {
		o.registry.updatePod(pod, false)
	}
	server := &server{authority: o.authority, registry: o.registry, leads: func() bool { return !o.deposed.Load() },
		log: logr.Discard(), hold: o.hold, identify: func(_ context.Context, token string) (caller, error) {
			name, ok := strings.CutPrefix(token, "token-of-")
			if !ok {
				return caller{}, errUnknown
			}
			return caller{Namespace: "ns", Name: name, UID: "uid-" + name}, nil
		}}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan struct{})
	go func() { defer close(served); _ = server.serve(ctx, listener) }()
	o.stop = func() { cancel(); <-served }
}

// pod creates a pod of the job.
func (o *operator) pod(index int) string {
	name := fmt.Sprintf("job-worker-%d", index)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: name, UID: types.UID("uid-" + name),
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "breezeml.ai/v1", Kind: "TrainingJob", Name: "job", UID: "job",
			Controller: new(true)}},
		Labels: map[string]string{"muster.dev/rendezvous": "job"},
		Annotations: map[string]string{"muster.dev/rendezvous-size": o.sizes,
			"muster.dev/rendezvous-index": fmt.Sprint(index)},
	}}
	o.pods[name] = pod
	o.registry.updatePod(pod, false)
	return name
}

// deletePod marks the pod as being deleted.
func (o *operator) deletePod(index int) {
	pod := o.pods[fmt.Sprintf("job-worker-%d", index)].DeepCopy()
	delete(o.pods, pod.Name)
	now := metav1.Now()
	pod.DeletionTimestamp = &now
	o.registry.updatePod(pod, false)
}

// agent is a muster-agent process.
type agent struct {
	t     *testing.T
	name  string
	cmd   *exec.Cmd
	lines chan string
	seen  []string
	ended chan struct{}
}

// run runs a shell script under an agent.
func (o *operator) run(index int, script string, variables ...string) *agent {
	o.t.Helper()
	path, err := agentBinary()
	if err != nil {
		o.t.Fatal(err)
	}
	return o.runBy(path, index, script, variables...)
}

func (o *operator) runBy(path string, index int, script string, variables ...string) *agent {
	o.t.Helper()
	return o.agent(path, []string{"run", "--", "bash", "-c", script}, index, variables)
}

// sidecar runs an agent without a command.
func (o *operator) sidecar(index int, variables ...string) *agent {
	o.t.Helper()
	path, err := agentBinary()
	if err != nil {
		o.t.Fatal(err)
	}
	return o.agent(path, []string{"sidecar"}, index, variables)
}

func (o *operator) agent(path string, arguments []string, index int, variables []string) *agent {
	o.t.Helper()
	name := o.pod(index)
	token := filepath.Join(o.t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("token-of-"+name+"\n"), 0o600); err != nil {
		o.t.Fatal(err)
	}
	a := &agent{t: o.t, name: name, lines: make(chan string, 1000), ended: make(chan struct{})}
	a.cmd = exec.Command(path, arguments...)
	a.cmd.Env = append(os.Environ(), "MUSTER_RENDEZVOUS="+o.address, "MUSTER_RENDEZVOUS_CA="+o.authority.Trusted(),
		"MUSTER_RENDEZVOUS_TOKEN="+token, "MUSTER_POD_IP=127.0.0.1", "LATTICE_RDZV_ID=job")
	a.cmd.Env = append(a.cmd.Env, variables...)
	a.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	read, write, err := os.Pipe()
	if err != nil {
		o.t.Fatal(err)
	}
	a.cmd.Stdout, a.cmd.Stderr = write, write
	if err := a.cmd.Start(); err != nil {
		o.t.Fatal(err)
	}
	write.Close()
	go func() {
		scanner := bufio.NewScanner(read)
		for scanner.Scan() {
			a.lines <- scanner.Text()
		}
		close(a.lines)
	}()
	go func() { defer close(a.ended); _ = a.cmd.Wait() }()
	o.t.Cleanup(func() {
		_ = a.cmd.Process.Kill()
		<-a.ended
		if o.t.Failed() {
			o.t.Logf("output of %s: %s", name, strings.Join(a.seen, "\n  "))
		}
	})
	return a
}

// awaitOutput waits for an output line that contains the text, and returns it.
func (a *agent) awaitOutput(text string) string {
	a.t.Helper()
	timer := time.NewTimer(testTimeout)
	defer timer.Stop()
	for {
		select {
		case line, open := <-a.lines:
			if !open {
				a.t.Fatalf("%s ended without the output %q", a.name, text)
			}
			a.seen = append(a.seen, line)
			if strings.Contains(line, text) {
				return line
			}
		case <-timer.C:
			a.t.Fatalf("timed out waiting until %s prints %q", a.name, text)
		}
	}
}

// awaitExit waits until the agent exits with the code.
func (a *agent) awaitExit(code int) {
	a.t.Helper()
	select {
	case <-a.ended:
	case <-time.After(testTimeout):
		a.t.Fatalf("timed out waiting until %s exits", a.name)
	}
	if got := a.cmd.ProcessState.ExitCode(); got != code {
		a.t.Errorf("%s exited with %v, want code %d", a.name, a.cmd.ProcessState, code)
	}
}

func (a *agent) signal(s syscall.Signal) {
	a.t.Helper()
	if err := a.cmd.Process.Signal(s); err != nil {
		a.t.Fatal(err)
	}
}

// wantNoOutput checks that no output so far contains the text.
func (a *agent) wantNoOutput(text string) {
	a.t.Helper()
	for {
		select {
		case line, open := <-a.lines:
			if !open {
				return
			}
			a.seen = append(a.seen, line)
			if strings.Contains(line, text) {
				a.t.Fatalf("%s printed %q, want no such output", a.name, line)
			}
		default:
			return
		}
	}
}

// works prints its rank and then waits for SIGTERM, on which it prints "saved". A shell handles a signal only after its
// foreground child has ended, unless it is in wait.
const works = `trap 'echo saved; exit 0' TERM; echo "part $RANK of $WORLD_SIZE at $MASTER_ADDR:$MASTER_PORT"; sleep 1000 & wait $!`
