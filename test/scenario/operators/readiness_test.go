package operators

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/test/scenario/harness"
)

// TestWhichAdmissionsWaitForReadyPods: those of the queue concerned, or everybody's, one after the other.
func TestWhichAdmissionsWaitForReadyPods(t *testing.T) {
	for block, of := range map[string]string{"Queue": " of ClusterQueue ", "All": " to be in PodsReady condition"} {
		otherWaits := block == "All"
		t.Run(block, func(t *testing.T) {
			w, beside := newWorld(t), newWorld(t)
			w.podQueue(8)
			beside.podQueue(8)
			w.Create(&kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Name: "beside", Namespace: w.Namespace},
				Spec: kueue.LocalQueueSpec{ClusterQueue: kueue.ClusterQueueReference(beside.Namespace)}})
			w.operate(w.configured("waitForPodsReady: {blockAdmission: " + block + "}"))
			first := w.Job("first", "q", 1)
			w.UntilHeld(first, true)
			w.Create(first)
			w.UntilJob("first", "runs", harness.Running(1))

			waits := harness.Waits(kueue.WorkloadWaitingForPodsReady, "waiting for all admitted workloads"+of)
			second := w.Job("second", "q", 1)
			second.Spec.Template.Finalizers = []string{lasting}
			w.Create(second)
			w.UntilWorkloadOf("second", "waits", waits)
			w.Create(w.Job("other", "beside", 1))
			if !otherWaits {
				w.UntilWorkloadOf("other", "runs", runs)
				w.run("first", 1)
				w.UntilWorkloadOf("second", "runs", runs)
				w.passesOver("second")
				return
			}
			w.UntilWorkloadOf("other", "waits", waits)
			last := "first"
			for left := []string{"second", "other"}; len(left) > 0; left = slices.DeleteFunc(left,
				func(name string) bool { return name == last }) {
				w.run(last, 1)
				last = w.next(left)
			}
		})
	}
}

// passesOver: nobody waits for the pods of a Job that is deleted, which never will be ready, though they are there yet.
func (w *world) passesOver(job string) {
	w.Helper()
	pods := w.UntilPodsOf(job, 1)
	w.Delete(w.Job(job, "q", 1))
	w.UntilWorkloadOf(job, "is deleted, and holds its quota",
		func(o *kueue.Workload) bool { return !o.DeletionTimestamp.IsZero() && o.Status.Admission != nil })
	w.Create(w.Job("third", "q", 1))
	w.UntilWorkloadOf("third", "runs", runs)
	w.Patch(&pods[0], `{"metadata": {"finalizers": null}}`) // else its namespace, and all that is in it, stays
}

// next waits until one of the Jobs is admitted, and gives it. The others may not be.
func (w *world) next(jobs []string) (next string) {
	w.Helper()
	harness.Until(w.World, &kueue.WorkloadList{}, fmt.Sprintf("one of %v is admitted", jobs),
		func(list *kueue.WorkloadList) bool {
			var admitted []string
			for _, o := range list.Items {
				if name := metav1.GetControllerOf(&o).Name; slices.Contains(jobs, name) && o.Status.Admission != nil {
					admitted = append(admitted, name)
				}
			}
			if len(admitted) > 1 {
				w.Fatalf("%v were admitted at once", admitted)
			}
			next = strings.Join(admitted, "")
			return next != ""
		})
	return next
}

// TestQueueOrderAfterAPodsReadyTimeout: behind who waits, or where it was.
func TestQueueOrderAfterAPodsReadyTimeout(t *testing.T) {
	for timestamp, first := range map[string]string{"Eviction": "other", "Creation": "late"} {
		t.Run("by "+timestamp, func(t *testing.T) {
			w := newWorld(t)
			w.podQueue(1)
			// Their times are said, so that it does not matter within which second they are made.
			for i, name := range []string{"late", "between", "other"} {
				o := w.Workload(name, "q")
				at := time.Now().Add(time.Duration(i-10) * time.Hour)
				o.Annotations = map[string]string{muster.QueuedTimeAnnotation: at.UTC().Format(time.RFC3339)}
				w.Create(o)
			}
			w.operate(w.configured(fmt.Sprintf(
				"waitForPodsReady: {timeout: 1s, requeuingStrategy: {timestamp: %s, backoffBaseSeconds: 1}}", timestamp)))
			w.UntilWorkload("late", "runs", runs)
			w.Report("late", kueue.WorkloadPodsReady, metav1.ConditionFalse, kueue.WorkloadWaitForStart)
			w.UntilWorkload("between", "runs in its place", runs) // nobody says of it that it is not ready
			w.UntilWorkload("late", "is back in its queue", func(o *kueue.Workload) bool {
				return o.Status.Admission == nil &&
					is(o, kueue.WorkloadRequeued, metav1.ConditionTrue, kueue.WorkloadBackoffFinished)
			})
			w.Report("between", kueue.WorkloadFinished, metav1.ConditionTrue, kueue.WorkloadFinishedReasonSucceeded)
			harness.Until(w.World, &kueue.WorkloadList{}, first+" is next", func(list *kueue.WorkloadList) bool {
				for i := range list.Items {
					if o := &list.Items[i]; o.Name != "between" && o.Status.Admission != nil {
						if o.Name != first {
							t.Fatalf("%s is next", o.Name)
						}
						return true
					}
				}
				return false
			})
		})
	}
}

// TestAfterTheStart: what becomes of Jobs whose pods were ready, where little time is given to recover, and finished
// Workloads are kept for a short time.
func TestAfterTheStart(t *testing.T) {
	all := newWorld(t)
	all.podQueue(8)
	all.operate(all.configured(`
waitForPodsReady: {timeout: 30m, recoveryTimeout: 1s, requeuingStrategy: {backoffBaseSeconds: 1}}
objectRetentionPolicies: {workloads: {afterFinished: 1s}}
`))
	all.UntilHeld(all.Job("any", "q", 1), true)
	t.Run("who loses a pod must recover in time", func(t *testing.T) { (&world{all.In(t)}).recovers() })
	t.Run("a Job outlives its Workload", func(t *testing.T) { (&world{all.In(t)}).outlives() })
}

// recovers: a pod that failed is replaced, the new one is not ready in time, and the whole Job starts anew.
func (w *world) recovers() {
	history := harness.Record(w.World)
	job := w.Job("job", "q", 2)
	job.Spec.BackoffLimit = ptr.To[int32](10)
	w.Create(job)
	pods := w.run("job", 2)
	w.UntilWorkloadOf("job", "is ready",
		func(o *kueue.Workload) bool { return is(o, kueue.WorkloadPodsReady, "True", kueue.WorkloadStarted) })
	w.SetPodStatus(pods[0], corev1.PodFailed, 1)
	again := w.UntilWorkloadOf("job", "runs again after its back-off", func(o *kueue.Workload) bool {
		return runs(o) && is(o, kueue.WorkloadRequeued, "True", kueue.WorkloadBackoffFinished)
	})
	for _, pod := range w.run("job", 2) {
		if pod.UID == pods[0].UID || pod.UID == pods[1].UID {
			w.Errorf("%s is of its first run", pod.Name)
		}
	}
	history.WaitFor(w.UntilWorkloadOf("job", "is ready again", func(o *kueue.Workload) bool {
		return is(o, kueue.WorkloadPodsReady, "True", kueue.WorkloadStarted)
	}))
	const ready = "True Started: All pods reached readiness and the workload is running"
	if diff := cmp.Diff([]string{ready, "False WaitForRecovery: At least one pod has failed, waiting for recovery", ready},
		history.Conditions("job", kueue.WorkloadPodsReady)); diff != "" {
		w.Errorf("PodsReady (-want +got):\n%s", diff)
	}
	want := []kueue.WorkloadSchedulingStatsEviction{{Reason: kueue.WorkloadEvictedByPodsReadyTimeout,
		UnderlyingCause: kueue.WorkloadWaitForRecovery, Count: 1}}
	if diff := cmp.Diff(want, again.Status.SchedulingStats.Evictions); diff != "" {
		w.Errorf("evictions (-want +got):\n%s", diff)
	}
}

// outlives: and does not queue again, whatever brings it to the operator's mind.
func (w *world) outlives() {
	history := harness.Record(w.World)
	short := w.Job("short", "q", 2)
	w.Create(short)
	for _, pod := range w.UntilPodsOf("short", 2) {
		w.SetPodStatus(pod, corev1.PodSucceeded, 0)
	}
	if over := history.UntilDeleted("short"); !is(over, kueue.WorkloadFinished, "True",
		kueue.WorkloadFinishedReasonSucceeded) {
		w.Errorf("its Workload went with %+v", over.Status.Conditions)
	}
	w.Patch(short, `{"metadata": {"labels": {"example.com/seen": "true"}}}`)
	w.Create(w.Job("later", "q", 1))
	w.UntilWorkloadOf("later", "runs", runs)
	if kept := w.UntilJob("short", "is kept", func(*batchv1.Job) bool { return true }); kept.Status.Succeeded != 2 ||
		*kept.Spec.Suspend {
		w.Errorf("it has become %+v, suspended %t", kept.Status, *kept.Spec.Suspend)
	}
	harness.Until(w.World, &kueue.WorkloadList{}, "it has no Workload", func(list *kueue.WorkloadList) bool {
		for _, o := range list.Items {
			if metav1.IsControlledBy(&o, short) {
				w.Fatalf("it queues again as %s", o.Name)
			}
		}
		return true
	})
}
