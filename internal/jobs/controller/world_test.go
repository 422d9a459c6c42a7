package controller_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clienttesting "k8s.io/client-go/testing"
	toolscache "k8s.io/client-go/tools/cache"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	breezeml "github.com/musterhq/muster/api/breezeml/v1"
	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	tensorstack "github.com/musterhq/muster/api/tensorstack/v1beta1"
	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	bus "github.com/musterhq/muster/api/volcano/bus/v1alpha1"
	scheduling "github.com/musterhq/muster/api/volcano/scheduling/v1beta1"
	"github.com/musterhq/muster/internal/admission/slim"
	"github.com/musterhq/muster/internal/jobs/controller"
	jobsetapi "github.com/musterhq/muster/internal/jobs/jobset"
	"github.com/musterhq/muster/internal/jobs/vcjob"
)

var epoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// world is an API server with one JobSet ns/js and the real reconciler. The rest of a cluster is simulated: admission,
// the Job controller and the garbage collector.
type world struct {
	t          *testing.T
	reconciler reconcile.Reconciler
	// job is the name of the job that is reconciled.
	job    string
	clock  *clocktesting.FakePassiveClock
	events *recorder
	// api is the API server. The reconciler uses another client, recordingClient, which records its writes and fails one.
	api client.WithWatch
	// fate returns how a ready Job ends; "" if it keeps running.
	fate func(*batchv1.Job) batchv1.JobConditionType

	mu         sync.Mutex
	writes     []string       // those of the reconciler, as "verb Kind name #occurrence"
	seen       map[string]int // how often each "verb Kind name" has occurred
	fault      fault
	created    map[string]int // how often each object, "Kind name", was created
	faultFired bool           // whether the fault has occurred
	// changes counts all writes, including those of the simulated controllers.
	changes int
	// refuses, if not nil, says why the API server refuses to create the object, nil if it does not.
	refuses func(client.Object) error
	// forbids, if not nil, says why the API server refuses the write, "verb Kind name #occurrence", nil if it does not.
	forbids func(write string) error
	// onCreate, if not nil, is called with each object that the reconciler is about to create, and may change it.
	onCreate func(client.Object)
}

// kubeletsFinalizer keeps a deleted pod for the time that it takes to terminate.
const kubeletsFinalizer = "test/kubelet"

// fault makes one write of the reconciler fail with the error: before it takes effect, or after.
type fault struct {
	write string
	after bool
	err   error
}

// newScheme returns a scheme for one world. Worlds cannot share one: the fake client registers in it the kinds that are
// requested. Kinds that concurrent creates of pods read are registered here, since registering is not safe for
// concurrent use.
func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	scheme.AddKnownTypeWithName(t9kPodGroupKind, &unstructured.Unstructured{})
	scheme.AddKnownTypeWithName(t9kPodGroupKind.GroupVersion().WithKind("PodGroupList"), &unstructured.UnstructuredList{})
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme,
		kueue.AddToScheme, jobset.AddToScheme, tensorstack.AddToScheme, volcano.AddToScheme, bus.AddToScheme,
		scheduling.AddToScheme, breezeml.AddToScheme} {
		utilruntime.Must(add(scheme))
	}
	return scheme
}

// newWorld returns a world with the namespace ns and the objects, in which the fault occurs.
func newWorld(t *testing.T, f fault, objects ...client.Object) *world {
	t.Helper()
	w := &world{t: t, job: "js", fault: f, events: &recorder{}, clock: clocktesting.NewFakePassiveClock(epoch),
		seen: map[string]int{}, created: map[string]int{},
		fate: func(*batchv1.Job) batchv1.JobConditionType { return batchv1.JobComplete }}
	objects = append(objects, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}})
	w.build(objects...)
	w.reconciler = controller.NewReconciler(jobsetapi.API, w.recordingClient(), w.events, w.clock)
	return w
}

// build creates the API server with the objects.
func (w *world) build(objects ...client.Object) {
	scheme := newScheme()
	w.api = fake.NewClientBuilder().WithScheme(scheme).
		// A tracker without field managers: nothing is applied here, and they take most of the time.
		WithObjectTracker(clienttesting.NewObjectTracker(scheme, serializer.NewCodecFactory(scheme).UniversalDecoder())).
		WithObjects(objects...).
		WithIndex(&batchv1.Job{}, controller.ControllerIndex, controller.ControllerOf(jobsetapi.API)).
		WithIndex(&corev1.Service{}, controller.ControllerIndex, controller.ControllerUID).
		WithIndex(&corev1.PersistentVolumeClaim{}, controller.ControllerIndex, controller.ControllerUID).
		WithIndex(&corev1.Pod{}, controller.ControllerIndex, controller.ControllerUID).
		WithIndex(&bus.Command{}, controller.ControllerIndex, controller.ControllerOf(vcjob.API)).
		WithIndex(&kueue.Workload{}, controller.OwnerIndex, controller.OwnerKeys).
		WithIndex(&corev1.Event{}, controller.RefusalIndex, controller.RefusalKeys).
		WithStatusSubresource(&jobset.JobSet{}, &tensorstack.GenericJob{}, &breezeml.TrainingJob{}, &volcano.Job{},
			&kueue.Workload{}, &batchv1.Job{}, &corev1.Pod{}).Build()
}

// stripPod is what the operator's cache does to pods.
var stripPod = func() toolscache.TransformFunc {
	for of, options := range slim.ByObject() {
		if _, is := of.(*corev1.Pod); is {
			return options.Transform
		}
	}
	panic("the cache keeps pods as they are")
}()

// asCached strips the pods and events in a list as the operator's cache does, so that a reconciler that reads a field
// which the cache drops fails its tests.
func asCached(list client.ObjectList) error {
	switch list := list.(type) {
	case *corev1.PodList:
		for i := range list.Items {
			if _, err := stripPod(&list.Items[i]); err != nil {
				return err
			}
		}
	case *corev1.EventList:
		for i := range list.Items {
			event, err := controller.Refusals().Transform(&list.Items[i])
			if err != nil {
				return err
			}
			list.Items[i] = *event.(*corev1.Event)
		}
	}
	return nil
}

// recordingClient returns the client of the reconciler, which reads pods as the operator's cache has them.
func (w *world) recordingClient() client.Client {
	return interceptor.NewClient(w.api, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			options := (&client.ListOptions{}).ApplyOptions(opts)
			if _, pods := list.(*metav1.PartialObjectMetadataList); pods {
				options.FieldSelector = nil // the fake API server supports no != selectors
			}
			if err := c.List(ctx, list, options); err != nil {
				return err
			}
			return asCached(list)
		},
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			return w.write("create", o, func() error { return w.create(ctx, o) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch,
			opts ...client.PatchOption) error {
			if _, ok := o.(*batchv1.Job); ok {
				o.SetGeneration(o.GetGeneration() + 1) // every change of a Job here is one of its spec
			}
			return w.write("change", o, func() error { return c.Patch(ctx, o, p, opts...) })
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch,
			opts ...client.SubResourcePatchOption) error {
			return w.write(sub, o, func() error { return c.SubResource(sub).Patch(ctx, o, p, opts...) })
		},
		Apply: func(ctx context.Context, c client.WithWatch, o runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			return w.write("apply", w.applied(o), func() error { return c.Apply(ctx, o, opts...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			return w.write("delete", o, func() error { return w.delete(ctx, o, opts...) })
		},
	})
}

// applied returns the applied configuration as an object, for its kind and name.
func (w *world) applied(o runtime.ApplyConfiguration) client.Object {
	text, err := json.Marshal(o)
	object := &unstructured.Unstructured{}
	if err == nil {
		err = object.UnmarshalJSON(text)
	}
	if err != nil {
		w.t.Error(err)
	}
	return object
}

// write records one write of the reconciler and does it, or fails it if it is that of the fault.
func (w *world) write(verb string, o client.Object, do func() error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	what := fmt.Sprintf("%s %s %s", verb, w.kind(o), o.GetName())
	w.seen[what]++
	what = fmt.Sprintf("%s #%d", what, w.seen[what])
	w.writes = append(w.writes, what)
	if w.forbids != nil {
		if err := w.forbids(what); err != nil {
			return err
		}
	}
	switch {
	case what != w.fault.write:
		w.changes++
		return do()
	case w.fault.after:
		if err := do(); err != nil {
			return err
		}
	}
	w.faultFired = true
	return w.fault.err
}

// create creates the object with a UID; a Job and a pod with a finalizer that keeps them until their pods or containers
// have terminated.
func (w *world) create(ctx context.Context, o client.Object) error {
	if w.refuses != nil {
		if err := w.refuses(o); err != nil {
			return err
		}
	}
	if w.onCreate != nil {
		w.onCreate(o)
	}
	name := w.kind(o) + " " + o.GetName()
	o.SetUID(types.UID(fmt.Sprintf("%s#%d", name, w.created[name]+1)))
	switch o.(type) {
	case *batchv1.Job:
		o.SetFinalizers([]string{metav1.FinalizerDeleteDependents})
	case *corev1.Pod:
		o.SetFinalizers([]string{kubeletsFinalizer}) // the fake API server has no grace period
	}
	if o.GetObjectKind().GroupVersionKind().Group == volcano.GroupVersion.Group {
		o.SetGeneration(1) // the fake API server does not set it
	}
	err := w.api.Create(ctx, o)
	if err == nil {
		w.created[name]++
	}
	return err
}

// delete deletes the object; it checks the UID precondition, which the fake API server ignores, and that containers
// keep the grace period of their pods.
func (w *world) delete(ctx context.Context, o client.Object, opts ...client.DeleteOption) error {
	options := (&client.DeleteOptions{}).ApplyOptions(opts)
	if options.GracePeriodSeconds != nil {
		w.t.Errorf("%s %s is deleted with a grace period of %d s, want that of its pods", w.kind(o), o.GetName(),
			*options.GracePeriodSeconds)
	}
	now := o.DeepCopyObject().(client.Object)
	if err := w.api.Get(ctx, client.ObjectKeyFromObject(o), now); err != nil {
		return err
	}
	if want := options.Preconditions.UID; want != nil && *want != now.GetUID() {
		return apierrors.NewConflict(jobset.Resource(w.kind(o)), o.GetName(), fmt.Errorf("the UID is %s", now.GetUID()))
	}
	return w.api.Delete(ctx, o, opts...)
}

func (w *world) kind(o client.Object) string {
	gvk, err := apiutil.GVKForObject(o, w.api.Scheme())
	if err != nil {
		w.t.Error(err)
	}
	return gvk.Kind
}

// settle runs all controllers in turn until none of them writes any more.
func (w *world) settle() {
	w.t.Helper()
	for range 100 {
		before := w.changes
		result := w.reconcile()
		w.collectGarbage()
		w.admit()
		w.runJobs()
		switch {
		case w.changes != before:
		case result.RequeueAfter > 0 && result.RequeueAfter <= time.Second:
			w.clock.SetTime(w.clock.Now().Add(result.RequeueAfter)) // deferred writes of counts are due then
		default:
			return
		}
	}
	w.failUnsettled()
}

// failUnsettled fails the test because the controllers never stop writing.
func (w *world) failUnsettled() {
	w.t.Helper()
	w.t.Fatalf("the controllers never stop writing; the last writes:\n%s",
		strings.Join(w.writes[max(0, len(w.writes)-20):], "\n"))
}

// reconcile reconciles like the controller: again after an error, and after a conflict, as if triggered by the watch.
func (w *world) reconcile() ctrl.Result {
	w.t.Helper()
	var err error
	for range 3 {
		w.faultFired = false
		var result ctrl.Result
		result, err = w.reconciler.Reconcile(w.t.Context(),
			ctrl.Request{NamespacedName: types.NamespacedName{Namespace: "ns", Name: w.job}})
		if err == nil && !w.faultFired {
			return result
		}
	}
	w.t.Fatalf("the reconcile failed or lost a write three times in a row: %v", err)
	return ctrl.Result{}
}

// admit admits every waiting Workload with the flavor f.
func (w *world) admit() {
	for _, wl := range list[kueue.WorkloadList](w).Items {
		if wl.Status.Admission != nil || meta.IsStatusConditionTrue(wl.Status.Conditions, kueue.WorkloadFinished) {
			continue
		}
		wl.Status.Admission = &kueue.Admission{ClusterQueue: "cq"}
		for _, ps := range wl.Spec.PodSets {
			wl.Status.Admission.PodSetAssignments = append(wl.Status.Admission.PodSetAssignments, kueue.PodSetAssignment{
				Name: ps.Name, Count: ptr.To(ps.Count), Flavors: map[corev1.ResourceName]kueue.ResourceFlavorReference{"cpu": "f"}})
		}
		if c := meta.FindStatusCondition(wl.Status.Conditions, kueue.WorkloadEvicted); c != nil {
			c.Status, c.Reason = metav1.ConditionFalse, kueue.WorkloadQuotaReservedReason
		}
		for _, kind := range []string{kueue.WorkloadQuotaReserved, kueue.WorkloadAdmitted} {
			meta.SetStatusCondition(&wl.Status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionTrue,
				Reason: kind, LastTransitionTime: metav1.NewTime(w.clock.Now())})
		}
		w.updateStatus(&wl)
	}
}

// evictWorkload evicts the Workload, as the engine does to preempt it.
func (w *world) evictWorkload(wl *kueue.Workload) {
	meta.SetStatusCondition(&wl.Status.Conditions,
		metav1.Condition{Type: kueue.WorkloadEvicted, Status: metav1.ConditionTrue,
			Reason: kueue.WorkloadEvictedByPreemption, Message: "because", LastTransitionTime: metav1.NewTime(epoch)})
	w.updateStatus(wl)
}

// runJobs moves every Job one step on: it has pods, they are ready, it ends.
func (w *world) runJobs() {
	for _, job := range list[batchv1.JobList](w).Items {
		s := &job.Status
		switch {
		case len(s.Conditions) > 0 || !job.DeletionTimestamp.IsZero():
			continue
		case *job.Spec.Suspend:
			if s.Active == 0 {
				continue
			}
			s.Active, s.Ready = 0, ptr.To[int32](0)
		case s.Active == 0:
			s.Active = 1
		case ptr.Deref(s.Ready, 0) == 0:
			s.Ready = ptr.To[int32](1)
		default:
			end := w.fate(&job)
			if end == "" {
				continue
			}
			s.Active, s.Ready = 0, nil
			if end == batchv1.JobComplete {
				s.Succeeded = 1
			}
			s.Conditions = append(s.Conditions,
				batchv1.JobCondition{Type: end, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(epoch)})
		}
		w.updateStatus(&job)
	}
}

func (w *world) updateStatus(o client.Object) {
	w.changes++
	if err := w.api.Status().Update(w.t.Context(), o); err != nil {
		w.t.Fatal(err)
	}
}

// collectGarbage removes deleted Jobs.
func (w *world) collectGarbage() {
	for _, job := range list[batchv1.JobList](w).Items {
		if job.DeletionTimestamp.IsZero() {
			continue
		}
		w.changes++
		job.Finalizers = nil
		if err := w.api.Update(w.t.Context(), &job); client.IgnoreNotFound(err) != nil {
			w.t.Fatal(err)
		}
	}
}

// list returns all objects of a kind.
func list[L any, P interface {
	*L
	client.ObjectList
}](w *world) *L {
	var out L
	if err := w.api.List(w.t.Context(), P(&out)); err != nil {
		w.t.Fatal(err)
	}
	return &out
}

// state holds all objects of the cluster without resourceVersions.
type state struct {
	JobSets     []jobset.JobSet
	Jobs        []batchv1.Job
	Services    []corev1.Service
	Workloads   []kueue.Workload
	LocalQueues []kueue.LocalQueue
}

func (w *world) state() state {
	s := state{list[jobset.JobSetList](w).Items, list[batchv1.JobList](w).Items, list[corev1.ServiceList](w).Items,
		list[kueue.WorkloadList](w).Items, list[kueue.LocalQueueList](w).Items}
	for i := range s.JobSets {
		s.JobSets[i].ResourceVersion = ""
	}
	for i := range s.Jobs {
		s.Jobs[i].ResourceVersion, s.Jobs[i].Generation = "", 0
	}
	for i := range s.Services {
		s.Services[i].ResourceVersion = ""
	}
	for i := range s.Workloads {
		s.Workloads[i].ResourceVersion = ""
	}
	for i := range s.LocalQueues {
		s.LocalQueues[i].ResourceVersion = ""
	}
	return s
}

// jobSet returns the current ns/js.
func (w *world) jobSet() *jobset.JobSet { return &list[jobset.JobSetList](w).Items[0] }

// outcome returns how the JobSet ended; "" if it has not.
func (w *world) outcome() string { return w.jobSet().Status.TerminalState }

// recorder records events as "Reason: note".
type recorder struct {
	mu     sync.Mutex
	events []string
}

func (r *recorder) Eventf(_, _ runtime.Object, _, reason, _, note string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, reason+": "+fmt.Sprintf(note, args...))
}

// newJobSet returns ns/js with a leader and two workers; queue is its queue label, "" for none.
func newJobSet(queue string) *jobset.JobSet {
	js := &jobset.JobSet{ObjectMeta: metav1.ObjectMeta{Name: "js", Namespace: "ns", UID: "js-uid"}}
	if queue != "" {
		js.Labels = map[string]string{kueue.QueueLabel: queue}
	}
	for i, name := range []string{"leader", "workers"} {
		rj := jobset.ReplicatedJob{Name: name, Replicas: int32(i + 1)}
		rj.Template.Spec.Template.Spec.Containers = []corev1.Container{{Name: "c"}}
		js.Spec.ReplicatedJobs = append(js.Spec.ReplicatedJobs, rj)
	}
	return js
}

// clusterQueue returns a ClusterQueue that admits every namespace.
func clusterQueue(name string) *kueue.ClusterQueue {
	return &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: kueue.ClusterQueueSpec{NamespaceSelector: &metav1.LabelSelector{}}}
}

// flavor returns the ResourceFlavor f, for the nodes with the label pool=f.
func flavor() *kueue.ResourceFlavor {
	return &kueue.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{Name: "f"},
		Spec: kueue.ResourceFlavorSpec{NodeLabels: map[string]string{"pool": "f"}}}
}
