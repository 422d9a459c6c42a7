package controller_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/controller"
	"github.com/musterhq/muster/internal/workload"
)

// podWorld is a world with one job ns/job instead of the JobSet, whose pods Muster creates itself, and with a kubelet.
type podWorld struct {
	*world
	// code is the exit code of a pod, by its name and attempt; nil for 0.
	code func(name, attempt string) int32
	// userAction does what users, and the queue, are still to do.
	userAction func()
	// mayStart and mayEnd report whether the kubelet may start and end a pod.
	mayStart, mayEnd func(*corev1.Pod) bool
	// onRemoved is called for each pod that is removed.
	onRemoved func()
}

// newPodWorld returns a world with the objects and the reconciler, in which the fault occurs.
func newPodWorld(t *testing.T, f fault,
	reconciler func(client.Client, *recorder, clock.PassiveClock) reconcile.Reconciler,
	objects ...client.Object) *podWorld {
	t.Helper()
	w := newWorld(t, f, objects...)
	w.job = "job"
	w.reconciler = reconciler(w.recordingClient(), w.events, w.clock)
	always := func(*corev1.Pod) bool { return true }
	return &podWorld{world: w, userAction: func() {}, mayStart: always, mayEnd: always, onRemoved: func() {}}
}

// of returns a function that creates the reconciler of the API.
func of[T client.Object](api jobs.API[T]) func(client.Client, *recorder, clock.PassiveClock) reconcile.Reconciler {
	return func(c client.Client, events *recorder, clock clock.PassiveClock) reconcile.Reconciler {
		return controller.NewReconciler(api, c, events, clock)
	}
}

// settle runs all controllers in turn, and advances the clock to what is due, until none of them writes any more.
func (p *podWorld) settle() {
	p.t.Helper()
	for range 200 {
		before := p.changes
		due := p.reconcile().RequeueAfter
		p.admit()
		p.userAction()
		p.kubelet()
		if p.changes == before {
			if due == 0 {
				return
			}
			p.clock.SetTime(p.clock.Now().Add(due))
		}
	}
	p.failUnsettled()
}

// kubelet moves every pod one step on: it runs and is ready, it ends; a deleted pod is removed.
func (p *podWorld) kubelet() {
	for _, pod := range list[corev1.PodList](p.world).Items {
		s := &pod.Status
		at := metav1.NewTime(epoch)
		switch {
		case !pod.DeletionTimestamp.IsZero():
			p.changes++
			pod.Finalizers = nil
			if err := p.api.Update(p.t.Context(), &pod); client.IgnoreNotFound(err) != nil {
				p.t.Fatal(err)
			}
			p.onRemoved()
			continue
		case s.Phase == corev1.PodSucceeded || s.Phase == corev1.PodFailed:
			continue
		case s.Phase != corev1.PodRunning && p.mayStart(&pod):
			s.Phase = corev1.PodRunning
			s.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
			s.ContainerStatuses = []corev1.ContainerStatus{{Name: "c",
				State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at}}}}
		case s.Phase != corev1.PodRunning || !p.mayEnd(&pod):
			continue
		default:
			p.end(&pod)
			continue
		}
		p.updateStatus(&pod)
	}
}

// end ends a pod with its exit code.
func (p *podWorld) end(pod *corev1.Pod) {
	var code int32
	if p.code != nil {
		code = p.code(pod.Name, pod.Annotations[muster.RestartsAnnotation])
	}
	s := &pod.Status
	s.Phase, s.Conditions = corev1.PodSucceeded, nil
	if code != 0 {
		s.Phase = corev1.PodFailed
	}
	s.ContainerStatuses = []corev1.ContainerStatus{{Name: "c", State: corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{ExitCode: code, FinishedAt: metav1.NewTime(epoch)}}}}
	p.updateStatus(pod)
}

// evict evicts the job.
func (p *podWorld) evict() {
	p.evictWorkload(p.workload())
}

// workload returns the only Workload.
func (p *podWorld) workload() *kueue.Workload {
	p.t.Helper()
	all := list[kueue.WorkloadList](p.world).Items
	if len(all) != 1 {
		p.t.Fatalf("there are %d Workloads, want 1", len(all))
	}
	return &all[0]
}

// otherObjects holds all objects of the cluster besides the job, without resourceVersions and times, and of finished
// Workloads without whether their pods were last ready: that depends on when the job was reconciled while they ended.
type otherObjects struct {
	Pods      []corev1.Pod
	Services  []corev1.Service
	Workloads []kueue.Workload
}

func (p *podWorld) otherObjects() otherObjects {
	s := otherObjects{list[corev1.PodList](p.world).Items, list[corev1.ServiceList](p.world).Items,
		list[kueue.WorkloadList](p.world).Items}
	for i := range s.Pods {
		s.Pods[i].ResourceVersion = ""
	}
	for i := range s.Services {
		s.Services[i].ResourceVersion = ""
	}
	for i := range s.Workloads {
		s.Workloads[i].ResourceVersion = ""
		if delete(s.Workloads[i].Annotations, muster.QueuedTimeAnnotation); len(s.Workloads[i].Annotations) == 0 {
			s.Workloads[i].Annotations = nil
		}
		if workload.IsFinished(&s.Workloads[i]) {
			meta.RemoveStatusCondition(&s.Workloads[i].Status.Conditions, kueue.WorkloadPodsReady)
		}
		for j := range s.Workloads[i].Status.Conditions {
			s.Workloads[i].Status.Conditions[j].LastTransitionTime = metav1.Time{}
		}
	}
	return s
}

// checkFinished checks that all Workloads are finished and have no finalizer.
func (o otherObjects) checkFinished(t *testing.T) {
	t.Helper()
	for _, w := range o.Workloads {
		if !meta.IsStatusConditionTrue(w.Status.Conditions, kueue.WorkloadFinished) || len(w.Finalizers) != 0 {
			t.Fatalf("the Workload is not finished, or has finalizers: %+v", w)
		}
	}
}

// testFailedWrites calls run, which goes through a life and returns the world and the job's final state, without a
// fault, and then with each write failing in turn, with each error, before or after it takes effect. It checks that the
// final state is the same and that each object is created as often as without the fault, and returns that state.
func testFailedWrites[S any](t *testing.T, run func(*testing.T, fault) (*podWorld, S)) (S, otherObjects) {
	t.Helper()
	good, want := run(t, fault{})
	others := good.otherObjects()
	others.checkFinished(t)
	for _, f := range faults(good.writes) {
		t.Run(f.String(), func(t *testing.T) {
			w, got := run(t, f)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("the job's final state differs (-fault-free +got):\n%s", diff)
			}
			if diff := cmp.Diff(others, w.otherObjects()); diff != "" {
				t.Errorf("the other objects differ (-fault-free +got):\n%s", diff)
			}
			if diff := cmp.Diff(good.created, w.created); diff != "" {
				t.Errorf("numbers of creates (-fault-free +got):\n%s", diff)
			}
		})
	}
	return want, others
}

// checkNoMoreWrites checks that further reconciles write nothing.
func (w *world) checkNoMoreWrites(t *testing.T) {
	t.Helper()
	before := len(w.writes)
	for range 3 {
		w.reconcile()
	}
	if got := w.writes[before:]; len(got) != 0 {
		t.Errorf("writes = %v, want none", got)
	}
}

// String returns which write fails, when and with which error.
func (f fault) String() string {
	when := "before"
	if f.after {
		when = "after"
	}
	return f.write + ", " + when + " it took effect, " + string(apierrors.ReasonForError(f.err))
}
