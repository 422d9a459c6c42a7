// Package harness is shared by the scenarios: a namespace on the embedded control plane of their test process, waiting
// by watches, and diagnostics after a failure. It knows no particular scenario; helpers of only one package belong
// there.
package harness

import (
	"context"
	"testing"

	registration "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/testcluster"
)

// World is a namespace of the shared cluster with the objects of its test. It is deleted at the end of the test.
type World struct {
	*testing.T
	Client    client.WithWatch
	Cluster   *testcluster.Cluster
	Namespace string
}

// New returns a new namespace for a test. The TestMain of the package chooses the cluster (testcluster.Main).
func New(t *testing.T) *World {
	t.Helper()
	cluster := testcluster.Get(t)
	c, err := client.NewWithWatch(cluster.Config, client.Options{Scheme: testcluster.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	return &World{T: t, Client: c, Cluster: cluster, Namespace: cluster.Namespace(t)}
}

// Everywhere returns the world extended to all namespaces.
func (w *World) Everywhere() *World {
	all := *w
	all.Namespace = metav1.NamespaceAll
	return &all
}

// In returns the same namespace for another test, such as a subtest.
func (w *World) In(t *testing.T) *World {
	same := *w
	same.T = t
	return &same
}

// Create creates the objects in order. It returns when the API server takes them into account (see
// testcluster.Cluster.UntilObserved) and, if the cluster has an operator, the operator has observed new queues:
// otherwise an object created next might be rejected because its priority class or queue does not exist yet. Use
// Enforce for policies and webhooks.
func (w *World) Create(objects ...client.Object) {
	w.Helper()
	for _, o := range objects {
		if isAdmissionPolicy(o) {
			w.Fatalf("creating %T %s: only Enforce waits until the API server enforces it", o, o.GetName())
		}
	}
	w.create(objects...)
	w.Cluster.UntilObserved(w.T, objects...)
	for _, o := range objects {
		if isQueue(o) && w.Operator().PID() != 0 {
			w.untilObserved(o)
		}
	}
}

// Shared creates cluster-scoped objects, which are deleted at the end of the test.
func (w *World) Shared(objects ...client.Object) {
	w.Helper()
	w.Create(objects...)
	w.deleteOnCleanup(objects...)
}

// Enforce creates policies, their bindings, and webhooks, which are deleted at the end of the test. It returns after
// untilInForce, which must wait for an effect that shows that they are in force.
func (w *World) Enforce(untilInForce func(), objects ...client.Object) {
	w.Helper()
	w.create(objects...)
	w.deleteOnCleanup(objects...)
	untilInForce()
}

func (w *World) create(objects ...client.Object) {
	w.Helper()
	for _, o := range objects {
		if err := w.Client.Create(w.Context(), o); err != nil {
			w.Fatalf("creating %T %s: %v", o, o.GetName(), err)
		}
	}
}

func (w *World) deleteOnCleanup(objects ...client.Object) {
	w.Cleanup(func() {
		for _, o := range objects {
			if err := client.IgnoreNotFound(w.Client.Delete(context.Background(), o)); err != nil {
				w.Errorf("deleting %T %s: %v", o, o.GetName(), err)
			}
		}
	})
}

// isAdmissionPolicy reports whether the object is one that the API server consults about other objects, without any
// visible sign of when it starts to.
func isAdmissionPolicy(o client.Object) bool {
	switch o.(type) {
	case *registration.ValidatingAdmissionPolicy, *registration.ValidatingAdmissionPolicyBinding,
		*registration.ValidatingWebhookConfiguration, *registration.MutatingAdmissionPolicy,
		*registration.MutatingAdmissionPolicyBinding, *registration.MutatingWebhookConfiguration:
		return true
	}
	return false
}

// Get reads the current object of this name.
func (w *World) Get(o client.Object) {
	w.Helper()
	if err := w.Client.Get(w.Context(), client.ObjectKeyFromObject(o), o); err != nil {
		w.Fatalf("reading %T %s: %v", o, o.GetName(), err)
	}
}

// Delete deletes the object; its dependents are garbage-collected.
func (w *World) Delete(o client.Object) {
	w.Helper()
	if err := w.Client.Delete(w.Context(), o, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
		w.Fatalf("deleting %T %s: %v", o, o.GetName(), err)
	}
}

// Patch changes an object by a JSON merge patch. It returns when the API server takes the change into account, as
// Create does. Use Change for queues.
func (w *World) Patch(o client.Object, patch string) {
	w.Helper()
	if isQueue(o) {
		w.Fatalf("changing %T %s: only Change waits until the operator has observed the change", o, o.GetName())
	}
	if err := w.Client.Patch(w.Context(), o, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		w.Fatalf("changing %T %s: %v", o, o.GetName(), err)
	}
	w.Cluster.UntilObserved(w.T, o)
}

// PatchStatus changes the status of an object as Patch does.
func (w *World) PatchStatus(o client.Object, patch string) {
	w.Helper()
	if err := w.Client.Status().Patch(w.Context(), o, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		w.Fatalf("changing the status of %T %s: %v", o, o.GetName(), err)
	}
}

// Change edits the current object by a merge patch, which keeps what others change meanwhile. It returns when the
// operator has observed a changed queue: its watches are not in step, so an object created next might be observed
// before the change.
func (w *World) Change(o client.Object, edit func()) {
	w.Helper()
	w.Get(o)
	before := o.DeepCopyObject().(client.Object)
	edit()
	if err := w.Client.Patch(w.Context(), o, client.MergeFrom(before)); err != nil {
		w.Fatalf("changing %T %s: %v", o, o.GetName(), err)
	}
	if o.GetGeneration() == before.GetGeneration() && isQueue(o) {
		w.Fatalf("nothing shows when the operator has observed this change of %T %s: change its spec too", o, o.GetName())
	}
	w.Cluster.UntilObserved(w.T, o)
	w.untilObserved(o)
}

// ChangeStatus edits the status of the Workload of this name by a merge patch, which keeps what others change
// meanwhile.
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
