package testcluster_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/testcluster"
)

func TestMain(m *testing.M) { testcluster.Main(m, testcluster.Options{}) }

func TestAllTestsShareOneClusterThatServesMustersAPIs(t *testing.T) {
	cluster := testcluster.Get(t)
	if again := testcluster.Get(t); again != cluster {
		t.Error("a second Get returned another cluster")
	}
	var namespace corev1.Namespace
	namespace.Name = cluster.Namespace(t)
	var workloads kueue.WorkloadList
	if err := cluster.Client.List(t.Context(), &workloads); err != nil {
		t.Errorf("listing workloads: %v", err)
	}
	if _, err := os.Stat(cluster.Kubeconfig); err != nil {
		t.Errorf("reading the kubeconfig: %v", err)
	}
}

// childEnv makes a copy of this test binary start a cluster, report its addresses, and wait to be killed.
const childEnv = "MUSTER_TESTCLUSTER_CHILD"

func TestClusterDiesWithAKilledTestProcess(t *testing.T) {
	if os.Getenv(childEnv) != "" {
		cluster := testcluster.Get(t)
		if err := os.WriteFile(os.Getenv(childEnv), []byte(cluster.Dir), 0o600); err != nil {
			t.Fatal(err)
		}
		select {}
	}
	dirFile := filepath.Join(t.TempDir(), "dir")
	child := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	child.Env = append(os.Environ(), childEnv+"="+dirFile)
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = child.Process.Kill() })
	dir := string(await(t, "the child's cluster", func() ([]byte, bool) {
		content, err := os.ReadFile(dirFile)
		return content, err == nil && len(content) > 0
	}))
	pid, err := os.ReadFile(filepath.Join(dir, "pid"))
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait()
	number, err := strconv.Atoi(strings.TrimSpace(string(pid)))
	if err != nil {
		t.Fatal(err)
	}
	await(t, "the end of the cluster's process", func() ([]byte, bool) {
		return nil, syscall.Kill(number, 0) == syscall.ESRCH
	})
	await(t, "the end of the cluster's state", func() ([]byte, bool) {
		_, err := os.Stat(dir)
		return nil, os.IsNotExist(err)
	})
}

// await polls until so returns true, as another process acts on files and processes.
func await(t *testing.T, what string, so func() ([]byte, bool)) []byte {
	t.Helper()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	const patience = 4 * time.Minute // on a machine that is busy with other tests
	deadline := time.After(patience)
	for {
		if value, ok := so(); ok {
			return value
		}
		select {
		case <-ticker.C:
		case <-deadline:
			t.Fatalf("timed out after %s waiting for %s", patience, what)
		}
	}
}
