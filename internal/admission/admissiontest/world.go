package admissiontest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/admission/indexes"
)

var (
	Never = 3 * time.Minute // the timeout of waits for something that must happen
)

// Scheme has the kinds that the world keeps.
var Scheme = func() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(corev1.AddToScheme(scheme))
	utilruntime.Must(nodev1.AddToScheme(scheme))
	utilruntime.Must(kueue.AddToScheme(scheme))
	return scheme
}()

// World is an API server that records each write as "verb Kind name", fails the writes that before or after fail, and
// notifies listeners.
type World struct {
	client.WithWatch
	T *testing.T

	Mu     sync.Mutex
	Writes []string
	// Before and after are called for every write; an error of before keeps it from taking effect, one of after
	// replaces the response.
	Before, After func(write string) error
	// Wrote is signaled after a write.
	Wrote chan struct{}
	// Notify is called with every object that was written.
	Notify func(old, new client.Object)
}

// NewWorld returns a world with these objects.
func NewWorld(t *testing.T, objects ...client.Object) *World {
	t.Helper()
	ok := func(string) error { return nil }
	w := &World{T: t, Before: ok, After: ok, Wrote: make(chan struct{}, 1), Notify: func(_, _ client.Object) {}}
	builder := fake.NewClientBuilder().WithScheme(Scheme).
		WithIndex(&corev1.Event{}, "involvedObject.uid", func(o client.Object) []string { // as the API server selects them
			return []string{string(o.(*corev1.Event).InvolvedObject.UID)}
		})
	if err := indexes.AddIndexes(indexer{builder}); err != nil {
		t.Fatal(err)
	}
	w.WithWatch = builder.WithObjects(objects...).
		WithObjectTracker(clienttesting.NewObjectTracker(Scheme, serializer.NewCodecFactory(Scheme).UniversalDecoder())).
		WithStatusSubresource(&kueue.Workload{}, &kueue.ClusterQueue{}, &kueue.LocalQueue{}, &kueue.Cohort{}).
		WithInterceptorFuncs(interceptor.Funcs{
			Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
				return w.write("create", o, func() error { return c.Create(ctx, o, opts...) })
			},
			Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch,
				opts ...client.PatchOption) error {
				return w.write("change", o, func() error { return c.Patch(ctx, o, p, opts...) })
			},
			Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
				return w.write("delete", o, func() error { return c.Delete(ctx, o, opts...) })
			},
			SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch,
				opts ...client.SubResourcePatchOption) error {
				return w.write(sub, o, func() error { return c.SubResource(sub).Patch(ctx, o, p, opts...) })
			},
		}).Build()
	return w
}

// indexer adds indexes to the client of a builder.
type indexer struct{ builder *fake.ClientBuilder }

// IndexField implements client.FieldIndexer.
func (i indexer) IndexField(_ context.Context, o client.Object, field string, keys client.IndexerFunc) error {
	i.builder.WithIndex(o, field, keys)
	return nil
}

func (w *World) write(verb string, o client.Object, do func() error) error {
	gvk, err := apiutil.GVKForObject(o, Scheme)
	if err != nil {
		return err
	}
	what := fmt.Sprintf("%s %s %s", verb, gvk.Kind, o.GetName())
	if err := w.Before(what); err != nil {
		return err
	}
	w.Mu.Lock()
	if err := do(); err != nil {
		w.Mu.Unlock()
		return err
	}
	w.Writes = append(w.Writes, what)
	if whole := w.current(o); whole != nil {
		w.Notify(whole, whole)
	}
	w.Mu.Unlock()
	select {
	case w.Wrote <- struct{}{}:
	default:
	}
	return w.After(what)
}

// current returns the current object, also if the response to a write had only its metadata.
func (w *World) current(o client.Object) client.Object {
	if partial, ok := o.(*metav1.PartialObjectMetadata); !ok || partial.Kind != "Workload" {
		return o
	}
	var out kueue.Workload
	if err := w.Get(context.Background(), client.ObjectKeyFromObject(o), &out); err != nil {
		w.T.Errorf("reading the written object: %v", err)
		return nil
	}
	return &out
}

// Written returns the writes that took effect, in order.
func (w *World) Written() []string {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	return slices.Clone(w.Writes)
}

// Edit changes an object as another client would; the generation follows the spec.
func (w *World) Edit(o client.Object, change func()) {
	w.T.Helper()
	w.change(o, change)
	o.SetGeneration(o.GetGeneration() + 1)
	w.must(w.Update(w.T.Context(), o))
}

// EditStatus changes the status of an object as another client would.
func (w *World) EditStatus(o client.Object, change func()) {
	w.T.Helper()
	w.change(o, change)
	w.must(w.Status().Update(w.T.Context(), o))
}

// change changes the current object in memory.
func (w *World) change(o client.Object, change func()) {
	w.T.Helper()
	w.must(w.Get(w.T.Context(), client.ObjectKeyFromObject(o), o))
	change()
}

// Workload returns the current Workload ns/name.
func (w *World) Workload(name string) *kueue.Workload {
	w.T.Helper()
	var out kueue.Workload
	w.must(w.Get(w.T.Context(), client.ObjectKey{Namespace: "ns", Name: name}, &out))
	return &out
}

// Await waits until the condition holds; it is checked after every write.
func (w *World) Await(what string, holds func() bool) {
	w.T.Helper()
	timeout := time.After(Never)
	for !holds() {
		select {
		case <-w.Wrote:
		case <-timeout:
			w.T.Fatalf("timed out waiting until %s; writes: %v", what, w.Written())
		}
	}
}

// must ends the test on an error.
func (w *World) must(err error) {
	w.T.Helper()
	if err != nil {
		w.T.Fatal(err)
	}
}

// Put creates an object.
func (w *World) Put(o client.Object) {
	w.T.Helper()
	w.must(w.Create(w.T.Context(), o))
}

// Remove deletes an object.
func (w *World) Remove(o client.Object) {
	w.T.Helper()
	w.must(w.Delete(w.T.Context(), o))
}
