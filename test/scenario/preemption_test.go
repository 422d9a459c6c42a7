package scenario

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/musterhq/muster/test/scenario/harness"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
)

// withPreemption returns an edit that sets the preemption policy of a ClusterQueue.
func withPreemption(policy kueue.ClusterQueuePreemption) func(*kueue.ClusterQueueSpec) {
	return func(q *kueue.ClusterQueueSpec) { q.Preemption = &policy }
}

// raisePriority creates a WorkloadPriorityClass named after the namespace, and labels the job with it.
func (w *world) raisePriority(job client.Object) {
	w.Helper()
	class := &kueue.WorkloadPriorityClass{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace}, Value: 1000}
	w.Create(class)
	w.Cleanup(func() { _ = w.Client.Delete(context.Background(), class) })
	labels := job.GetLabels()
	labels[kueue.WorkloadPriorityClassLabel] = class.Name
	job.SetLabels(labels)
}

// history records the namespace's Workloads, the quota that they hold, and the Jobs that have pods.
type history struct {
	*harness.History
	mu sync.Mutex
	// maxGPUs is the largest number of GPUs for which Workloads held quota at the same time.
	maxGPUs int64
	// overlaps lists the events after which more than one of the exclusive Jobs had pods.
	overlaps []string
}

// record starts a history. No two of the named Jobs may have pods at the same time.
func (w *world) record(exclusive ...string) *history {
	w.Helper()
	h := &history{}
	held := map[string]int64{}
	h.History = harness.Record(w.World, func(event watch.Event) {
		h.mu.Lock()
		defer h.mu.Unlock()
		o := event.Object.(*kueue.Workload)
		held[o.Name] = 0
		ended := event.Type == watch.Deleted || meta.IsStatusConditionTrue(o.Status.Conditions, kueue.WorkloadFinished)
		if o.Status.Admission != nil && !ended {
			for _, a := range o.Status.Admission.PodSetAssignments {
				used := a.ResourceUsage[gpu]
				held[o.Name] += used.Value()
			}
		}
		var sum int64
		for _, amount := range held {
			sum += amount
		}
		h.maxGPUs = max(h.maxGPUs, sum)
	})
	live := map[string]map[string]bool{}
	harness.Follow(w.World, &corev1.PodList{}, func(event watch.Event) {
		pod := event.Object.(*corev1.Pod)
		job := pod.Labels[batchv1.JobNameLabel]
		if live[job] == nil {
			live[job] = map[string]bool{}
		}
		ended := event.Type == watch.Deleted || pod.Status.Phase == corev1.PodSucceeded ||
			pod.Status.Phase == corev1.PodFailed
		live[job][pod.Name] = !ended
		var withPods []string
		for _, name := range exclusive {
			for _, alive := range live[name] {
				if alive {
					withPods = append(withPods, name)
					break
				}
			}
		}
		if len(withPods) > 1 {
			h.overlaps = append(h.overlaps, fmt.Sprintf("after the event %s of %s: %v", event.Type, pod.Name, withPods))
		}
	}, &h.mu)
	return h
}

// check fails the test if Workloads held quota for more GPUs than there are, or exclusive Jobs had pods at the same
// time.
func (h *history) check(t *testing.T, gpus int64) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.maxGPUs > gpus {
		t.Errorf("Workloads held quota for %d GPUs at once, want at most %d", h.maxGPUs, gpus)
	}
	for _, overlap := range h.overlaps {
		t.Errorf("several Jobs had pods, want one at a time: %s", overlap)
	}
}

// preemptionMessage returns the message of the conditions of a preempted Workload.
func preemptionMessage(preemptor *kueue.Workload, cause, path, victimPath string) string {
	owner := &preemptor.OwnerReferences[0]
	return fmt.Sprintf("Preempted to accommodate a workload (UID: %s, JobUID: %s) due to %s; preemptor path: %s; preemptee path: %s; preemptor: %s/%s",
		preemptor.UID, owner.UID, cause, path, victimPath, strings.ToLower(owner.Kind), owner.Name)
}

// TestAHigherPriorityPreemptsAndTheVictimRunsAgain: a gang of a higher priority evicts another, which runs again after
// the first has completed, even if the operator is killed meanwhile. The conditions and statistics of the victim say
// why it was evicted, and at no time is more quota held than there is.
func TestAHigherPriorityPreemptsAndTheVictimRunsAgain(t *testing.T) {
	for name, kill := range map[string]bool{"undisturbed": false, "killed operator": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.gpuQueue("gpu", 8,
				withPreemption(kueue.ClusterQueuePreemption{WithinClusterQueue: kueue.PreemptionPolicyLowerPriority}))
			h := w.record("low-workers-0", "high-workers-0")
			w.Create(w.gang("low", "gpu", 6, time.Hour))
			w.UntilJob("low-workers-0", "is ready", func(job *batchv1.Job) bool { return ptr.Deref(job.Status.Ready, 0) == 6 })
			high := w.gang("high", "gpu", 4, time.Hour)
			w.raisePriority(high)
			w.Create(high)
			w.UntilWorkloadOf("low", "is being evicted", func(o *kueue.Workload) bool {
				return meta.IsStatusConditionTrue(o.Status.Conditions, kueue.WorkloadEvicted)
			})
			if kill {
				w.Operator().Kill()
			}
			preemptor := w.UntilWorkloadOf("high", "runs", runs)
			if kill {
				w.Operator().Kill()
			}
			w.endPods("high-workers-0", 4)
			w.untilCompleted("high")
			victim := w.UntilWorkloadOf("low", "runs again", runs)
			h.WaitFor(victim)
			h.check(t, 8)

			message := preemptionMessage(preemptor, "prioritization in the ClusterQueue", "/"+w.Namespace, "/"+w.Namespace)
			for kind, want := range map[string][]string{
				kueue.WorkloadEvicted:   {"True Preempted: " + message, "False QuotaReserved: Previously: " + message},
				kueue.WorkloadPreempted: {"True InClusterQueue: " + message, "False QuotaReserved: Previously: " + message},
				kueue.WorkloadRequeued:  {"True Preempted: " + message},
			} {
				if diff := cmp.Diff(want, h.Conditions("low", kind)); diff != "" {
					t.Errorf("states of the victim's condition %s (-want +got):\n%s", kind, diff)
				}
			}
			want := []kueue.WorkloadSchedulingStatsEviction{{Reason: kueue.WorkloadEvictedByPreemption,
				UnderlyingCause: kueue.InClusterQueueReason, Count: 1}}
			if diff := cmp.Diff(want, victim.Status.SchedulingStats.Evictions); diff != "" {
				t.Errorf("evictions in the victim's status (-want +got):\n%s", diff)
			}
			if evicted := h.Conditions("high", kueue.WorkloadEvicted); len(evicted) != 0 {
				t.Errorf("the preemptor was evicted: %v", evicted)
			}
			waits := h.Conditions("high", kueue.WorkloadQuotaReserved)
			const pending = ". Pending the preemption of 1 workload(s)"
			if !slices.ContainsFunc(waits, func(line string) bool {
				return strings.HasPrefix(line, "False "+kueue.WorkloadWaitingForPreemptedWorkloads+": ") &&
					strings.HasSuffix(line, pending)
			}) && !kill {
				t.Errorf("states of the preemptor's condition QuotaReserved = %q, want one that ends with %q", waits, pending)
			}
		})
	}
}

// TestLentQuotaIsReclaimed: when a queue needs the quota that it has lent, the Job that borrows it is evicted, and not
// the other Job of the borrowing queue.
func TestLentQuotaIsReclaimed(t *testing.T) {
	w := newWorld(t)
	w.gpuQueue("borrower", 4, func(q *kueue.ClusterQueueSpec) { q.Cohort = kueue.CohortReference(w.Namespace) })
	owner := &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace + "-owner"}}
	owner.Spec = findOwn(w, listAll(w, &kueue.ClusterQueueList{})).(*kueue.ClusterQueue).DeepCopy().Spec
	owner.Spec.Preemption = &kueue.ClusterQueuePreemption{ReclaimWithinCohort: kueue.PreemptionPolicyAny}
	owner.Spec.ResourceGroups[0].Flavors[0].Resources[0].NominalQuota = resource.MustParse("4")
	w.Create(owner, &kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Name: "owner", Namespace: w.Namespace},
		Spec: kueue.LocalQueueSpec{ClusterQueue: kueue.ClusterQueueReference(owner.Name)}})
	w.Cleanup(func() { _ = w.Client.Delete(context.Background(), owner) })

	h := w.record("second", "mine")
	first := w.batchJob("first", "borrower", 4, time.Hour)
	w.raisePriority(first) // so that the second is the one to be evicted
	w.untilHeld(first)
	w.Create(first)
	w.UntilWorkloadOf("first", "runs", runs)
	w.Create(w.batchJob("second", "borrower", 4, time.Hour))
	w.UntilJob("second", "is ready", func(job *batchv1.Job) bool { return ptr.Deref(job.Status.Ready, 0) == 4 })
	w.Create(w.batchJob("mine", "owner", 4, time.Hour))
	preemptor := w.UntilWorkloadOf("mine", "runs", runs)
	w.endPods("mine", 4)
	h.WaitFor(w.UntilWorkloadOf("second", "runs again", runs))
	h.check(t, 8)
	message := preemptionMessage(preemptor, "reclamation within the cohort",
		fmt.Sprintf("/%s/%s", w.Namespace, owner.Name), fmt.Sprintf("/%s/%s", w.Namespace, w.Namespace))
	want := []string{"True InCohortReclamation: " + message, "False QuotaReserved: Previously: " + message}
	if diff := cmp.Diff(want, h.Conditions("second", kueue.WorkloadPreempted)); diff != "" {
		t.Errorf("states of the victim's condition Preempted (-want +got):\n%s", diff)
	}
	if evicted := h.Conditions("first", kueue.WorkloadEvicted); len(evicted) != 0 {
		t.Errorf("the Job with the higher priority was evicted: %v", evicted)
	}
}

// listAll reads all objects of the kind of the list, in all namespaces, into the list and returns it.
func listAll[L client.ObjectList](w *world, list L) L {
	w.Helper()
	if err := w.Client.List(w.Context(), list); err != nil {
		w.Fatal(err)
	}
	return list
}
