package admission

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/admission/admissiontest"
	"github.com/musterhq/muster/internal/engine"
)

var (
	now   = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	never = 3 * time.Minute // the timeout of waits for something that must happen
)

var scheme = func() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(corev1.AddToScheme(scheme))
	utilruntime.Must(nodev1.AddToScheme(scheme))
	utilruntime.Must(kueue.AddToScheme(scheme))
	return scheme
}()

// world is an API server that records each write as "verb Kind name", fails the writes that before or after fail, and
// notifies listeners.
type world struct {
	client.WithWatch
	t *testing.T

	mu     sync.Mutex
	writes []string
	// before and after are called for every write; an error of before keeps it from taking effect, one of after
	// replaces the response.
	before, after func(write string) error
	// wrote is signaled after a write.
	wrote chan struct{}
	// notify is called with every object that was written.
	notify func(old, new client.Object)
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	ok := func(string) error { return nil }
	w := &world{t: t, before: ok, after: ok, wrote: make(chan struct{}, 1), notify: func(_, _ client.Object) {}}
	builder := fake.NewClientBuilder().WithScheme(scheme).
		WithIndex(&corev1.Event{}, "involvedObject.uid", func(o client.Object) []string { // as the API server selects them
			return []string{string(o.(*corev1.Event).InvolvedObject.UID)}
		})
	if err := addIndexes(indexer{builder}); err != nil {
		t.Fatal(err)
	}
	w.WithWatch = builder.WithObjects(objects...).
		WithObjectTracker(clienttesting.NewObjectTracker(scheme, serializer.NewCodecFactory(scheme).UniversalDecoder())).
		WithStatusSubresource(&kueue.Workload{}, &kueue.ClusterQueue{}, &kueue.LocalQueue{}, &kueue.Cohort{}).
		WithInterceptorFuncs(interceptor.Funcs{
			Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
				return w.write("create", o, func() error { return c.Create(ctx, o, opts...) })
			},
			Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
				return w.write("change", o, func() error { return c.Patch(ctx, o, p, opts...) })
			},
			Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
				return w.write("delete", o, func() error { return c.Delete(ctx, o, opts...) })
			},
			SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
				return w.write(sub, o, func() error { return c.SubResource(sub).Patch(ctx, o, p, opts...) })
			},
		}).Build()
	return w
}

// indexer adds indexes to the client of a builder.
type indexer struct{ builder *fake.ClientBuilder }

func (i indexer) IndexField(_ context.Context, o client.Object, field string, keys client.IndexerFunc) error {
	i.builder.WithIndex(o, field, keys)
	return nil
}

func (w *world) write(verb string, o client.Object, do func() error) error {
	gvk, err := apiutil.GVKForObject(o, scheme)
	if err != nil {
		return err
	}
	what := fmt.Sprintf("%s %s %s", verb, gvk.Kind, o.GetName())
	if err := w.before(what); err != nil {
		return err
	}
	w.mu.Lock()
	if err := do(); err != nil {
		w.mu.Unlock()
		return err
	}
	w.writes = append(w.writes, what)
	if whole := w.current(o); whole != nil {
		w.notify(whole, whole)
	}
	w.mu.Unlock()
	select {
	case w.wrote <- struct{}{}:
	default:
	}
	return w.after(what)
}

// current returns the current object, also if the response to a write had only its metadata.
func (w *world) current(o client.Object) client.Object {
	if partial, ok := o.(*metav1.PartialObjectMetadata); !ok || partial.Kind != "Workload" {
		return o
	}
	var out kueue.Workload
	if err := w.Get(context.Background(), client.ObjectKeyFromObject(o), &out); err != nil {
		w.t.Errorf("reading the written object: %v", err)
		return nil
	}
	return &out
}

// written returns the writes that took effect, in order.
func (w *world) written() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.writes)
}

// edit changes an object as another client would; the generation follows the spec.
func (w *world) edit(o client.Object, change func()) {
	w.t.Helper()
	if err := w.Get(w.t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
		w.t.Fatal(err)
	}
	change()
	o.SetGeneration(o.GetGeneration() + 1)
	if err := w.Update(w.t.Context(), o); err != nil {
		w.t.Fatal(err)
	}
}

// workload returns the current Workload ns/name.
func (w *world) workload(name string) *kueue.Workload {
	w.t.Helper()
	var out kueue.Workload
	if err := w.Get(w.t.Context(), client.ObjectKey{Namespace: "ns", Name: name}, &out); err != nil {
		w.t.Fatal(err)
	}
	return &out
}

// await waits until the condition holds; it is checked after every write.
func (w *world) await(what string, holds func() bool) {
	w.t.Helper()
	timeout := time.After(never)
	for !holds() {
		select {
		case <-w.wrote:
		case <-timeout:
			w.t.Fatalf("timed out waiting until %s; writes: %v", what, w.written())
		}
	}
}

var (
	quantities = admissiontest.Quantities
	expect     = admissiontest.Expect
)

// newWorkload returns ns/name in the queue q, with count pods in the pod set main.
func newWorkload(name string, count int32, requests corev1.ResourceList) *kueue.Workload {
	return &kueue.Workload{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns", UID: types.UID(name + "-uid"), Generation: 1, CreationTimestamp: metav1.NewTime(now)},
		Spec: kueue.WorkloadSpec{QueueName: "q", PodSets: []kueue.PodSet{{Name: "main", Count: count, Template: corev1.PodTemplateSpec{
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: requests}}}}}}}},
	}
}

func newFlavor(name string) *kueue.ResourceFlavor {
	return &kueue.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// newClusterQueue returns a ClusterQueue with cpu quota in the flavor f for every namespace.
func newClusterQueue(name, cpu string) *kueue.ClusterQueue {
	return &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 1}, Spec: kueue.ClusterQueueSpec{
		NamespaceSelector: &metav1.LabelSelector{},
		ResourceGroups: []kueue.ResourceGroup{{CoveredResources: []corev1.ResourceName{"cpu"}, Flavors: []kueue.FlavorQuotas{{
			Name: "f", Resources: []kueue.ResourceQuota{{Name: "cpu", NominalQuota: resource.MustParse(cpu)}}}}}},
	}}
}

func newLocalQueue(name, clusterQueue string) *kueue.LocalQueue {
	return &kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns", Generation: 1}, Spec: kueue.LocalQueueSpec{ClusterQueue: kueue.ClusterQueueReference(clusterQueue)}}
}

var namespace = &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}}

// decide makes an engine decide about the Workload in a queue of 8 cpu.
func decide(t *testing.T, w *kueue.Workload) engine.Decision {
	t.Helper()
	e, tr := engine.New(engine.Options{}), newTestTranslator()
	for _, o := range []client.Object{namespace.DeepCopy(), newFlavor("f"), newClusterQueue("cq", "8"), newLocalQueue("q", "cq"), w} {
		for _, ev := range tr.changed(o, now) {
			e.Apply(ev)
		}
	}
	decisions := e.Decide(now)
	if len(decisions) != 1 {
		t.Fatalf("got decisions %+v, want one", decisions)
	}
	return decisions[0]
}

// conditions returns the conditions as lines "Type=Status Reason: message".
func conditions(list []metav1.Condition) []string {
	var out []string
	for _, c := range list {
		out = append(out, fmt.Sprintf("%s=%s %s: %s", c.Type, c.Status, c.Reason, c.Message))
	}
	return out
}
