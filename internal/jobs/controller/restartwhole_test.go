package controller_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/batchjob"
	"github.com/musterhq/muster/internal/jobs/controller"
)

// wholeWorld is a batchWorld with an Indexed Job that restarts as a whole. Index 0 is done each time before an
// eviction. The pods of done indexes exist. The Job controller lets go of each some turns after it was deleted, and
// until then counts its index as done.
type wholeWorld struct {
	*batchWorld
	// restarts says that the operator loses its memory with the fault.
	restarts bool
	// lives counts the admissions, done the pods of done indexes, and turns those since one of them was deleted.
	lives, done, turns int
}

func newWholeWorld(t *testing.T, f fault, restarts bool, evictions int) *wholeWorld {
	job := newBatchJob("cq", true)
	job.Annotations[muster.RestartWholeAnnotation] = "true"
	job.Spec.CompletionMode = ptr.To(batchv1.IndexedCompletion)
	job.Spec.Parallelism, job.Spec.Completions = ptr.To[int32](3), ptr.To[int32](3)
	return &wholeWorld{batchWorld: newBatchWorld(t, f, job, evictions), restarts: restarts}
}

// settle runs all controllers in turn until none of them writes any more.
func (w *wholeWorld) settle() {
	w.t.Helper()
	for range 200 {
		before := w.changes
		result := w.reconcile()
		if w.restarts && w.faultFiredEver() {
			w.restarts, w.reconciler = false, controller.NewReconciler(batchjob.API, w.recordingClient(), w.events, w.clock)
		}
		w.startWhole()
		w.evictPartly()
		w.runIndexes()
		switch {
		case w.changes != before:
		case result.RequeueAfter > 0 && result.RequeueAfter <= time.Second:
			w.clock.SetTime(w.clock.Now().Add(result.RequeueAfter))
		default:
			return
		}
	}
	w.failUnsettled()
}

// faultFiredEver reports whether the write of the fault was tried.
func (w *wholeWorld) faultFiredEver() bool { return slices.Contains(w.writes, w.fault.write) }

// startWhole admits the Workload, and checks that it is for all pods, none of which is done.
func (w *wholeWorld) startWhole() {
	w.t.Helper()
	for _, wl := range list[kueue.WorkloadList](w.world).Items {
		if wl.Status.Admission != nil || meta.IsStatusConditionTrue(wl.Status.Conditions, kueue.WorkloadFinished) {
			continue
		}
		w.lives++
		job := w.batchJob()
		if len(wl.Status.ReclaimablePods) > 0 || wl.Spec.PodSets[0].Count != 3 {
			w.t.Errorf("admission %d: asked for %d pods less %v, want 3", w.lives, wl.Spec.PodSets[0].Count,
				wl.Status.ReclaimablePods)
		}
		if pods := list[corev1.PodList](w.world).Items; job.Status.CompletedIndexes != "" ||
			job.Status.Succeeded != 0 || len(pods) > 0 {
			w.t.Errorf("admission %d: indexes %q are done, and %d pods are left; want none", w.lives,
				job.Status.CompletedIndexes, len(pods))
		}
	}
	w.admit()
}

// evictPartly evicts the Job once index 0 is done and its quota was returned.
func (w *wholeWorld) evictPartly() {
	for _, wl := range list[kueue.WorkloadList](w.world).Items {
		if w.evictions > 0 && wl.Status.Admission != nil && len(wl.Status.ReclaimablePods) > 0 &&
			!meta.IsStatusConditionTrue(wl.Status.Conditions, kueue.WorkloadEvicted) {
			w.evictions--
			w.evictWorkload(&wl)
		}
	}
}

// runIndexes acts as the Job controller. While an eviction is to come, index 0 alone ends.
func (w *wholeWorld) runIndexes() {
	held := w.letGo()
	job := w.batchJob()
	s := &job.Status
	partly := w.evictions > 0 && ptr.Deref(s.Ready, 0) == 3
	switch {
	case held && s.CompletedIndexes == "":
		s.CompletedIndexes, s.Succeeded = "0", 1
		w.updateStatus(job)
		w.t.Error("the Job was restarted while a done pod of its last life had its finalizer: it is counted again")
	case partly && s.CompletedIndexes == "":
		w.done++
		w.put(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("job-0-%d", w.done), Namespace: "ns",
			UID:             types.UID(fmt.Sprintf("pod%d", w.done)),
			Labels:          map[string]string{batchv1.ControllerUidLabel: string(job.UID)},
			Finalizers:      []string{batchv1.JobTrackingFinalizer},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job"))}},
			Status: corev1.PodStatus{Phase: corev1.PodSucceeded}})
		s.CompletedIndexes, s.Succeeded, s.Active, s.Ready = "0", 1, 2, ptr.To[int32](2)
		w.updateStatus(job)
	case s.CompletedIndexes == "0" && !*job.Spec.Suspend:
		// The others wait for index 0.
	default:
		w.runJob()
	}
}

// letGo removes the Job controller's finalizer from done pods in the third turn after they were deleted. It reports
// whether a pod has it still.
func (w *wholeWorld) letGo() (held bool) {
	for _, pod := range list[corev1.PodList](w.world).Items {
		if pod.DeletionTimestamp != nil {
			w.turns++
			w.changes++
		}
		if held = w.turns < 3; !held {
			pod.Finalizers, w.turns = nil, 0
			if err := w.api.Update(w.t.Context(), &pod); client.IgnoreNotFound(err) != nil {
				w.t.Fatal(err)
			}
		}
	}
	return held
}

// atAnyTime compares states that a fault may have delayed.
var atAnyTime = cmp.Options{cmpopts.IgnoreTypes(metav1.Time{}),
	cmpopts.IgnoreFields(kueue.WorkloadStatus{}, "AccumulatedPastExexcutionTimeSeconds")}

// TestFailedWritesDoNotKeepAJobFromItsRestart: each write of the life of a Job that restarts as a whole fails in turn,
// before or after it takes effect, with an operator that lives on or ends. It is admitted each time for all of its
// pods, and its end is that without the fault.
func TestFailedWritesDoNotKeepAJobFromItsRestart(t *testing.T) {
	live := func(t *testing.T, f fault, restarts bool) *wholeWorld {
		w := newWholeWorld(t, f, restarts, 2)
		w.settle()
		if w.lives != 3 || w.done != 2 {
			t.Errorf("admitted %d times, %d times partly done; want 3 and 2", w.lives, w.done)
		}
		return w
	}
	good := live(t, fault{}, false)
	want := good.state()
	if done := want.Jobs[0].Status; len(done.Conditions) != 1 || done.Conditions[0].Type != batchv1.JobComplete ||
		done.Succeeded != 3 {
		t.Fatalf("without a fault the Job did not complete: %+v", done)
	}
	if !slices.Contains(good.writes, "delete Pod job-0-1 #1") || !slices.Contains(good.writes, "status Job job #1") {
		t.Fatalf("writes %v, want a deleted pod and a changed status", good.writes)
	}
	for _, f := range faults(good.writes) {
		for _, restarts := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, restarts %t", f, restarts), func(t *testing.T) {
				t.Parallel()
				if diff := cmp.Diff(want, live(t, f, restarts).state(), atAnyTime); diff != "" {
					t.Errorf("the final state differs (-fault-free +got):\n%s", diff)
				}
			})
		}
	}
}

// TestAJobWhoseRestartIsRefusedGoesOn: a policy of the cluster forbids it. The Job returns its quota, and runs the
// rest; an event says why.
func TestAJobWhoseRestartIsRefusedGoesOn(t *testing.T) {
	for _, write := range []string{"status Job", "delete Pod"} {
		t.Run(write, func(t *testing.T) {
			w := newWholeWorld(t, fault{}, false, 1)
			w.forbids = func(what string) error {
				if strings.HasPrefix(what, write) {
					return apierrors.NewForbidden(schema.GroupResource{Resource: "jobs"}, "job", fmt.Errorf("a policy"))
				}
				return nil
			}
			for range 40 {
				w.clock.SetTime(w.clock.Now().Add(time.Second))
				w.reconcile()
				w.admit()
				w.evictPartly()
				w.runIndexes()
			}
			job, wl := w.batchJob(), list[kueue.WorkloadList](w.world).Items[0]
			if *job.Spec.Suspend || job.Status.CompletedIndexes != "0" || wl.Status.Admission == nil || w.evictions != 0 {
				t.Errorf("suspended %t, indexes %q done, admission %v; want the rest to run", *job.Spec.Suspend,
					job.Status.CompletedIndexes, wl.Status.Admission)
			}
			if !slices.ContainsFunc(w.events.events,
				func(e string) bool { return strings.HasPrefix(e, jobs.RestartWholeRefusedReason+": ") }) {
				t.Errorf("events %v, want one that says what is refused", w.events.events)
			}
		})
	}
}

// TestFailedWritesDoNotKeepAJobSetFromItsRestart: as for a Job; a worker of the JobSet is done before its eviction, and
// is created again.
func TestFailedWritesDoNotKeepAJobSetFromItsRestart(t *testing.T) {
	live := func(t *testing.T, f fault) *world {
		js := newJobSet("cq")
		js.Annotations = map[string]string{muster.RestartWholeAnnotation: "true"}
		w := newWorld(t, f, js, clusterQueue("cq"), flavor())
		evictions := 1
		w.fate = func(job *batchv1.Job) batchv1.JobConditionType {
			if job.Name == "js-workers-0" || w.created["Job js-workers-0"] == 2 {
				return batchv1.JobComplete
			}
			return ""
		}
		for range 100 {
			before := w.changes
			result := w.reconcile()
			w.collectGarbage()
			for _, wl := range list[kueue.WorkloadList](w).Items {
				if wl.Status.Admission == nil && len(wl.Status.ReclaimablePods) > 0 {
					t.Errorf("asked for fewer pods: %v", wl.Status.ReclaimablePods)
				}
				if evictions > 0 && wl.Status.Admission != nil && len(wl.Status.ReclaimablePods) > 0 {
					evictions--
					w.evictWorkload(&wl)
				}
			}
			w.admit()
			w.runJobs()
			switch {
			case w.changes != before:
			case result.RequeueAfter > 0 && result.RequeueAfter <= time.Second:
				w.clock.SetTime(w.clock.Now().Add(result.RequeueAfter))
			default:
				return w
			}
		}
		w.failUnsettled()
		return nil
	}
	good := live(t, fault{})
	want := good.state()
	if good.outcome() != string(jobset.JobSetCompleted) || good.created["Job js-workers-0"] != 2 ||
		good.created["Job js-workers-1"] != 1 {
		t.Fatalf("without a fault it ended %q, with created %v; want it completed, and the worker that was done created twice",
			good.outcome(), good.created)
	}
	for _, f := range faults(good.writes) {
		t.Run(f.String(), func(t *testing.T) {
			t.Parallel()
			w := live(t, f)
			if diff := cmp.Diff(want, w.state(), atAnyTime); diff != "" {
				t.Errorf("the final state differs (-fault-free +got):\n%s", diff)
			}
			if diff := cmp.Diff(good.created, w.created); diff != "" {
				t.Errorf("created (-fault-free +got):\n%s", diff)
			}
		})
	}
}
