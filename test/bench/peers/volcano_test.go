//go:build peers

package peers

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"

	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	scheduling "github.com/musterhq/muster/api/volcano/scheduling/v1beta1"
	"github.com/musterhq/muster/test/bench/figure"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// newVolcano starts a cluster with Volcano's scheduler and controllers, without its webhooks. Its controllers are not
// limited to the 50 requests a second that are their default.
func newVolcano(t *testing.T) *contender {
	t.Helper()
	if *source == "" {
		t.Fatal("there is no folder with Volcano's source: see make test-peers")
	}
	c := start(t, "Volcano", "--no-operator")
	c.define(t, filepath.Join(*source, "config/crd/volcano/bases/*.yaml"))
	c.define(t, filepath.Join(*source, "config/crd/jobflow/bases/*.yaml"))
	if err := c.client.Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "volcano-system"}}); err != nil {
		t.Fatal(err)
	}
	shared := []string{"--kubeconfig", c.cluster.Kubeconfig, "--leader-elect=false", "--kube-api-qps=2000",
		"--kube-api-burst=2000"}
	c.run(t, "scheduler", append(shared, "--scheduler-conf",
		filepath.Join(*source, "installer/helm/chart/volcano/config/volcano-scheduler.conf"), "--cache-dumper=false")...)
	c.run(t, "controller-manager", shared...)
	c.adapt = func(job *volcano.Job) {
		job.Spec.SchedulerName, job.Spec.Queue, job.Spec.MaxRetry = "volcano", "default", 3
	}
	c.awaitQueue(t)
	return c
}

// define creates the definitions in the files that the pattern names, and waits until they are served.
func (c *contender) define(t *testing.T, pattern string) {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("no definitions in %s: %v", pattern, err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096)
		for {
			object := &unstructured.Unstructured{}
			if err := decoder.Decode(object); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("reading %s: %v", file, err)
			}
			if object.GetKind() == "CustomResourceDefinition" {
				c.serve(t, object)
			}
		}
	}
}

// serve creates a definition and waits until it is served.
func (c *contender) serve(t *testing.T, definition *unstructured.Unstructured) {
	t.Helper()
	if err := c.client.Create(t.Context(), definition); client.IgnoreAlreadyExists(err) != nil {
		t.Fatal(err)
	}
	c.await(t, "the definition "+definition.GetName(), func(ctx context.Context) (bool, error) {
		if err := c.client.Get(ctx, client.ObjectKeyFromObject(definition), definition); err != nil {
			return false, err
		}
		var read apiextensionsv1.CustomResourceDefinition // its conditions are null at first
		if err := k8sruntime.DefaultUnstructuredConverter.FromUnstructured(definition.Object, &read); err != nil {
			return false, err
		}
		return apihelpers.IsCRDConditionTrue(&read, apiextensionsv1.Established), nil
	})
}

// awaitQueue waits until Volcano has made its queue and has opened it.
func (c *contender) awaitQueue(t *testing.T) {
	t.Helper()
	c.await(t, "Volcano's queue", func(ctx context.Context) (bool, error) {
		var q scheduling.Queue
		err := c.client.Get(ctx, client.ObjectKey{Name: "default"}, &q)
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return err == nil && q.Status.State == "Open", err
	})
}

// await polls: there is one object, and nothing is timed here.
func (c *contender) await(t *testing.T, what string, is func(context.Context) (bool, error)) {
	t.Helper()
	if err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, time.Minute, true, is); err != nil {
		t.Fatalf("waiting for %s: %v", what, err)
	}
}

// run runs one of Volcano's programs until the end of the test.
func (c *contender) run(t *testing.T, program string, arguments ...string) {
	t.Helper()
	var said strings.Builder
	command := exec.Command(filepath.Join(*built, program), arguments...)
	command.Stdout, command.Stderr = &said, &said
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // it must not outlive the test
	started, ended := make(chan error), make(chan struct{})
	go func() {
		runtime.LockOSThread() // the signal is sent when the thread that started the program ends
		defer runtime.UnlockOSThread()
		err := command.Start()
		started <- err
		if err == nil {
			_ = command.Wait()
		}
		close(ended)
	}()
	if err := <-started; err != nil {
		t.Fatalf("starting Volcano's %s: %v", program, err)
	}
	c.processes = append(c.processes, figure.Process(command.Process.Pid))
	t.Cleanup(func() {
		_ = command.Process.Signal(syscall.SIGTERM) // fails if the program has ended
		<-ended
		if t.Failed() {
			t.Logf("the end of what Volcano's %s said:\n%s", program, said.String()[max(0, said.Len()-4000):])
		}
	})
}
