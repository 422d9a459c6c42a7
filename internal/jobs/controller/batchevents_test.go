package controller_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/jobs/batchjob"
	"github.com/musterhq/muster/internal/jobs/controller"
	"github.com/musterhq/muster/internal/workload"
)

// dropping is a recorder that drops events while it is busy.
type dropping struct {
	*recorder
	busy bool
}

func (d *dropping) TryEventf(regarding, related runtime.Object, kind, reason, action, note string, args ...any) bool {
	if !d.busy {
		d.Eventf(regarding, related, kind, reason, action, note, args...)
	}
	return !d.busy
}

// TestStartFailureIsReportedOnceTheRecorderHasCapacity, though the Workload has finished by then. Each operator process
// reports it once.
func TestStartFailureIsReportedOnceTheRecorderHasCapacity(t *testing.T) {
	job := newBatchJob("cq", true)
	job.Spec.Template.Spec.NodeSelector = map[string]string{"rack": "a"}
	w := newBatchWorld(t, fault{}, job, 0)
	events := &dropping{recorder: w.events, busy: true}
	operator := func() { w.reconciler = controller.NewReconciler(batchjob.API, w.recordingClient(), events, w.clock) }
	operator()
	w.reconcile()
	w.admit()
	given := list[kueue.WorkloadList](w.world).Items[0]
	given.Status.AdmissionChecks = []kueue.AdmissionCheckState{{Name: "budget", State: kueue.CheckStateReady,
		LastTransitionTime: metav1.NewTime(epoch),
		PodSetUpdates:      []kueue.PodSetUpdate{{Name: "main", NodeSelector: map[string]string{"rack": "b"}}}}}
	w.updateStatus(&given)
	w.reconcile()
	if again := w.reconcile().RequeueAfter; again <= 0 || again > time.Minute {
		t.Errorf("the Job is requeued after %s, want at most a minute", again)
	}
	timesReported := func() (n int) {
		w.reconcile()
		for _, event := range w.events.events {
			if strings.HasPrefix(event, "FailedToStart: No pods can be started: the admission check budget") {
				n++
			}
		}
		return n
	}
	if got := timesReported(); got != 0 {
		t.Errorf("reported %d times while the recorder is busy, want 0", got)
	}
	if ended := list[kueue.WorkloadList](w.world).Items[0]; !workload.IsFinished(&ended) {
		t.Fatalf("the Workload is not finished: %+v", ended.Status.Conditions)
	}
	events.busy = false
	for range 2 {
		if got := timesReported(); got != 1 {
			t.Errorf("reported %d times, want once: %v", got, w.events.events)
		}
	}
	operator()
	for range 2 {
		if got := timesReported(); got != 2 {
			t.Errorf("reported %d times by two operators, want twice: %v", got, w.events.events)
		}
	}
}

// TestQueueChangeOfARunningJobIsReportedAsDeferred: one event says so, and the change takes effect when the job is
// queued again.
func TestQueueChangeOfARunningJobIsReportedAsDeferred(t *testing.T) {
	w := newBatchWorld(t, fault{}, newBatchJob("cq", true), 0)
	w.reconcile()
	w.admit()
	changeQueue := func(queue string) (reported []string) {
		changed := w.batchJob()
		changed.Labels[kueue.QueueLabel] = queue
		if err := w.api.Update(t.Context(), changed); err != nil {
			t.Fatal(err)
		}
		w.reconcile()
		w.reconcile()
		for _, event := range w.events.events {
			if strings.HasPrefix(event, "QueueChangesLater") {
				reported = append(reported, event)
			}
		}
		return reported
	}
	if got := changeQueue("cq"); len(got) != 0 {
		t.Errorf("events = %v, want none while the queue is the same", got)
	}
	if got := changeQueue("another"); len(got) != 1 || !strings.Contains(got[0], "stays in queue cq") ||
		!strings.Contains(got[0], "moves to queue another") {
		t.Errorf("events = %v, want one that names both queues", got)
	}
	held := list[kueue.WorkloadList](w.world).Items[0]
	workload.Evict(&held, workload.Eviction{Reason: kueue.WorkloadEvictedByPreemption, Message: "for another"}, epoch)
	w.updateStatus(&held)
	if got := changeQueue("third"); len(got) != 1 {
		t.Errorf("events = %v, want no other one for an evicted job", got)
	}
	for range 10 { // it is not admitted meanwhile
		w.reconcile()
		w.runJob()
	}
	if got := list[kueue.WorkloadList](w.world).Items[0].Spec.QueueName; got != "third" {
		t.Errorf("the evicted job waits in queue %s, want third", got)
	}
}

// TestNoStandingEventAfterAConflict: the events of a plan that met a conflict are not recorded, since it assumed quota
// that the job had just lost.
func TestNoStandingEventAfterAConflict(t *testing.T) {
	w := newBatchWorld(t, fault{}, newBatchJob("cq", true), 0)
	w.reconcile()
	w.admit()
	w.reconcile()
	for ptr.Deref(w.batchJob().Status.Ready, 0) == 0 { // so that the Workload's PodsReady has to be written
		w.runJob()
	}
	changed := w.batchJob()
	changed.Labels[kueue.QueueLabel] = "another"
	if err := w.api.Update(t.Context(), changed); err != nil {
		t.Fatal(err)
	}
	held := list[kueue.WorkloadList](w.world).Items[0]
	w.fault = fault{write: fmt.Sprintf("status Workload %s #%d", held.Name, w.seen["status Workload "+held.Name]+1),
		err: apierrors.NewConflict(kueue.Resource("workloads"), held.Name, errors.New("changed since"))}
	if _, err := w.reconciler.Reconcile(t.Context(),
		ctrl.Request{NamespacedName: types.NamespacedName{Namespace: "ns", Name: "job"}}); err != nil || !w.faultFired {
		t.Fatalf("error %v, conflict %v, want a conflict and no error", err, w.faultFired)
	}
	workload.Evict(&held, workload.Eviction{Reason: kueue.WorkloadEvictedByPreemption, Message: "for another"}, epoch)
	w.updateStatus(&held)
	w.reconcile()
	for _, event := range w.events.events {
		if strings.HasPrefix(event, "QueueChangesLater") {
			t.Errorf("unexpected event %q", event)
		}
	}
}

// TestLabelChangeOfARunningJobIsReportedAsDeferred: one event says so, and the labels take effect when the job is
// queued again. Replacing one priority class by another takes effect at once.
func TestLabelChangeOfARunningJobIsReportedAsDeferred(t *testing.T) {
	w := newBatchWorld(t, fault{}, newBatchJob("cq", true), 0)
	for name, value := range map[string]int32{"soon": 7, "now": 9} {
		w.put(&kueue.WorkloadPriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value})
	}
	w.reconcile()
	w.admit()
	label := func(labels map[string]string) (reported []string) {
		labelled := w.batchJob()
		maps.Copy(labelled.Labels, labels)
		if err := w.api.Update(t.Context(), labelled); err != nil {
			t.Fatal(err)
		}
		w.reconcile()
		w.reconcile()
		for _, event := range w.events.events {
			if strings.HasPrefix(event, "LabelsCountLater") {
				reported = append(reported, event)
			}
		}
		return reported
	}
	if got := label(nil); len(got) != 0 {
		t.Errorf("events = %v, want none while no label changes", got)
	}
	if got := label(map[string]string{kueue.WorkloadPriorityClassLabel: "nosuch"}); len(got) != 0 {
		t.Errorf("events = %v, want none for a class that does not exist", got)
	}
	got := label(map[string]string{kueue.WorkloadPriorityClassLabel: "soon", kueue.MaxExecTimeSecondsLabel: "60"})
	if len(got) != 1 ||
		!strings.Contains(got[0], "the change of kueue.x-k8s.io/priority-class and kueue.x-k8s.io/max-exec-time-seconds takes effect when it is queued again") {
		t.Errorf("events = %v, want one that names both labels", got)
	}
	held := list[kueue.WorkloadList](w.world).Items[0]
	if spec := held.Spec; *spec.Priority != 0 || spec.MaximumExecutionTimeSeconds != nil {
		t.Errorf("the running job has priority %d and a limit of %v seconds, want 0 and none", *spec.Priority,
			spec.MaximumExecutionTimeSeconds)
	}
	workload.Evict(&held, workload.Eviction{Reason: kueue.WorkloadEvictedByPreemption, Message: "for another"}, epoch)
	w.updateStatus(&held)
	for range 10 { // it is not admitted meanwhile
		w.reconcile()
		w.runJob()
	}
	if spec := list[kueue.WorkloadList](w.world).Items[0].Spec; *spec.Priority != 7 ||
		*spec.MaximumExecutionTimeSeconds != 60 {
		t.Errorf("the evicted job has priority %d and a limit of %d seconds, want 7 and 60", *spec.Priority,
			*spec.MaximumExecutionTimeSeconds)
	}
	w.admit()
	if got := label(map[string]string{kueue.WorkloadPriorityClassLabel: "now"}); len(got) != 1 {
		t.Errorf("events = %v, want no other one for a change that takes effect at once", got)
	}
	if spec := list[kueue.WorkloadList](w.world).Items[0].Spec; *spec.Priority != 9 {
		t.Errorf("with another class the priority is %d, want 9", *spec.Priority)
	}
}

// TestQueueDecidesIsReportedOnce: the event is recorded when the user's change is reverted, not when another client's
// update makes the revert fail with a conflict.
func TestQueueDecidesIsReportedOnce(t *testing.T) {
	w := newBatchWorld(t, fault{}, newBatchJob("cq", true), 0)
	w.reconcile()
	resumed := w.batchJob()
	resumed.Spec.Suspend, resumed.Generation = ptr.To(false), 2
	if err := w.api.Update(t.Context(), resumed); err != nil {
		t.Fatal(err)
	}
	w.fault = fault{write: fmt.Sprintf("change Job job #%d", w.seen["change Job job"]+1),
		err: apierrors.NewConflict(batchv1.Resource("jobs"), "job", errors.New("changed since"))}
	w.reconcile()
	reported := 0
	for _, event := range w.events.events {
		if strings.HasPrefix(event, "QueueDecides") {
			reported++
		}
	}
	if !*w.batchJob().Spec.Suspend || reported != 1 {
		t.Errorf("suspended: %v, reported %d times, want true and once: %v", *w.batchJob().Spec.Suspend,
			reported, w.events.events)
	}
}

// TestBatchJobKeepsThePriorityOfADeletedClass while it waits, also if it moves to another queue. Without a Workload, no
// job is queued with a class that does not exist.
func TestBatchJobKeepsThePriorityOfADeletedClass(t *testing.T) {
	job := newBatchJob("cq", true)
	job.Labels[kueue.WorkloadPriorityClassLabel] = "soon"
	w := newBatchWorld(t, fault{}, job, 0)
	class := &kueue.WorkloadPriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "soon"}, Value: 7}
	w.put(class)
	w.reconcile()
	if err := w.api.Delete(t.Context(), class); err != nil {
		t.Fatal(err)
	}
	w.reconcile()
	moved := w.batchJob()
	moved.Labels[kueue.QueueLabel] = "another"
	if err := w.api.Update(t.Context(), moved); err != nil {
		t.Fatal(err)
	}
	w.reconcile()
	waiting := list[kueue.WorkloadList](w.world).Items
	if len(waiting) != 1 || *waiting[0].Spec.Priority != 7 || waiting[0].Spec.PriorityClassName != "soon" ||
		waiting[0].Spec.QueueName != "another" {
		t.Errorf("Workloads = %+v, want one in queue another with priority 7 of class soon", waiting)
	}
	for _, event := range w.events.events {
		if strings.HasPrefix(event, "InvalidJob") {
			t.Errorf("unexpected event %q", event)
		}
	}
	if err := w.api.Delete(t.Context(), &waiting[0]); err != nil {
		t.Fatal(err)
	}
	w.reconcile()
	w.reconcile()
	if !slices.ContainsFunc(w.events.events, func(event string) bool { return strings.HasPrefix(event, "InvalidJob") }) {
		t.Errorf("events = %v, want InvalidJob once the Workload is gone", w.events.events)
	}
}

// TestRunningJobKeepsItsClassWithoutTheLabel: it follows the value of the class that it was admitted with until it is
// queued again.
func TestRunningJobKeepsItsClassWithoutTheLabel(t *testing.T) {
	job := newBatchJob("cq", true)
	job.Labels[kueue.WorkloadPriorityClassLabel] = "soon"
	w := newBatchWorld(t, fault{}, job, 0)
	w.fate = running
	class := &kueue.WorkloadPriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "soon"}, Value: 7}
	w.put(class)
	w.settle()
	unlabelled := w.batchJob()
	delete(unlabelled.Labels, kueue.WorkloadPriorityClassLabel)
	if err := w.api.Update(t.Context(), unlabelled); err != nil {
		t.Fatal(err)
	}
	w.reconcile()
	class.Value = 9
	if err := w.api.Update(t.Context(), class); err != nil {
		t.Fatal(err)
	}
	w.reconcile()
	held := list[kueue.WorkloadList](w.world).Items[0]
	if held.Spec.PriorityClassName != "soon" || *held.Spec.Priority != 9 {
		t.Errorf("the running job has priority %d of class %q, want 9 of soon", *held.Spec.Priority,
			held.Spec.PriorityClassName)
	}
	w.evictWorkload(&held)
	for range 12 {
		w.reconcile()
		w.runJob()
	}
	if waits := list[kueue.WorkloadList](w.world).Items[0]; waits.Spec.PriorityClassName != "" ||
		*waits.Spec.Priority != 0 {
		t.Errorf("queued again it has priority %d of class %q, want 0 and none", *waits.Spec.Priority,
			waits.Spec.PriorityClassName)
	}
}

// TestMistakeOfABatchJobIsReportedOnce, however often the job changes. It is reported again if the mistake changes or
// is made again.
func TestMistakeOfABatchJobIsReportedOnce(t *testing.T) {
	job := newBatchJob("cq", true)
	job.Annotations = map[string]string{kueue.JobMinParallelismAnnotation: "many"}
	w := newBatchWorld(t, fault{}, job, 0)
	timesReported := func(words string) (n int) {
		for _, event := range w.events.events {
			if strings.HasPrefix(event, "InvalidJob: The annotation") && strings.Contains(event, words) {
				n++
			}
		}
		return n
	}
	w.settle()
	if got := list[kueue.WorkloadList](w.world).Items; len(got) != 0 {
		t.Errorf("the Job was queued with a mistake: %v", got)
	}
	changed := w.batchJob() // by the Job controller
	changed.Status.Conditions = append(changed.Status.Conditions,
		batchv1.JobCondition{Type: batchv1.JobSuspended, Status: corev1.ConditionTrue})
	if err := w.api.Status().Update(t.Context(), changed); err != nil {
		t.Fatal(err)
	}
	w.settle()
	if got := timesReported(`"many"`); got != 1 {
		t.Errorf("reported %d times, want once: %v", got, w.events.events)
	}
	for _, parallelism := range []string{"more", "1", "many"} {
		edited := w.batchJob()
		edited.Annotations[kueue.JobMinParallelismAnnotation] = parallelism
		if err := w.api.Update(t.Context(), edited); err != nil {
			t.Fatal(err)
		}
		w.reconcile()
	}
	if more, many := timesReported(`"more"`), timesReported(`"many"`); more != 1 || many != 2 {
		t.Errorf("\"more\" reported %d times and \"many\" %d times, want 1 and 2: %v", more, many, w.events.events)
	}
}

// TestMissingQueueIsReportedOnce, with the names of the existing queues, and only once the engine has said that the
// queue is missing: the queue may have been created just before the job.
func TestMissingQueueIsReportedOnce(t *testing.T) {
	w := newBatchWorld(t, fault{}, newBatchJob("nowhere", true), 0)
	events := func() (reported []string) {
		w.reconcile()
		for _, event := range w.events.events {
			if strings.HasPrefix(event, "QueueNotFound") {
				reported = append(reported, event)
			}
		}
		return reported
	}
	if got := events(); len(got) != 0 {
		t.Errorf("events = %v before the engine has evaluated the Workload, want none", got)
	}
	waiting := list[kueue.WorkloadList](w.world).Items[0]
	meta.SetStatusCondition(&waiting.Status.Conditions,
		metav1.Condition{Type: kueue.WorkloadQuotaReserved, Status: metav1.ConditionFalse,
			Reason: kueue.WorkloadInadmissible, Message: "LocalQueue nowhere doesn't exist",
			LastTransitionTime: metav1.NewTime(epoch)})
	w.updateStatus(&waiting)
	events()
	want := []string{"QueueNotFound: The job waits: Queue nowhere is neither a LocalQueue of namespace ns nor a ClusterQueue that takes its jobs: there are cq"}
	if diff := cmp.Diff(want, events()); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	w.put(&kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Name: "another", Namespace: "ns"},
		Spec: kueue.LocalQueueSpec{ClusterQueue: "cq"}})
	if got := events(); len(got) != 1 {
		t.Errorf("events = %v once another queue exists, want the first only", got)
	}
	w.put(&kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Name: "nowhere", Namespace: "ns"},
		Spec: kueue.LocalQueueSpec{ClusterQueue: "cq"}})
	w.settle()
	if got := events(); len(got) != 1 || len(w.batchJob().Status.Conditions) == 0 {
		t.Errorf("once the queue exists: events %v, Job status %+v, want one event and a finished Job", got, w.batchJob().Status)
	}
}
