package jobs_test

import (
	"strings"
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
)

// podWorld is a world with one job ns/job instead of the JobSet, whose pods Muster creates itself, and with a kubelet.
type podWorld struct {
	*world
	// code is the exit code of a pod, by its name and attempt; nil for 0.
	code func(name, attempt string) int32
	// person does what people, and the queue, are still to do, in their turn.
	userAction func()
	// mayStart and mayEnd say whether the kubelet may start a pod, and end one.
	mayStart, mayEnd func(*corev1.Pod) bool
	// gone is told of each pod that is removed.
	onRemoved func()
}

// newPodWorld returns a world with the reconciler of an API.
func newPodWorld(t *testing.T, f fault, reconciler func(client.Client, *recorder, clock.PassiveClock) reconcile.Reconciler, objects ...client.Object) *podWorld {
	t.Helper()
	w := newWorld(t, f, objects...)
	w.job = "job"
	w.reconciler = reconciler(w.recordingClient(), w.events, w.clock)
	always := func(*corev1.Pod) bool { return true }
	return &podWorld{world: w, userAction: func() {}, mayStart: always, mayEnd: always, onRemoved: func() {}}
}

// of makes reconcilers of the API.
func of[T client.Object](api jobs.API[T]) func(client.Client, *recorder, clock.PassiveClock) reconcile.Reconciler {
	return func(c client.Client, events *recorder, clock clock.PassiveClock) reconcile.Reconciler {
		return jobs.NewReconciler(api, c, events, clock)
	}
}

// settle lets all controllers act in turn until none has anything left to do, not even later.
func (w *podWorld) settle() {
	w.t.Helper()
	for range 200 {
		before := w.changes
		due := w.reconcile().RequeueAfter
		w.admit()
		w.userAction()
		w.kubelet()
		if w.changes == before {
			if due == 0 {
				return
			}
			w.clock.SetTime(w.clock.Now().Add(due))
		}
	}
	w.t.Fatalf("no end is in sight; the last writes:\n%s", strings.Join(w.writes[max(0, len(w.writes)-20):], "\n"))
}

// kubelet moves every pod one step on.
func (w *podWorld) kubelet() {
	for _, pod := range list[corev1.PodList](w.world).Items {
		s := &pod.Status
		at := metav1.NewTime(epoch)
		switch {
		case !pod.DeletionTimestamp.IsZero():
			w.changes++
			pod.Finalizers = nil
			if err := w.api.Update(w.t.Context(), &pod); client.IgnoreNotFound(err) != nil {
				w.t.Fatal(err)
			}
			w.onRemoved()
			continue
		case s.Phase == corev1.PodSucceeded || s.Phase == corev1.PodFailed:
			continue
		case s.Phase != corev1.PodRunning && w.mayStart(&pod):
			s.Phase = corev1.PodRunning
			s.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
			s.ContainerStatuses = []corev1.ContainerStatus{{Name: "c", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at}}}}
		case s.Phase != corev1.PodRunning || !w.mayEnd(&pod):
			continue
		default:
			w.end(&pod)
			continue
		}
		w.updateStatus(&pod)
	}
}

// end ends a pod with its exit code.
func (w *podWorld) end(pod *corev1.Pod) {
	var code int32
	if w.code != nil {
		code = w.code(pod.Name, pod.Annotations[muster.RestartsAnnotation])
	}
	s := &pod.Status
	s.Phase, s.Conditions = corev1.PodSucceeded, nil
	if code != 0 {
		s.Phase = corev1.PodFailed
	}
	s.ContainerStatuses = []corev1.ContainerStatus{{Name: "c", State: corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{ExitCode: code, FinishedAt: metav1.NewTime(epoch)}}}}
	w.updateStatus(pod)
}

// evict evicts the job.
func (w *podWorld) evict() {
	wl := w.workload()
	meta.SetStatusCondition(&wl.Status.Conditions, metav1.Condition{Type: kueue.WorkloadEvicted, Status: metav1.ConditionTrue,
		Reason: kueue.WorkloadEvictedByPreemption, Message: "because", LastTransitionTime: metav1.NewTime(epoch)})
	w.updateStatus(wl)
}

// workload is the only one.
func (w *podWorld) workload() *kueue.Workload {
	w.t.Helper()
	all := list[kueue.WorkloadList](w.world).Items
	if len(all) != 1 {
		w.t.Fatalf("there are %d Workloads", len(all))
	}
	return &all[0]
}

// otherObjects returns all other objects of the cluster, without resourceVersions and times.
type otherObjects struct {
	Pods      []corev1.Pod
	Services  []corev1.Service
	Workloads []kueue.Workload
}

func (w *podWorld) otherObjects() otherObjects {
	s := otherObjects{list[corev1.PodList](w.world).Items, list[corev1.ServiceList](w.world).Items, list[kueue.WorkloadList](w.world).Items}
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
		for j := range s.Workloads[i].Status.Conditions {
			s.Workloads[i].Status.Conditions[j].LastTransitionTime = metav1.Time{}
		}
	}
	return s
}

// isOver checks that all Workloads are finished and have no finalizer.
func (s otherObjects) checkFinished(t *testing.T) {
	t.Helper()
	for _, w := range s.Workloads {
		if !meta.IsStatusConditionTrue(w.Status.Conditions, kueue.WorkloadFinished) || len(w.Finalizers) != 0 {
			t.Fatalf("its Workload is not over: %+v", w)
		}
	}
}

// testFailedWrites runs a life with each of its writes failing in turn, with each error, before or after
// it takes effect. The job ends in the same way, and each pod and every other object is created as often as without the
// fault.
func testFailedWrites[S any](t *testing.T, live func(*testing.T, fault) (*podWorld, S)) (S, otherObjects) {
	t.Helper()
	good, want := live(t, fault{})
	beside := good.otherObjects()
	beside.checkFinished(t)
	for _, f := range faults(good.writes) {
		t.Run(f.String(), func(t *testing.T) {
			w, got := live(t, f)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("the end is another (-fault-free +got):\n%s", diff)
			}
			if diff := cmp.Diff(beside, w.otherObjects()); diff != "" {
				t.Errorf("the end is another (-fault-free +got):\n%s", diff)
			}
			if diff := cmp.Diff(good.created, w.created); diff != "" {
				t.Errorf("made how often (-fault-free +got):\n%s", diff)
			}
		})
	}
	return want, beside
}

// checkNoMoreWrites checks that reconciles write nothing once the life is over.
func (w *world) checkNoMoreWrites(t *testing.T) {
	t.Helper()
	before := len(w.writes)
	for range 3 {
		w.reconcile()
	}
	if got := w.writes[before:]; len(got) != 0 {
		t.Errorf("wrote %v", got)
	}
}

// String says which write fails, when and by which error.
func (f fault) String() string {
	when := "before"
	if f.after {
		when = "after"
	}
	return f.write + ", " + when + " it took effect, " + string(apierrors.ReasonForError(f.err))
}
