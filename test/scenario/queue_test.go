package scenario

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/test/scenario/harness"

	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
)

// TestGangsRunOneAfterTheOtherWhereOnlyOneFits: the second of two gangs waits with a message that says how many GPUs
// are missing, and runs after the first has completed. Then the status of the LocalQueue reports no Workloads.
func TestGangsRunOneAfterTheOtherWhereOnlyOneFits(t *testing.T) {
	w := newWorld(t)
	w.gpuQueue("gpu", 8)
	w.Create(w.gang("first", "gpu", 6, time.Hour))
	w.untilJobSets("the first gang runs", func(all map[string]jobset.JobSet) bool {
		js := all["first"]
		return len(js.Status.ReplicatedJobsStatus) == 1 && js.Status.ReplicatedJobsStatus[0].Active == 1
	})
	w.Create(w.gang("second", "gpu", 4, 100*time.Millisecond))
	harness.Until(w.World, &kueue.WorkloadList{}, "the second gang waits for quota", func(list *kueue.WorkloadList) bool {
		for _, workload := range list.Items {
			c := meta.FindStatusCondition(workload.Status.Conditions, kueue.WorkloadQuotaReserved)
			if c != nil && c.Status == metav1.ConditionFalse && c.Reason == kueue.WorkloadWaitingForQuota {
				want := "couldn't assign flavors to pod set workers: insufficient unused quota for nvidia.com/gpu in flavor " +
					w.Namespace + ", 2 more needed"
				if c.Message != want {
					t.Errorf("condition QuotaReserved has the message %q, want %q", c.Message, want)
				}
				return true
			}
		}
		return false
	})
	w.endPods("first-workers-0", 6)
	w.untilCompleted("first", "second")
	harness.Until(w.World, &kueue.WorkloadList{}, "both Workloads are finished", func(list *kueue.WorkloadList) bool {
		for _, workload := range list.Items {
			if !meta.IsStatusConditionTrue(workload.Status.Conditions, kueue.WorkloadFinished) {
				return false
			}
		}
		return len(list.Items) == 2
	})
	harness.Until(w.World, &kueue.LocalQueueList{}, "the LocalQueue is active and reports no Workloads",
		func(list *kueue.LocalQueueList) bool {
			s := list.Items[0].Status
			return s.PendingWorkloads == 0 && s.ReservingWorkloads == 0 &&
				meta.IsStatusConditionTrue(s.Conditions, kueue.LocalQueueActive)
		})
}

// TestJobSetWithoutQueueStartsAtOnce: a JobSet without a queue label gets no Workload if there is no default queue.
func TestJobSetWithoutQueueStartsAtOnce(t *testing.T) {
	w := newWorld(t)
	w.Create(w.gang("free", "", 1, 0))
	w.UntilJob("free-workers-0", "runs", running(1))
	if list := w.workloads(); len(list) != 0 {
		t.Errorf("the JobSet has the Workload %s, want none", list[0].Name)
	}
}

// TestLocalQueueIsCreatedForTheNameOfAClusterQueue: a JobSet whose queue label is the name of a ClusterQueue gets a
// LocalQueue of that name in its namespace. It does not apply to unlabelled JobSets even if its name is default.
func TestLocalQueueIsCreatedForTheNameOfAClusterQueue(t *testing.T) {
	w := newWorld(t)
	w.Create(w.gang("queued", muster.DefaultQueue, 1, 0))
	harness.Until(w.World, &kueue.LocalQueueList{}, "the LocalQueue is created", func(list *kueue.LocalQueueList) bool {
		return len(list.Items) == 1 && list.Items[0].Name == muster.DefaultQueue &&
			list.Items[0].Labels[muster.MadeForLabel] == muster.DefaultQueue
	})
	harness.Until(w.World, &kueue.WorkloadList{}, "the Workload is in the LocalQueue",
		func(list *kueue.WorkloadList) bool {
			return len(list.Items) == 1 && list.Items[0].Spec.QueueName == muster.DefaultQueue
		})
	w.Create(w.gang("free", "", 1, 0))
	w.UntilJob("free-workers-0", "runs", running(1))
	if list := w.workloads(); len(list) != 1 {
		t.Errorf("%d Workloads, want 1, that of the queued JobSet", len(list))
	}
}

// TestUnqueuedJobSetUsesTheLocalQueueNamedDefault: a JobSet without a queue label is queued if its namespace has a
// LocalQueue named default.
func TestUnqueuedJobSetUsesTheLocalQueueNamedDefault(t *testing.T) {
	w := newWorld(t)
	w.gpuQueue(muster.DefaultQueue, 8)
	w.Create(w.gang("unlabelled", "", 2, 0))
	w.untilCompleted("unlabelled")
	if list := w.workloads(); len(list) != 1 {
		t.Errorf("%d Workloads, want 1", len(list))
	}
}

// TestJobSetWaitsForAQueueThatComesLater: a JobSet whose LocalQueue does not exist waits as inadmissible, and runs once
// the LocalQueue is created.
func TestJobSetWaitsForAQueueThatComesLater(t *testing.T) {
	w := newWorld(t)
	w.Create(w.gang("early", "gpu", 1, 0))
	harness.Until(w.World, &kueue.WorkloadList{}, "the Workload waits because its LocalQueue does not exist",
		func(list *kueue.WorkloadList) bool {
			if len(list.Items) != 1 {
				return false
			}
			c := meta.FindStatusCondition(list.Items[0].Status.Conditions, kueue.WorkloadQuotaReserved)
			return c != nil && c.Reason == kueue.WorkloadInadmissible && c.Message == "LocalQueue gpu doesn't exist"
		})
	w.gpuQueue("gpu", 1)
	w.untilCompleted("early")
}

// TestFailedGangRestartsUntilItsBudgetIsSpent: a JobSet whose pods fail restarts maxRestarts times and then fails. Its
// Workload is finished too.
func TestFailedGangRestartsUntilItsBudgetIsSpent(t *testing.T) {
	w := newWorld(t)
	w.gpuQueue("gpu", 8)
	js := w.gang("doomed", "gpu", 2, 0)
	js.Spec.FailurePolicy = &jobset.FailurePolicy{MaxRestarts: 1}
	js.Spec.ReplicatedJobs[0].Template.Spec.Template.Annotations["muster.dev/sim-exit-code"] = "3"
	w.Create(js)
	w.untilJobSets("the JobSet has failed", func(all map[string]jobset.JobSet) bool {
		return meta.IsStatusConditionTrue(all["doomed"].Status.Conditions, string(jobset.JobSetFailed))
	})
	if err := w.Client.Get(t.Context(), client.ObjectKeyFromObject(js), js); err != nil {
		t.Fatal(err)
	}
	failed := meta.FindStatusCondition(js.Status.Conditions, string(jobset.JobSetFailed))
	if js.Status.Restarts != 1 || failed.Reason != jobset.ReachedMaxRestartsReason {
		t.Errorf("JobSet has %d restarts and failed with reason %s, want 1 and %s", js.Status.Restarts, failed.Reason,
			jobset.ReachedMaxRestartsReason)
	}
	harness.Until(w.World, &kueue.WorkloadList{}, "the Workload is finished as failed",
		func(list *kueue.WorkloadList) bool {
			c := meta.FindStatusCondition(list.Items[0].Status.Conditions, kueue.WorkloadFinished)
			return c != nil && c.Reason == kueue.WorkloadFinishedReasonFailed
		})
}

// TestJobSetWithTooManyPodSetsGetsAnEvent: the API server rejects a Workload with more than 64 pod sets. A JobSet that
// names no queue may have more of them, and is queued by the LocalQueue default: an event must say that it never will
// be.
func TestJobSetWithTooManyPodSetsGetsAnEvent(t *testing.T) {
	w := newWorld(t)
	w.gpuQueue("default", 8)
	js := w.gang("wide", "", 1, 0)
	one := js.Spec.ReplicatedJobs[0]
	js.Spec.ReplicatedJobs = nil
	for i := range 65 {
		next := *one.DeepCopy()
		next.Name = fmt.Sprintf("r%d", i)
		js.Spec.ReplicatedJobs = append(js.Spec.ReplicatedJobs, next)
	}
	w.Create(js)
	harness.Until(w.World, &eventsv1.EventList{}, "the JobSet has the event WorkloadCreationFailed",
		func(list *eventsv1.EventList) bool {
			for _, event := range list.Items {
				if event.Regarding.Name == "wide" && event.Reason == "WorkloadCreationFailed" {
					if !strings.Contains(event.Note, "spec.podSets: Too many: 65: must have at most 64 items") {
						t.Errorf("event has the note %q, want the error about spec.podSets", event.Note)
					}
					return true
				}
			}
			return false
		})
}
