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

// evictionsBy has the workloads of a ClusterQueue evict others by the policy.
func withPreemption(policy kueue.ClusterQueuePreemption) func(*kueue.ClusterQueueSpec) {
	return func(q *kueue.ClusterQueueSpec) { q.Preemption = &policy }
}

// urgent makes a WorkloadPriorityClass of the world's own and gives it to the job.
func (w *world) raisePriority(job client.Object) {
	w.Helper()
	class := &kueue.WorkloadPriorityClass{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace}, Value: 1000}
	w.Create(class)
	w.Cleanup(func() { _ = w.Client.Delete(context.Background(), class) })
	labels := job.GetLabels()
	labels[kueue.WorkloadPriorityClassLabel] = class.Name
	job.SetLabels(labels)
}

// history is that of the namespace's Workloads, with what was held and who was there at each moment of it.
type history struct {
	*harness.History
	mu sync.Mutex
	// most is the most GPUs that were held at once.
	most int64
	// mixed lists moments at which pods of several Jobs were there that may not be.
	mixed []string
}

// record begins the history. No two of the named Jobs may have pods at once.
func (w *world) record(apart ...string) *history {
	w.Helper()
	h := &history{}
	held := map[string]int64{}
	h.History = w.Record(func(event watch.Event) {
		h.mu.Lock()
		defer h.mu.Unlock()
		o := event.Object.(*kueue.Workload)
		held[o.Name] = 0
		over := event.Type == watch.Deleted || meta.IsStatusConditionTrue(o.Status.Conditions, kueue.WorkloadFinished)
		if o.Status.Admission != nil && !over {
			for _, a := range o.Status.Admission.PodSetAssignments {
				used := a.ResourceUsage[gpu]
				held[o.Name] += used.Value()
			}
		}
		var sum int64
		for _, amount := range held {
			sum += amount
		}
		h.most = max(h.most, sum)
	})
	live := map[string]map[string]bool{}
	w.Follow(&corev1.PodList{}, func(event watch.Event) {
		pod := event.Object.(*corev1.Pod)
		job := pod.Labels[batchv1.JobNameLabel]
		if live[job] == nil {
			live[job] = map[string]bool{}
		}
		over := event.Type == watch.Deleted || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
		live[job][pod.Name] = !over
		var there []string
		for _, name := range apart {
			for _, alive := range live[name] {
				if alive {
					there = append(there, name)
					break
				}
			}
		}
		if len(there) > 1 {
			h.mixed = append(h.mixed, fmt.Sprintf("%s %s: %v", event.Type, pod.Name, there))
		}
	}, &h.mu)
	return h
}

// check fails the test if more was held than there is, or pods were there together.
func (h *history) check(t *testing.T, gpus int64) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.most > gpus {
		t.Errorf("%d GPUs were held at once, of %d", h.most, gpus)
	}
	for _, moment := range h.mixed {
		t.Errorf("pods of several were there at once: %s", moment)
	}
}

// preemption is what the victim hears of why it has to go.
func preemptionMessage(preemptor *kueue.Workload, words, path, victimPath string) string {
	return fmt.Sprintf("Preempted to accommodate a workload (UID: %s, JobUID: %s) due to %s; preemptor path: %s; preemptee path: %s",
		preemptor.UID, preemptor.OwnerReferences[0].UID, words, path, victimPath)
}

func TestAHigherPriorityPreemptsAndTheVictimRunsAgain(t *testing.T) {
	for name, kill := range map[string]bool{"undisturbed": false, "though the operator is killed": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.gpuQueue("gpu", 8, withPreemption(kueue.ClusterQueuePreemption{WithinClusterQueue: kueue.PreemptionPolicyLowerPriority}))
			h := w.record("low-workers-0", "high-workers-0")
			w.Create(w.gang("low", "gpu", 6, time.Hour))
			w.UntilJob("low-workers-0", "is ready", func(job *batchv1.Job) bool { return ptr.Deref(job.Status.Ready, 0) == 6 })
			high := w.gang("high", "gpu", 4, time.Hour)
			w.raisePriority(high)
			w.Create(high)
			w.UntilWorkloadOf("low", "is told to go", func(o *kueue.Workload) bool {
				return meta.IsStatusConditionTrue(o.Status.Conditions, kueue.WorkloadEvicted)
			})
			if kill {
				w.KillOperator()
			}
			preemptor := w.UntilWorkloadOf("high", "runs", runs)
			if kill {
				w.KillOperator()
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
					t.Errorf("the victim's %s (-want +got):\n%s", kind, diff)
				}
			}
			want := []kueue.WorkloadSchedulingStatsEviction{{Reason: kueue.WorkloadEvictedByPreemption, UnderlyingCause: kueue.InClusterQueueReason, Count: 1}}
			if diff := cmp.Diff(want, victim.Status.SchedulingStats.Evictions); diff != "" {
				t.Errorf("evictions (-want +got):\n%s", diff)
			}
			if told := h.Conditions("high", kueue.WorkloadEvicted); len(told) != 0 {
				t.Errorf("the preemptor was evicted: %v", told)
			}
			waits := h.Conditions("high", kueue.WorkloadQuotaReserved)
			const pending = ". Pending the preemption of 1 workload(s)"
			if !slices.ContainsFunc(waits, func(line string) bool {
				return strings.HasPrefix(line, "False "+kueue.WorkloadWaitingForPreemptedWorkloads+": ") && strings.HasSuffix(line, pending)
			}) && !kill {
				t.Errorf("the preemptor was not told whom it waits for: %q", waits)
			}
		})
	}
}

// TestLentQuotaIsReclaimed: of two Jobs of a queue, one borrows what is another queue's,
// which needs it.
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
	w.raisePriority(first) // so that it is clear which of both goes
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
	message := preemptionMessage(preemptor, "reclamation within the cohort", fmt.Sprintf("/%s/%s", w.Namespace, owner.Name), fmt.Sprintf("/%s/%s", w.Namespace, w.Namespace))
	want := []string{"True InCohortReclamation: " + message, "False QuotaReserved: Previously: " + message}
	if diff := cmp.Diff(want, h.Conditions("second", kueue.WorkloadPreempted)); diff != "" {
		t.Errorf("the victim's Preempted (-want +got):\n%s", diff)
	}
	if told := h.Conditions("first", kueue.WorkloadEvicted); len(told) != 0 {
		t.Errorf("who did not borrow was evicted: %v", told)
	}
}

// listed is the list of all objects of its kind.
func listAll[L client.ObjectList](w *world, list L) L {
	w.Helper()
	if err := w.Client.List(w.Context(), list); err != nil {
		w.Fatal(err)
	}
	return list
}
