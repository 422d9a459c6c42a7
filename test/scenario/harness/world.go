// Package harness is what the scenarios share: a namespace on the embedded control plane of their test process, waiting by
// watching, and what a person would look at after a failure. It knows no scenario; what only one package of scenarios
// needs stands there.
package harness

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	registration "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/testcluster"
)

// World is a namespace of the shared cluster, with what its test makes in it. It goes with the test.
type World struct {
	*testing.T
	Client    client.WithWatch
	Cluster   *testcluster.Cluster
	Namespace string
}

// New gives a namespace of its own to a test. The package's TestMain says what cluster it is on (testcluster.Main).
func New(t *testing.T) *World {
	t.Helper()
	cluster := testcluster.Get(t)
	c, err := client.NewWithWatch(cluster.Config, client.Options{Scheme: testcluster.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	return &World{T: t, Client: c, Cluster: cluster, Namespace: cluster.Namespace(t)}
}

// Everywhere is the world seen over all namespaces.
func (w *World) Everywhere() *World {
	all := *w
	all.Namespace = metav1.NamespaceAll
	return &all
}

// In is the same namespace for a test beside others of it.
func (w *World) In(t *testing.T) *World {
	same := *w
	same.T = t
	return &same
}

// Create creates the objects, in this order. When it returns the API server goes by them (see testcluster.Cluster.UntilHeard), and
// queues are known to the operator, where the cluster has one: else who is created next might be told first that his priority class or
// his queue does not exist. What else the API server has to hear of is for Enforce.
func (w *World) Create(objects ...client.Object) {
	w.Helper()
	for _, o := range objects {
		if isRule(o) {
			w.Fatalf("creating %T %s: only Enforce waits until the API server goes by it", o, o.GetName())
		}
	}
	w.create(objects...)
	w.Cluster.UntilHeard(w.T, objects...)
	for _, o := range objects {
		if isQueue(o) && w.OperatorPID() != 0 {
			w.untilHeard(o)
		}
	}
}

// Shared creates objects of the whole cluster, which are deleted when the test is done.
func (w *World) Shared(objects ...client.Object) {
	w.Helper()
	w.Create(objects...)
	w.deleteAtTheEnd(objects...)
}

// Enforce creates policies, bindings of these, and webhooks, which are deleted when the test is done. It returns when heard does, which
// waits for something by which one sees that the API server goes by them.
func (w *World) Enforce(heard func(), objects ...client.Object) {
	w.Helper()
	w.create(objects...)
	w.deleteAtTheEnd(objects...)
	heard()
}

func (w *World) create(objects ...client.Object) {
	w.Helper()
	for _, o := range objects {
		if err := w.Client.Create(w.Context(), o); err != nil {
			w.Fatalf("creating %T %s: %v", o, o.GetName(), err)
		}
	}
}

func (w *World) deleteAtTheEnd(objects ...client.Object) {
	w.Cleanup(func() {
		for _, o := range objects {
			if err := client.IgnoreNotFound(w.Client.Delete(context.Background(), o)); err != nil {
				w.Errorf("deleting %T %s: %v", o, o.GetName(), err)
			}
		}
	})
}

// isRule reports whether the API server asks the object, or what it stands for, about others, and nothing in it shows when it does.
func isRule(o client.Object) bool {
	switch o.(type) {
	case *registration.ValidatingAdmissionPolicy, *registration.ValidatingAdmissionPolicyBinding, *registration.ValidatingWebhookConfiguration,
		*registration.MutatingAdmissionPolicy, *registration.MutatingAdmissionPolicyBinding, *registration.MutatingWebhookConfiguration:
		return true
	}
	return false
}

// Get reads the object of this name as it is now.
func (w *World) Get(o client.Object) {
	w.Helper()
	if err := w.Client.Get(w.Context(), client.ObjectKeyFromObject(o), o); err != nil {
		w.Fatalf("reading %T %s: %v", o, o.GetName(), err)
	}
}

// Delete deletes the object; what it owns follows.
func (w *World) Delete(o client.Object) {
	w.Helper()
	if err := w.Client.Delete(w.Context(), o, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
		w.Fatalf("deleting %T %s: %v", o, o.GetName(), err)
	}
}

// Patch changes an object, and PatchStatus its status, by the text of a JSON merge patch. The API server goes by it when it returns, as of
// Create. Queues are for Change.
func (w *World) Patch(o client.Object, patch string) {
	w.Helper()
	if isQueue(o) {
		w.Fatalf("changing %T %s: only Change waits until the operator knows of it", o, o.GetName())
	}
	if err := w.Client.Patch(w.Context(), o, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		w.Fatalf("changing %T %s: %v", o, o.GetName(), err)
	}
	w.Cluster.UntilHeard(w.T, o)
}

// PatchStatus is described at Patch.
func (w *World) PatchStatus(o client.Object, patch string) {
	w.Helper()
	if err := w.Client.Status().Patch(w.Context(), o, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		w.Fatalf("changing the status of %T %s: %v", o, o.GetName(), err)
	}
}

// Change edits an object as it is now, and leaves alone what others write meanwhile. A queue has been taken in by the operator
// when it returns: no watch is in step with another, so who is created at once might be seen before the change.
func (w *World) Change(o client.Object, edit func()) {
	w.Helper()
	w.Get(o)
	before := o.DeepCopyObject().(client.Object)
	edit()
	if err := w.Client.Patch(w.Context(), o, client.MergeFrom(before)); err != nil {
		w.Fatalf("changing %T %s: %v", o, o.GetName(), err)
	}
	if o.GetGeneration() == before.GetGeneration() && isQueue(o) {
		w.Fatalf("nothing tells when the operator knows of this change of %T %s: have its spec changed too", o, o.GetName())
	}
	w.Cluster.UntilHeard(w.T, o)
	w.untilHeard(o)
}

// ChangeStatus edits the status of the Workload of this name, as somebody would who does not care what else is in it.
func (w *World) ChangeStatus(workload string, edit func(*kueue.WorkloadStatus)) {
	w.Helper()
	seen := &kueue.Workload{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: workload}}
	w.Get(seen)
	after := seen.DeepCopy()
	edit(&after.Status)
	if err := w.Client.Status().Patch(w.Context(), after, client.MergeFrom(seen)); err != nil {
		w.Fatalf("changing the status of %s: %v", workload, err)
	}
}

// OperatorPID is the process of the operator that runs now, 0 while none does.
func (w *World) OperatorPID() int {
	w.Helper()
	text, err := os.ReadFile(filepath.Join(w.Cluster.Dir, "operator.pid"))
	if errors.Is(err, os.ErrNotExist) {
		return 0
	}
	if err != nil {
		w.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		w.Fatal(err)
	}
	return pid
}

// kill kills the operator that runs, and gives its process. One that has just ended by itself, or is not there yet, is started
// again: a file of another process can only be looked at.
func (w *World) kill(deadline time.Time) (pid int) {
	w.Helper()
	for ; time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if pid = w.OperatorPID(); pid <= 0 {
			continue // as a process it would be all of this test
		}
		err := syscall.Kill(pid, syscall.SIGKILL)
		if err == nil {
			return pid
		}
		if !errors.Is(err, syscall.ESRCH) {
			w.Fatalf("killing the operator, process %d: %v", pid, err)
		}
	}
	w.Fatal("there is no operator to kill")
	return 0
}

// KillOperator kills the operator and returns when another runs in its place.
func (w *World) KillOperator() {
	w.Helper()
	deadline := time.Now().Add(Patience)
	before := w.kill(deadline)
	for {
		if pid := w.OperatorPID(); pid != 0 && pid != before && syscall.Kill(pid, 0) == nil {
			return
		}
		if time.Now().After(deadline) {
			w.Fatal("no operator was started in place of the one that was killed")
		}
		time.Sleep(10 * time.Millisecond) // a file of another process can only be looked at
	}
}
