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

func TestGangsRunOneAfterTheOtherWhereOnlyOneFits(t *testing.T) {
	w := newWorld(t)
	w.gpuQueue("gpu", 8)
	w.Create(w.gang("first", "gpu", 6, time.Hour))
	w.untilJobSets("first runs", func(all map[string]jobset.JobSet) bool {
		js := all["first"]
		return len(js.Status.ReplicatedJobsStatus) == 1 && js.Status.ReplicatedJobsStatus[0].Active == 1
	})
	w.Create(w.gang("second", "gpu", 4, 100*time.Millisecond))
	harness.Until(w.World, &kueue.WorkloadList{}, "second is told why it waits", func(list *kueue.WorkloadList) bool {
		for _, workload := range list.Items {
			c := meta.FindStatusCondition(workload.Status.Conditions, kueue.WorkloadQuotaReserved)
			if c != nil && c.Status == metav1.ConditionFalse && c.Reason == kueue.WorkloadWaitingForQuota {
				want := "couldn't assign flavors to pod set workers: insufficient unused quota for nvidia.com/gpu in flavor " +
					w.Namespace + ", 2 more needed"
				if c.Message != want {
					t.Errorf("message %q, want %q", c.Message, want)
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
	harness.Until(w.World, &kueue.LocalQueueList{}, "the queue's status says that it is empty", func(list *kueue.LocalQueueList) bool {
		s := list.Items[0].Status
		return s.PendingWorkloads == 0 && s.ReservingWorkloads == 0 && meta.IsStatusConditionTrue(s.Conditions, kueue.LocalQueueActive)
	})
}

func TestJobSetWithoutQueueStartsAtOnce(t *testing.T) {
	w := newWorld(t)
	w.Create(w.gang("free", "", 1, 0))
	w.UntilJob("free-workers-0", "runs", running(1))
	if list := w.workloads(); len(list) != 0 {
		t.Errorf("it was queued as %s", list[0].Name)
	}
}

func TestLocalQueueIsCreatedForTheNameOfAClusterQueue(t *testing.T) {
	w := newWorld(t)
	w.Create(w.gang("queued", muster.DefaultQueue, 1, 0))
	harness.Until(w.World, &kueue.LocalQueueList{}, "a LocalQueue is made for it", func(list *kueue.LocalQueueList) bool {
		return len(list.Items) == 1 && list.Items[0].Name == muster.DefaultQueue &&
			list.Items[0].Labels[muster.MadeForLabel] == muster.DefaultQueue
	})
	harness.Until(w.World, &kueue.WorkloadList{}, "it is in the queue", func(list *kueue.WorkloadList) bool {
		return len(list.Items) == 1 && list.Items[0].Spec.QueueName == muster.DefaultQueue
	})
	w.Create(w.gang("free", "", 1, 0))
	w.UntilJob("free-workers-0", "runs", running(1))
	if list := w.workloads(); len(list) != 1 {
		t.Errorf("%d Workloads, want that of the queued JobSet only", len(list))
	}
}

func TestUnqueuedJobSetUsesTheLocalQueueNamedDefault(t *testing.T) {
	w := newWorld(t)
	w.gpuQueue(muster.DefaultQueue, 8)
	w.Create(w.gang("unlabelled", "", 2, 0))
	w.untilCompleted("unlabelled")
	if list := w.workloads(); len(list) != 1 {
		t.Errorf("%d Workloads, want one", len(list))
	}
}

func TestJobSetWaitsForAQueueThatComesLater(t *testing.T) {
	w := newWorld(t)
	w.Create(w.gang("early", "gpu", 1, 0))
	harness.Until(w.World, &kueue.WorkloadList{}, "it is told what is missing", func(list *kueue.WorkloadList) bool {
		if len(list.Items) != 1 {
			return false
		}
		c := meta.FindStatusCondition(list.Items[0].Status.Conditions, kueue.WorkloadQuotaReserved)
		return c != nil && c.Reason == kueue.WorkloadInadmissible && c.Message == "LocalQueue gpu doesn't exist"
	})
	w.gpuQueue("gpu", 1)
	w.untilCompleted("early")
}

func TestFailedGangRestartsUntilItsBudgetIsSpent(t *testing.T) {
	w := newWorld(t)
	w.gpuQueue("gpu", 8)
	js := w.gang("doomed", "gpu", 2, 0)
	js.Spec.FailurePolicy = &jobset.FailurePolicy{MaxRestarts: 1}
	js.Spec.ReplicatedJobs[0].Template.Spec.Template.Annotations["muster.dev/sim-exit-code"] = "3"
	w.Create(js)
	w.untilJobSets("it has failed", func(all map[string]jobset.JobSet) bool {
		return meta.IsStatusConditionTrue(all["doomed"].Status.Conditions, string(jobset.JobSetFailed))
	})
	if err := w.Client.Get(t.Context(), client.ObjectKeyFromObject(js), js); err != nil {
		t.Fatal(err)
	}
	failed := meta.FindStatusCondition(js.Status.Conditions, string(jobset.JobSetFailed))
	if js.Status.Restarts != 1 || failed.Reason != jobset.ReachedMaxRestartsReason {
		t.Errorf("%d restarts and reason %s, want 1 and %s", js.Status.Restarts, failed.Reason, jobset.ReachedMaxRestartsReason)
	}
	harness.Until(w.World, &kueue.WorkloadList{}, "its quota is given back", func(list *kueue.WorkloadList) bool {
		c := meta.FindStatusCondition(list.Items[0].Status.Conditions, kueue.WorkloadFinished)
		return c != nil && c.Reason == kueue.WorkloadFinishedReasonFailed
	})
}

func TestJobSetWithTooManyPodSetsGetsAnEvent(t *testing.T) {
	w := newWorld(t)
	w.gpuQueue("gpu", 8)
	js := w.gang("wide", "gpu", 1, 0)
	one := js.Spec.ReplicatedJobs[0]
	js.Spec.ReplicatedJobs = nil
	for i := range 65 {
		next := *one.DeepCopy()
		next.Name = fmt.Sprintf("r%d", i)
		js.Spec.ReplicatedJobs = append(js.Spec.ReplicatedJobs, next)
	}
	w.Create(js)
	harness.Until(w.World, &eventsv1.EventList{}, "an event says why it is not queued", func(list *eventsv1.EventList) bool {
		for _, event := range list.Items {
			if event.Regarding.Name == "wide" && event.Reason == "WorkloadCreationFailed" {
				if !strings.Contains(event.Note, "spec.podSets: Too many: 65: must have at most 64 items") {
					t.Errorf("event %q does not say what is too many", event.Note)
				}
				return true
			}
		}
		return false
	})
}
