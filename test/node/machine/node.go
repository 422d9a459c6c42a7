package machine

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/musterhq/muster/internal/testcluster"
	"github.com/musterhq/muster/test/node/registry"
)

// Name is the name of the node.
const Name = "real-0"

// startTimeout bounds the start of all parts of the node, on a machine that is busy with other tests.
const startTimeout = 3 * time.Minute

var shared struct {
	sync.Once
	err error
}

// Node returns the cluster of this test process, and starts it with its node at the first call, with that caller's
// images. It skips the test on a machine that cannot run a node; if the start fails, the calling test and all later
// callers fail.
func Node(t testing.TB, images func() (map[string]*registry.Image, error)) *testcluster.Cluster {
	t.Helper()
	if unable != "" {
		t.Skip("this machine cannot run containers: " + unable)
	}
	cluster := testcluster.Get(t)
	shared.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
		defer cancel()
		n := &node{dir: os.Getenv(dirVariable), cluster: cluster}
		if shared.err = n.start(ctx, images); shared.err != nil {
			shared.err = fmt.Errorf("%w\n%s", shared.err, Logs())
		}
	})
	if shared.err != nil {
		t.Fatalf("the node did not start: %v", shared.err)
	}
	return cluster
}

// node collects what a starting node needs.
type node struct {
	dir      string
	cluster  *testcluster.Cluster
	clients  kubernetes.Interface
	registry string
}

func (n *node) start(ctx context.Context, images func() (map[string]*registry.Image, error)) (err error) {
	if n.clients, err = kubernetes.NewForConfig(n.cluster.Config); err != nil {
		return fmt.Errorf("creating a client: %w", err)
	}
	built, err := images()
	if err != nil {
		return err
	}
	if n.registry, err = registry.Serve(built); err != nil {
		return err
	}
	steps := []func(context.Context) error{n.startContainerd, n.startKubelet, n.startDNS, n.awaitReady, n.startOperator}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// run starts a program that logs to a file of its name and ends with the namespaces.
func (n *node) run(name, program string, arguments ...string) error {
	log, err := os.Create(n.logFile(name))
	if err != nil {
		return err
	}
	defer log.Close()
	command := exec.Command(program, arguments...)
	command.Stdout, command.Stderr = log, log
	command.Env = append(os.Environ(), "KUBECONFIG="+n.cluster.Kubeconfig)
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := command.Start(); err != nil {
		return fmt.Errorf("starting %s: %w", name, err)
	}
	go command.Wait() // if the program dies, the callers' waits fail
	return nil
}

func (n *node) logFile(name string) string { return filepath.Join(n.dir, name+".log") }

// write writes a configuration file of the node and returns its path.
func (n *node) write(name, content string) (path string, err error) {
	path = filepath.Join(n.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return "", err
	}
	return path, os.WriteFile(path, []byte(content), 0o600)
}

// awaitReady waits until the node is Ready.
func (n *node) awaitReady(ctx context.Context) error {
	watching, err := client.NewWithWatch(n.cluster.Config, client.Options{Scheme: testcluster.Scheme()})
	if err != nil {
		return fmt.Errorf("creating a client: %w", err)
	}
	events, err := watching.Watch(ctx, &corev1.NodeList{})
	if err != nil {
		return fmt.Errorf("watching the node: %w", err)
	}
	defer events.Stop()
	for {
		select {
		case event, open := <-events.ResultChan():
			if !open {
				return fmt.Errorf("the watch of the node ended before it was ready")
			}
			if seen, ok := event.Object.(*corev1.Node); ok && isReady(seen) {
				return nil
			}
		case <-ctx.Done():
			return fmt.Errorf("waiting for the kubelet's node to be ready: %w", ctx.Err())
		}
	}
}

func isReady(node *corev1.Node) bool {
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue {
			return true
		}
	}
	return false
}

// binary returns the path of a program that make builds. The working directory is that of a test package two levels
// below the root.
func binary(name string) (string, error) {
	path, err := filepath.Abs(filepath.Join("..", "..", "bin", name))
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("bin/%s is not built: run make test-node", name)
	}
	return path, nil
}

// Logs returns the last lines of the logs of the node's programs.
func Logs() string {
	const lines = 25
	var out strings.Builder
	files, _ := filepath.Glob(filepath.Join(os.Getenv(dirVariable), "*.log"))
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		all := strings.SplitAfter(string(content), "\n")
		fmt.Fprintf(&out, "== %s\n%s", filepath.Base(file), strings.Join(all[max(0, len(all)-lines):], ""))
	}
	return out.String()
}
