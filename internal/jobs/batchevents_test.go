package jobs_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/google/go-cmp/cmp"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/batchjob"
	"github.com/musterhq/muster/internal/workload"
)

// dropping is a recorder that has no capacity for events while it is busy.
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

// TestStartFailureIsReportedOnceTheRecorderHasCapacity, though the Workload has ended by then, once by each operator.
func TestStartFailureIsReportedOnceTheRecorderHasCapacity(t *testing.T) {
	job := newBatchJob("cq", true)
	job.Spec.Template.Spec.NodeSelector = map[string]string{"rack": "a"}
	w := newBatchWorld(t, fault{}, job, 0)
	events := &dropping{recorder: w.events, busy: true}
	operator := func() { w.reconciler = jobs.NewReconciler(batchjob.API, w.recordingClient(), events, w.clock) }
	operator()
	w.reconcile()
	w.admit()
	given := list[kueue.WorkloadList](w.world).Items[0]
	given.Status.AdmissionChecks = []kueue.AdmissionCheckState{{Name: "budget", State: kueue.CheckStateReady, LastTransitionTime: metav1.NewTime(epoch),
		PodSetUpdates: []kueue.PodSetUpdate{{Name: "main", NodeSelector: map[string]string{"rack": "b"}}}}}
	w.updateStatus(&given)
	w.reconcile()
	if again := w.reconcile().RequeueAfter; again <= 0 || again > time.Minute {
		t.Errorf("it is looked at again after %s", again)
	}
	reported := func() (n int) {
		w.reconcile()
		for _, event := range w.events.events {
			if strings.HasPrefix(event, "FailedToStart: No pods can be started: the admission check budget") {
				n++
			}
		}
		return n
	}
	if got := reported(); got != 0 {
		t.Errorf("reported %d times while there is no time", got)
	}
	if ended := list[kueue.WorkloadList](w.world).Items[0]; !workload.IsFinished(&ended) {
		t.Fatalf("its Workload has not ended: %+v", ended.Status.Conditions)
	}
	events.busy = false
	for range 2 {
		if got := reported(); got != 1 {
			t.Errorf("reported %d times: %v", got, w.events.events)
		}
	}
	operator()
	for range 2 {
		if got := reported(); got != 2 {
			t.Errorf("reported %d times by two operators: %v", got, w.events.events)
		}
	}
}

// TestQueueChangeOfARunningJobIsReportedAsDeferred, once, and takes effect later.
func TestQueueChangeOfARunningJobIsReportedAsDeferred(t *testing.T) {
	w := newBatchWorld(t, fault{}, newBatchJob("cq", true), 0)
	w.reconcile()
	w.admit()
	send := func(queue string) (reported []string) {
		sent := w.batchJob()
		sent.Labels[kueue.QueueLabel] = queue
		if err := w.api.Update(t.Context(), sent); err != nil {
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
	if got := send("cq"); len(got) != 0 {
		t.Errorf("reported %v though it stays", got)
	}
	if got := send("another"); len(got) != 1 || !strings.Contains(got[0], "stays in queue cq") || !strings.Contains(got[0], "moves to queue another") {
		t.Errorf("reported %v", got)
	}
	held := list[kueue.WorkloadList](w.world).Items[0]
	workload.Evict(&held, workload.Eviction{Reason: kueue.WorkloadEvictedByPreemption, Message: "for another"}, epoch)
	w.updateStatus(&held)
	if got := send("third"); len(got) != 1 {
		t.Errorf("reported %v, though it is leaving", got)
	}
	for range 10 { // nobody admits it meanwhile
		w.reconcile()
		w.runJob()
	}
	if got := list[kueue.WorkloadList](w.world).Items[0].Spec.QueueName; got != "third" {
		t.Errorf("evicted, it waits in %s", got)
	}
}

// TestNoStandingEventAfterAConflict: the plan assumed quota that the job had just lost.
func TestNoStandingEventAfterAConflict(t *testing.T) {
	w := newBatchWorld(t, fault{}, newBatchJob("cq", true), 0)
	w.reconcile()
	w.admit()
	w.reconcile()
	for ptr.Deref(w.batchJob().Status.Ready, 0) == 0 { // which its Workload is to be reported
		w.runJob()
	}
	sent := w.batchJob()
	sent.Labels[kueue.QueueLabel] = "another"
	if err := w.api.Update(t.Context(), sent); err != nil {
		t.Fatal(err)
	}
	held := list[kueue.WorkloadList](w.world).Items[0]
	w.fault = fault{write: fmt.Sprintf("status Workload %s #%d", held.Name, w.seen["status Workload "+held.Name]+1),
		err: apierrors.NewConflict(kueue.Resource("workloads"), held.Name, errors.New("somebody was quicker"))}
	if _, err := w.reconciler.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Namespace: "ns", Name: "job"}}); err != nil || !w.faultFired {
		t.Fatalf("there was no conflict, but %v", err)
	}
	workload.Evict(&held, workload.Eviction{Reason: kueue.WorkloadEvictedByPreemption, Message: "for another"}, epoch)
	w.updateStatus(&held)
	w.reconcile()
	for _, event := range w.events.events {
		if strings.HasPrefix(event, "QueueChangesLater") {
			t.Errorf("reported %q", event)
		}
	}
}

// TestLabelChangeOfARunningJobIsReportedAsDeferred, once, and takes effect later. Replacing one priority class by
// another takes effect at once.
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
		t.Errorf("reported %v though nothing changed", got)
	}
	if got := label(map[string]string{kueue.WorkloadPriorityClassLabel: "nosuch"}); len(got) != 0 {
		t.Errorf("reported %v of a class that does not exist", got)
	}
	got := label(map[string]string{kueue.WorkloadPriorityClassLabel: "soon", kueue.MaxExecTimeSecondsLabel: "60"})
	if len(got) != 1 || !strings.Contains(got[0], "the change of kueue.x-k8s.io/priority-class and kueue.x-k8s.io/max-exec-time-seconds takes effect when it is queued again") {
		t.Errorf("reported %v", got)
	}
	held := list[kueue.WorkloadList](w.world).Items[0]
	if spec := held.Spec; *spec.Priority != 0 || spec.MaximumExecutionTimeSeconds != nil {
		t.Errorf("its quota is held for priority %d and %v seconds", *spec.Priority, spec.MaximumExecutionTimeSeconds)
	}
	workload.Evict(&held, workload.Eviction{Reason: kueue.WorkloadEvictedByPreemption, Message: "for another"}, epoch)
	w.updateStatus(&held)
	for range 10 { // nobody admits it meanwhile
		w.reconcile()
		w.runJob()
	}
	if spec := list[kueue.WorkloadList](w.world).Items[0].Spec; *spec.Priority != 7 || *spec.MaximumExecutionTimeSeconds != 60 {
		t.Errorf("it waits by priority %d, for %d seconds", *spec.Priority, *spec.MaximumExecutionTimeSeconds)
	}
	w.admit()
	if got := label(map[string]string{kueue.WorkloadPriorityClassLabel: "now"}); len(got) != 1 {
		t.Errorf("reported %v of what counts at once", got)
	}
	if spec := list[kueue.WorkloadList](w.world).Items[0].Spec; *spec.Priority != 9 {
		t.Errorf("of another class its priority is %d", *spec.Priority)
	}
}

// TestQueueDecidesIsReportedOnce: when the change is reverted, not when another client's update causes a conflict.
func TestQueueDecidesIsReportedOnce(t *testing.T) {
	w := newBatchWorld(t, fault{}, newBatchJob("cq", true), 0)
	w.reconcile()
	resumed := w.batchJob()
	resumed.Spec.Suspend, resumed.Generation = ptr.To(false), 2
	if err := w.api.Update(t.Context(), resumed); err != nil {
		t.Fatal(err)
	}
	w.fault = fault{write: fmt.Sprintf("change Job job #%d", w.seen["change Job job"]+1),
		err: apierrors.NewConflict(batchv1.Resource("jobs"), "job", errors.New("somebody was quicker"))}
	w.reconcile()
	reported := 0
	for _, event := range w.events.events {
		if strings.HasPrefix(event, "QueueDecides") {
			reported++
		}
	}
	if !*w.batchJob().Spec.Suspend || reported != 1 {
		t.Errorf("reported %d times: %v", reported, w.events.events)
	}
}

// TestBatchJobKeepsThePriorityOfADeletedClass while it waits, also if it moves to another queue. No other Job is queued
// with that class.
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
	if len(waiting) != 1 || *waiting[0].Spec.Priority != 7 || waiting[0].Spec.PriorityClassName != "soon" || waiting[0].Spec.QueueName != "another" {
		t.Errorf("it waits as %+v", waiting)
	}
	for _, event := range w.events.events {
		if strings.HasPrefix(event, "InvalidJob") {
			t.Errorf("reported %q", event)
		}
	}
	if err := w.api.Delete(t.Context(), &waiting[0]); err != nil {
		t.Fatal(err)
	}
	w.reconcile()
	w.reconcile()
	if !slices.ContainsFunc(w.events.events, func(event string) bool { return strings.HasPrefix(event, "InvalidJob") }) {
		t.Errorf("reported only %v once it has no place in line any more", w.events.events)
	}
}

// TestMistakeOfABatchJobIsReportedOnce, however often the job changes, and again if the mistake changes or comes back.
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
		t.Errorf("it was queued: %v", got)
	}
	changed := w.batchJob() // by the Job controller
	changed.Status.Conditions = append(changed.Status.Conditions, batchv1.JobCondition{Type: batchv1.JobSuspended, Status: corev1.ConditionTrue})
	if err := w.api.Status().Update(t.Context(), changed); err != nil {
		t.Fatal(err)
	}
	w.settle()
	if got := timesReported(`"many"`); got != 1 {
		t.Errorf("reported %d times: %v", got, w.events.events)
	}
	for _, parallelism := range []string{"more", "1", "many"} {
		mended := w.batchJob()
		mended.Annotations[kueue.JobMinParallelismAnnotation] = parallelism
		if err := w.api.Update(t.Context(), mended); err != nil {
			t.Fatal(err)
		}
		w.reconcile()
	}
	if more, many := timesReported(`"more"`), timesReported(`"many"`); more != 1 || many != 2 {
		t.Errorf("reported %d and %d times: %v", more, many, w.events.events)
	}
}

// TestMissingQueueIsReportedOnce with the existing queues, but not while the job's own queue was created just before
// it.
func TestMissingQueueIsReportedOnce(t *testing.T) {
	w := newBatchWorld(t, fault{}, newBatchJob("nowhere", true), 0)
	reported := func() (reported []string) {
		w.reconcile()
		for _, event := range w.events.events {
			if strings.HasPrefix(event, "QueueNotFound") {
				reported = append(reported, event)
			}
		}
		return reported
	}
	if got := reported(); len(got) != 0 {
		t.Errorf("reported before anybody says that it waits: %v", got)
	}
	waiting := list[kueue.WorkloadList](w.world).Items[0]
	meta.SetStatusCondition(&waiting.Status.Conditions, metav1.Condition{Type: kueue.WorkloadQuotaReserved, Status: metav1.ConditionFalse,
		Reason: kueue.WorkloadInadmissible, Message: "LocalQueue nowhere doesn't exist", LastTransitionTime: metav1.NewTime(epoch)})
	w.updateStatus(&waiting)
	reported()
	want := []string{"QueueNotFound: The job waits: Queue nowhere is neither a LocalQueue of namespace ns nor a ClusterQueue that takes its jobs: there are cq"}
	if diff := cmp.Diff(want, reported()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	w.put(&kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Name: "another", Namespace: "ns"}, Spec: kueue.LocalQueueSpec{ClusterQueue: "cq"}})
	if got := reported(); len(got) != 1 {
		t.Errorf("reported again when another queue was made: %v", got)
	}
	w.put(&kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Name: "nowhere", Namespace: "ns"}, Spec: kueue.LocalQueueSpec{ClusterQueue: "cq"}})
	w.settle()
	if got := reported(); len(got) != 1 || len(w.batchJob().Status.Conditions) == 0 {
		t.Errorf("once it is made: reported %v, %+v", got, w.batchJob().Status)
	}
}
