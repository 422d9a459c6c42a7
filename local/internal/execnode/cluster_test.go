package execnode

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/musterhq/muster/local/internal/controlplane"
	"github.com/musterhq/muster/local/internal/execnode/process"
)

// patience bounds waits that take well under a second on an idle machine.
const patience = 3 * time.Minute

// plane is the control plane that the tests of this package share, since a process can run only one.
var plane struct {
	sync.Once
	*controlplane.ControlPlane
	dir string
	err error
}

func TestMain(m *testing.M) {
	for variable, play := range map[string]func(string) error{roleVariable: playRole, nodeVariable: holdNode} {
		part := os.Getenv(variable)
		if part == "" {
			continue
		}
		if err := play(part); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	code := m.Run()
	if plane.ControlPlane != nil {
		plane.Stop()
	}
	os.RemoveAll(plane.dir)
	os.Exit(code)
}

func startPlane() {
	if plane.dir, plane.err = os.MkdirTemp("", "execnode-"); plane.err != nil {
		return
	}
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		plane.err = err
		return
	}
	config := controlplane.Config{Listener: listener, Step: func(string, ...any) {},
		EtcdDir: filepath.Join(plane.dir, "etcd"), PKIDir: filepath.Join(plane.dir, "pki"),
		LogsDir: filepath.Join(plane.dir, "logs")}
	for _, dir := range []string{config.EtcdDir, config.PKIDir, config.LogsDir} {
		if plane.err = os.MkdirAll(dir, 0o700); plane.err != nil {
			return
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	defer cancel()
	if plane.ControlPlane, plane.err = controlplane.Start(ctx, config); plane.err == nil {
		plane.err = plane.RunControllers(ctx)
	}
}

// bench is a node with a namespace whose pods run on it.
type bench struct {
	*testing.T
	node      *Node
	config    Config
	client    kubernetes.Interface
	namespace string
	lines     *[]string // lines logged by the node at its start
}

// kinds of nodes on which the tests run.
var (
	asRoot   = func(*Config) {}
	rootless = func(c *Config) { c.limit, c.hostNetwork = &process.Unprivileged, true }
	plain    = func(c *Config) { c.limit, c.hostNetwork = &process.Isolation{}, true }
)

var benches struct {
	sync.Mutex
	count int
}

func newBench(t *testing.T, kind func(*Config)) *bench {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a control plane")
	}
	plane.Do(startPlane)
	if plane.err != nil {
		t.Fatal(plane.err)
	}
	benches.Lock()
	benches.count++
	name := fmt.Sprintf("node-%d", benches.count)
	benches.Unlock()
	certificate, clients, err := plane.KubeletServing()
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{T: t, namespace: "on-" + name, lines: &[]string{}}
	b.config = Config{
		RestConfig: plane.Admin(), Name: name, Dir: filepath.Join(plane.dir, name), ServingCert: certificate,
		ClientCAs:     clients,
		ClusterDomain: plane.ClusterDomain(), Logf: func(format string, args ...any) {
			*b.lines = append(*b.lines, fmt.Sprintf(format, args...))
		},
	}
	kind(&b.config)
	config := plane.Admin()
	config.QPS = -1
	if b.client, err = kubernetes.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	b.start()
	t.Cleanup(func() { b.node.Stop() })
	if kindIsRoot(b.config) && b.node.network == nil {
		t.Skipf("this machine does not allow networks: %v", *b.lines)
	}
	_, err = b.client.CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: b.namespace}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	// A controller creates the default service account, without which no pod is admitted.
	b.await("the service account of the namespace", func(ctx context.Context) (bool, error) {
		_, err := b.client.CoreV1().ServiceAccounts(b.namespace).Get(ctx, "default", metav1.GetOptions{})
		return err == nil, ignoreNotFound(err)
	})
	return b
}

func kindIsRoot(c Config) bool { return c.limit == nil && !c.hostNetwork }

func (b *bench) start() {
	b.Helper()
	node, err := Start(context.WithoutCancel(b.Context()), b.config)
	if err != nil {
		b.Fatal(err)
	}
	b.node = node
}

func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// await polls the API server for a condition.
func (b *bench) await(what string, done func(context.Context) (bool, error)) {
	b.Helper()
	if err := wait.PollUntilContextTimeout(b.Context(), 10*time.Millisecond, patience, true, done); err != nil {
		b.Fatalf("timed out waiting for %s: %v", what, err)
	}
}

// pod starts a pod whose container runs a shell script.
func (b *bench) pod(name, script string, change ...func(*corev1.Pod)) *corev1.Pod {
	b.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: b.namespace, Labels: map[string]string{"app": "test"}},
		Spec: corev1.PodSpec{
			NodeSelector:  map[string]string{corev1.LabelHostname: b.config.Name},
			RestartPolicy: corev1.RestartPolicyNever, TerminationGracePeriodSeconds: ptr.To[int64](2),
			Containers: []corev1.Container{{Name: "main", Image: "none", Command: []string{"sh", "-c", script}}},
		},
	}
	for _, f := range change {
		f(pod)
	}
	pod, err := b.client.CoreV1().Pods(b.namespace).Create(b.Context(), pod, metav1.CreateOptions{})
	if err != nil {
		b.Fatal(err)
	}
	return pod
}

// awaitPod waits until a pod fulfills a condition, and prints its state if it never does.
func (b *bench) awaitPod(name, what string, is func(*corev1.Pod) bool) *corev1.Pod {
	b.Helper()
	var pod *corev1.Pod
	err := wait.PollUntilContextTimeout(b.Context(), 10*time.Millisecond, patience,
		true, func(ctx context.Context) (bool, error) {
			var err error
			pod, err = b.client.CoreV1().Pods(b.namespace).Get(ctx, name, metav1.GetOptions{})
			return err == nil && is(pod), err
		})
	if err != nil {
		b.Fatalf("timed out waiting for pod %s to be %s: %v\n%+v\n%s", name, what, err, pod.Status, b.events(name))
	}
	return pod
}

func phaseIs(phase corev1.PodPhase) func(*corev1.Pod) bool {
	return func(pod *corev1.Pod) bool { return pod.Status.Phase == phase }
}

func (b *bench) awaitSuccess(name string) *corev1.Pod {
	b.Helper()
	return b.awaitEnd(name, corev1.PodSucceeded)
}

// awaitEnd waits for the end of a pod, which must be in the phase.
func (b *bench) awaitEnd(name string, phase corev1.PodPhase) *corev1.Pod {
	b.Helper()
	pod := b.awaitPod(name, "ended", func(pod *corev1.Pod) bool {
		return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
	})
	if pod.Status.Phase != phase {
		b.Fatalf("pod %s ended in phase %s: %+v\nlog: %s\n%s", name, pod.Status.Phase, pod.Status,
			b.log(name), b.events(name))
	}
	return pod
}

// log returns a container's log through the API server, as kubectl logs does.
func (b *bench) log(pod string, change ...func(*corev1.PodLogOptions)) string {
	b.Helper()
	options := &corev1.PodLogOptions{}
	for _, f := range change {
		f(options)
	}
	text, err := b.client.CoreV1().Pods(b.namespace).GetLogs(pod, options).DoRaw(b.Context())
	if err != nil {
		return "no log: " + err.Error()
	}
	return string(text)
}

// awaitLogLine waits until a container has logged a line.
func (b *bench) awaitLogLine(pod, line string) {
	b.Helper()
	var text string
	err := wait.PollUntilContextTimeout(b.Context(), 20*time.Millisecond, patience,
		true, func(context.Context) (bool, error) {
			text = b.log(pod)
			return strings.Contains(text, line), nil
		})
	if err != nil {
		b.Fatalf("timed out waiting until pod %s logs %q:\n%s\n%s", pod, line, text, b.events(pod))
	}
}

// events returns the reasons and messages of a pod's events.
func (b *bench) events(pod string) string {
	list, err := b.client.CoreV1().Events(b.namespace).List(context.WithoutCancel(b.Context()),
		metav1.ListOptions{FieldSelector: "involvedObject.name=" + pod})
	if err != nil {
		return err.Error()
	}
	var text strings.Builder
	for _, event := range list.Items {
		fmt.Fprintf(&text, "%s: %s\n", event.Reason, event.Message)
	}
	return text.String()
}

// awaitEvent waits for an event of a pod.
func (b *bench) awaitEvent(pod, reason, text string) {
	b.Helper()
	var all string
	err := wait.PollUntilContextTimeout(b.Context(), 20*time.Millisecond, patience,
		true, func(context.Context) (bool, error) {
			all = b.events(pod)
			for line := range strings.Lines(all) {
				if strings.HasPrefix(line, reason+": ") && strings.Contains(line, text) {
					return true, nil
				}
			}
			return false, nil
		})
	if err != nil {
		b.Fatalf("timed out waiting for an event %s with %q of pod %s:\n%s", reason, text, pod, all)
	}
}

func (b *bench) delete(pod string, graceSeconds *int64) {
	b.Helper()
	if err := b.client.CoreV1().Pods(b.namespace).Delete(b.Context(), pod,
		metav1.DeleteOptions{GracePeriodSeconds: graceSeconds}); err != nil {
		b.Fatal(err)
	}
}

func (b *bench) awaitGone(pod string) {
	b.Helper()
	b.await("pod "+pod+" to be gone", func(ctx context.Context) (bool, error) {
		_, err := b.client.CoreV1().Pods(b.namespace).Get(ctx, pod, metav1.GetOptions{})
		return apierrors.IsNotFound(err), ignoreNotFound(err)
	})
}

// onEachKind runs a test on a node with the rights of root, and on one with those of an ordinary user.
func onEachKind(t *testing.T, test func(*testing.T, *bench)) {
	t.Run("as root", func(t *testing.T) {
		if os.Geteuid() != 0 {
			t.Skip("needs root")
		}
		test(t, newBench(t, asRoot))
	})
	t.Run("without root", func(t *testing.T) {
		b := newBench(t, rootless)
		if !b.node.isolation.Mounts {
			t.Skipf("this machine does not allow user namespaces: %v", *b.lines)
		}
		test(t, b)
	})
}
