package controller_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/yaml"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	lattice "github.com/musterhq/muster/api/lattice/v1alpha1"
	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	"github.com/musterhq/muster/internal/jobs/controller"
	"github.com/musterhq/muster/internal/jobs/latticejob"
)

// appliedKinds are the kinds without Go types that are applied for a LatticeJob, by their resources.
var appliedKinds = map[string]schema.GroupVersionKind{
	"externalsecrets":           {Group: "external-secrets.io", Version: "v1", Kind: "ExternalSecret"},
	"latticemeshmembers":        {Group: "lattice.dev", Version: "v1alpha1", Kind: "LatticeMeshMember"},
	"tracingpoliciesnamespaced": {Group: "cilium.io", Version: "v1alpha1", Kind: "TracingPolicyNamespaced"},
}

// latticeManifest is the spec of ns/job, which needs at least one object of each kind.
const latticeManifest = `
tasks:
  t:
    replicas: 2
    workload:
      containers:
        main:
          image: i:1
          command: [/bin/sh]
          variables: {NAME: "${metadata.name}", KEY: "key ${secret.s.k}"}
          files: {/f: {content: text}, /b: {binaryContent: YQ==}}
          volumes: {/data: {source: "${resources.v}"}}
      resources:
        s: {type: secret, id: x, params: {provider: p, keys: [k]}}
        v: {type: volume, id: shared, params: {size: 1Gi}}
      service: {ports: {http: {port: 80}}}
`

// latticeWorld is a world with the LatticeJob ns/job. Its VCJob changes only by the steps.
type latticeWorld struct {
	*world
	// steps are what is still to happen to the VCJob or to the LatticeJob, one after the other.
	steps []func(*latticeWorld)
}

// newLatticeWorld returns a world with ns/job and the definitions of the applied kinds.
func newLatticeWorld(t *testing.T, f fault, steps []func(*latticeWorld)) *latticeWorld {
	t.Helper()
	w := newWorld(t, f)
	w.job = "job"
	job := &lattice.LatticeJob{ObjectMeta: metav1.ObjectMeta{Name: "job", Namespace: "ns", UID: "job-uid", Generation: 1,
		CreationTimestamp: metav1.NewTime(epoch)}}
	if err := yaml.UnmarshalStrict([]byte(latticeManifest), &job.Spec); err != nil {
		t.Fatal(err)
	}
	// with the necessary kinds only: the fake API server goes through all of them on each write
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, nodev1.AddToScheme, schedulingv1.AddToScheme,
		apiextensionsv1.AddToScheme, kueue.AddToScheme, volcano.AddToScheme, lattice.AddToScheme} {
		utilruntime.Must(add(scheme))
	}
	objects := []client.Object{job, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}}}
	for resource, kind := range appliedKinds {
		scheme.AddKnownTypeWithName(kind, &unstructured.Unstructured{})
		scheme.AddKnownTypeWithName(kind.GroupVersion().WithKind(kind.Kind+"List"), &unstructured.UnstructuredList{})
		objects = append(objects,
			&apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: resource + "." + kind.Group}})
	}
	w.api = fake.NewClientBuilder().WithScheme(scheme).WithTypeConverters(managedfields.NewDeducedTypeConverter()).
		WithObjects(objects...).
		WithIndex(&volcano.Job{}, controller.ControllerIndex, controller.ControllerUID).
		WithIndex(&lattice.LatticeJob{}, controller.ControllerIndex, controller.ControllerUID).
		WithIndex(&kueue.Workload{}, controller.OwnerIndex, controller.OwnerKeys).
		WithStatusSubresource(&lattice.LatticeJob{}, &volcano.Job{}, &kueue.Workload{}).Build()
	w.reconciler = controller.NewReconciler(latticejob.New(latticejob.Settings{}), w.recordingClient(), w.events, w.clock)
	return &latticeWorld{w, steps}
}

// run does the steps, each once the reconciler does not write any more.
func (l *latticeWorld) run() *latticeWorld {
	l.t.Helper()
	for {
		l.settle()
		if len(l.steps) == 0 {
			return l
		}
		l.steps[0](l)
		l.steps = l.steps[1:]
	}
}

// settle reconciles the job until that writes nothing.
func (l *latticeWorld) settle() {
	l.t.Helper()
	for range 20 {
		before := l.changes
		if l.reconcile(); l.changes == before {
			return
		}
	}
	l.failUnsettled()
}

func (l *latticeWorld) latticeJob() *lattice.LatticeJob {
	l.t.Helper()
	return &list[lattice.LatticeJobList](l.world).Items[0]
}

// setVCJobPhase returns a step that sets the phase of the VCJob.
func setVCJobPhase(phase volcano.JobPhase, reason string) func(*latticeWorld) {
	return func(w *latticeWorld) {
		w.t.Helper()
		all := list[volcano.JobList](w.world).Items
		if len(all) != 1 {
			w.t.Fatalf("there are %d VCJobs, want 1", len(all))
		}
		all[0].Status.State = volcano.JobState{Phase: phase, Reason: reason}
		w.updateStatus(&all[0])
	}
}

// changeTask returns a step that changes the task of the job.
func changeTask(change func(*lattice.JobTaskSpec)) func(*latticeWorld) {
	return func(w *latticeWorld) {
		w.t.Helper()
		job := w.latticeJob()
		task := job.Spec.Tasks["t"]
		change(&task)
		job.Spec.Tasks["t"] = task
		job.Generation++
		w.changes++
		if err := w.api.Update(w.t.Context(), job); err != nil {
			w.t.Fatal(err)
		}
	}
}

func grow(task *lattice.JobTaskSpec)            { *task.Replicas = 3 }
func removeService(task *lattice.JobTaskSpec)   { task.Workload.Service = nil }
func removeResources(task *lattice.JobTaskSpec) { task.Workload.Resources = nil }

// latticeLives are the steps of LatticeJobs that TestFailedWritesDoNotChangeTheOutcomeOfALatticeJob goes through.
var latticeLives = map[string]struct {
	steps []func(*latticeWorld)
	ends  lattice.JobPhase
	// members is how many LatticeMeshMembers are left in the end.
	members int
}{
	"succeeded": {[]func(*latticeWorld){setVCJobPhase(volcano.Running, ""),
		setVCJobPhase(volcano.Completed, "")}, lattice.Succeeded, 0},
	"failed": {[]func(*latticeWorld){setVCJobPhase(volcano.Running, ""),
		setVCJobPhase(volcano.Failed, "")}, lattice.Failed, 0},
	"service removed while it waits": {[]func(*latticeWorld){setVCJobPhase(volcano.Pending, volcano.WaitingForQuota),
		changeTask(removeService), setVCJobPhase(volcano.Running, "")}, lattice.Running, 0},
	"command removed while it waits": {[]func(*latticeWorld){setVCJobPhase(volcano.Pending, volcano.WaitingForQuota),
		changeTask(specChanges["without a command"]), setVCJobPhase(volcano.Running, "")}, lattice.Running, 1},
	"made invalid while it waits": {[]func(*latticeWorld){setVCJobPhase(volcano.Pending, volcano.WaitingForQuota),
		changeTask(removeResources)}, lattice.Failed, 0},
	"changed while it runs": {[]func(*latticeWorld){setVCJobPhase(volcano.Running, ""), changeTask(grow),
		setVCJobPhase(volcano.Completed, "")}, lattice.Succeeded, 0},
}

// objects returns all objects of the job as "Kind name", without resourceVersions, UIDs and field managers.
func (l *latticeWorld) objects() map[string]any {
	out := map[string]any{}
	add := func(o client.Object) {
		o.SetResourceVersion("")
		o.SetUID("")
		o.SetManagedFields(nil)
		out[l.kind(o)+" "+o.GetName()] = o
	}
	for i := range list[lattice.LatticeJobList](l.world).Items {
		add(&list[lattice.LatticeJobList](l.world).Items[i])
	}
	kinds := []schema.GroupVersionKind{volcano.GroupVersion.WithKind("Job")}
	for _, kind := range []string{"ServiceAccount", "ConfigMap", "Secret", "PersistentVolumeClaim"} {
		kinds = append(kinds, corev1.SchemeGroupVersion.WithKind(kind))
	}
	for _, kind := range appliedKinds {
		kinds = append(kinds, kind)
	}
	for _, kind := range kinds {
		all := &unstructured.UnstructuredList{}
		all.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		if err := l.api.List(l.t.Context(), all); err != nil {
			l.t.Fatal(err)
		}
		for i := range all.Items {
			add(&all.Items[i])
		}
	}
	return out
}

// TestFailedWritesDoNotChangeTheOutcomeOfALatticeJob: each write of each life fails in turn, before or after it takes
// effect, as if the operator was killed between any two. The objects and the outcome are those without the fault.
func TestFailedWritesDoNotChangeTheOutcomeOfALatticeJob(t *testing.T) {
	for name, life := range latticeLives {
		t.Run(name, func(t *testing.T) {
			good := newLatticeWorld(t, fault{}, slices.Clone(life.steps)).run()
			want := good.objects()
			members := 0
			for what := range want {
				if strings.HasPrefix(what, "LatticeMeshMember ") {
					members++
				}
			}
			if status := good.latticeJob().Status; status.Phase != life.ends || members != life.members {
				t.Fatalf("without a fault the job ends %s with %d LatticeMeshMembers, want %s and %d: %s", status.Phase, members,
					life.ends, life.members, status.Message)
			}
			for _, f := range faults(good.writes) {
				t.Run(f.String(), func(t *testing.T) {
					got := newLatticeWorld(t, f, slices.Clone(life.steps)).run()
					if diff := cmp.Diff(want, got.objects()); diff != "" {
						t.Errorf("the final objects differ (-fault-free +got):\n%s", diff)
					}
				})
			}
			good.checkNoMoreWrites(t)
		})
	}
}

// TestRefusedLabelIsReported by an event of the job: a policy may restrict which queues users may name.
func TestRefusedLabelIsReported(t *testing.T) {
	w := newLatticeWorld(t, fault{"change Job job #1", false,
		apierrors.NewForbidden(schema.GroupResource{Resource: "jobs"}, "job", errors.New("not your queue"))},
		[]func(*latticeWorld){setVCJobPhase(volcano.Pending, volcano.WaitingForQuota)}).run()
	w.edit(func(job *lattice.LatticeJob) { job.Labels = map[string]string{kueue.QueueLabel: "theirs"} })
	w.settle()
	if !slices.ContainsFunc(w.events.events, func(e string) bool {
		return strings.HasPrefix(e, "ApplyFailed: ") && strings.Contains(e, "not your queue")
	}) {
		t.Errorf("events = %q, want ApplyFailed with the policy's message", w.events.events)
	}
	if got := list[volcano.JobList](w.world).Items[0].Labels[kueue.QueueLabel]; got != "theirs" {
		t.Errorf("the change was not retried: the VCJob's queue is %q, want theirs", got)
	}
}

// TestAJobTooLargeToBeStoredFails at once, and leaves the service graph: no later try has another result.
func TestAJobTooLargeToBeStoredFails(t *testing.T) {
	tooLarge := &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: 500,
		Reason: metav1.StatusReasonUnknown, Message: "etcdserver: request is too large"}}
	const message = "Failed to compile job: one of its objects is too large to be stored (apply Job ns/job: etcdserver: request is too large): " +
		"give it fewer tasks, or move what is long in them into files"
	w := newLatticeWorld(t, fault{"create Job job #1", false, tooLarge}, nil).run()
	status := w.latticeJob().Status
	if status.Phase != lattice.Failed || status.Message != message {
		t.Errorf("the LatticeJob is %s with the message\n%s\nwant Failed with\n%s", status.Phase, status.Message, message)
	}
	if _, there := w.objects()["LatticeMeshMember job-t"]; there {
		t.Error("its task is in the service graph for ever")
	}
	if !slices.ContainsFunc(w.events.events, func(e string) bool { return strings.HasPrefix(e, "CompileFailed: ") }) {
		t.Errorf("events = %q, want CompileFailed", w.events.events)
	}

	// A spec that its user has made smaller in the meantime is tried.
	w = newLatticeWorld(t, fault{"create Job job #1", false, tooLarge}, nil)
	if result, err := w.reconciler.Reconcile(t.Context(),
		reconcile.Request{NamespacedName: client.ObjectKey{Namespace: "ns", Name: "job"}}); err != nil ||
		result.RequeueAfter == 0 {
		t.Fatalf("after a refused write: %+v, %v; want it tried again", result, err)
	}
	changeTask(grow)(w)
	w.run()
	if n := len(list[volcano.JobList](w.world).Items); n != 1 {
		t.Errorf("%d VCJobs of the changed job, want 1; its message is %q", n, w.latticeJob().Status.Message)
	}
}

// TestAJobTooLargeToBeStoredReturnsItsQuota that it was given before its VCJob was created.
func TestAJobTooLargeToBeStoredReturnsItsQuota(t *testing.T) {
	w := queueForVolcano(t)
	w.fault = fault{"create Job job #1", false, apierrors.NewRequestEntityTooLargeError("limit is 3145728")}
	w.admit()
	w.settle()
	if status := w.latticeJob().Status; status.Phase != lattice.Failed ||
		!meta.IsStatusConditionTrue(w.workload().Status.Conditions, kueue.WorkloadFinished) {
		t.Errorf("the LatticeJob is %s (%s) and its Workload has the conditions %+v, want Failed and Finished", status.Phase,
			status.Message, w.workload().Status.Conditions)
	}
}
