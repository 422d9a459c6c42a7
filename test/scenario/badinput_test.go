package scenario

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/musterhq/muster/test/scenario/harness"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
)

// untilQueue waits until the condition Active of the world's ClusterQueue has this status and reason, and a message
// that contains these words.
func (w *world) untilQueue(status metav1.ConditionStatus, reason, message string) {
	w.Helper()
	what := fmt.Sprintf("the ClusterQueue has Active=%s with reason %q and message %q", status, reason, message)
	harness.Until(w.World, &kueue.ClusterQueueList{}, what, func(list *kueue.ClusterQueueList) bool {
		q, ok := findOwn(w, list).(*kueue.ClusterQueue)
		if !ok {
			return false
		}
		c := meta.FindStatusCondition(q.Status.Conditions, kueue.ClusterQueueActive)
		return c != nil && c.Status == status && c.Reason == reason && strings.Contains(c.Message, message)
	})
}

// untilPending waits until the Workload has no quota, for the reason and with these words in the message.
func (w *world) untilPending(name, reason, message string) {
	w.Helper()
	w.UntilWorkload(name, fmt.Sprintf("waits with reason %q and message %q", reason, message),
		harness.Waits(reason, message))
}

// setQuota sets the nominal quota of the world's ClusterQueue.
func (w *world) setQuota(gpus resource.Quantity) {
	w.Helper()
	w.ChangeQueue(w.Namespace,
		func(q *kueue.ClusterQueue) { q.Spec.ResourceGroups[0].Flavors[0].Resources[0].NominalQuota = gpus })
}

// localQueue returns the LocalQueue gpu, which points to the world's ClusterQueue.
func (w *world) localQueue() *kueue.LocalQueue {
	return &kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Name: "gpu", Namespace: w.Namespace},
		Spec: kueue.LocalQueueSpec{ClusterQueue: kueue.ClusterQueueReference(w.Namespace)}}
}

// secondQueue creates the LocalQueue second and its ClusterQueue, with the first flavor of the world's ClusterQueue and
// without a cohort.
func (w *world) secondQueue() {
	w.Helper()
	q := findOwn(w, listAll(w, &kueue.ClusterQueueList{})).(*kueue.ClusterQueue).DeepCopy()
	other := &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace + "-second"}, Spec: q.Spec}
	other.Spec.ResourceGroups[0].Flavors = other.Spec.ResourceGroups[0].Flavors[:1]
	other.Spec.Cohort = ""
	w.Create(other, &kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Name: "second", Namespace: w.Namespace},
		Spec: kueue.LocalQueueSpec{ClusterQueue: kueue.ClusterQueueReference(other.Name)}})
	w.Cleanup(func() { _ = w.Client.Delete(context.Background(), other) })
}

// TestMisconfiguredQueues breaks the configuration of a queue in which the Workload a runs. The conditions of the queue
// and of the pending Workload b say what is wrong, a keeps running, and Workloads of another queue are admitted. After
// the repair b runs too.
func TestMisconfiguredQueues(t *testing.T) {
	cohort := func(w *world, name, parent string) *kueue.Cohort {
		return &kueue.Cohort{ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: kueue.CohortSpec{ParentName: kueue.CohortReference(parent)}}
	}
	for name, tc := range map[string]struct {
		misconfigure func(w *world)
		// queueReason and queueMessage are expected in the queue's condition Active; "" if it remains Ready.
		queueReason, queueMessage string
		active                    bool   // whether the queue still admits Workloads that the problem does not affect
		reason, message           string // expected in the condition QuotaReserved of b
		repair                    func(w *world)
	}{
		"a cycle of cohorts": {
			misconfigure: func(w *world) {
				w.ChangeQueue(w.Namespace, func(q *kueue.ClusterQueue) { q.Spec.Cohort = kueue.CohortReference(w.Namespace) })
				over, under := cohort(w, w.Namespace, w.Namespace+"-over"), cohort(w, w.Namespace+"-over", w.Namespace)
				w.Create(over, under)
				w.Cleanup(func() {
					_ = w.Client.Delete(context.Background(), over)
					_ = w.Client.Delete(context.Background(), under)
				})
			},
			queueReason: kueue.ClusterQueueActiveReasonCohortCycleDetected, queueMessage: "its cohorts form a cycle",
			reason: kueue.WorkloadInadmissible, message: "its cohorts form a cycle",
			repair: func(w *world) {
				if err := w.Client.Delete(w.Context(), cohort(w, w.Namespace+"-over", "")); err != nil {
					w.Fatal(err)
				}
				w.finish("a") // the quota suffices for only one of a and b
			},
		},
		"a missing flavor": {
			misconfigure: func(w *world) {
				w.ChangeQueue(w.Namespace, func(q *kueue.ClusterQueue) {
					missing := *q.Spec.ResourceGroups[0].Flavors[0].DeepCopy()
					missing.Name = kueue.ResourceFlavorReference(w.Namespace + "-missing")
					missing.Resources[0].NominalQuota = resource.MustParse("8")
					q.Spec.ResourceGroups[0].Flavors = append(q.Spec.ResourceGroups[0].Flavors, missing)
				})
			},
			queueReason: kueue.ClusterQueueActiveReasonFlavorNotFound, queueMessage: "-missing", active: true,
			reason: kueue.WorkloadWaitingForQuota, message: "-missing not found",
			repair: func(w *world) {
				flavor := &kueue.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace + "-missing"}}
				w.Create(flavor)
				w.Cleanup(func() { _ = w.Client.Delete(context.Background(), flavor) })
			},
		},
		"a deleted LocalQueue": {
			misconfigure: func(w *world) { w.Delete(w.localQueue()) },
			reason:       kueue.WorkloadInadmissible, message: "LocalQueue gpu doesn't exist",
			repair: func(w *world) {
				w.Create(w.localQueue())
				w.finish("a") // the quota suffices for only one of a and b
			},
		},
		"a quota below the usage": {
			misconfigure: func(w *world) { w.setQuota(resource.MustParse("1")) },
			reason:       kueue.WorkloadExceedsMaxQuota, message: "> maximum capacity (1)",
			repair: func(w *world) { w.setQuota(resource.MustParse("16")) },
		},
		"a quota that is too small, then huge": {
			misconfigure: func(w *world) { w.setQuota(resource.MustParse("4")) },
			reason:       kueue.WorkloadExceedsMaxQuota, message: "> maximum capacity (4)",
			repair: func(w *world) { w.setQuota(resource.MustParse("9223372036854775807")) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.gpuQueue("gpu", 8)
			w.secondQueue()
			w.Create(w.bare("a", "gpu", 8))
			w.UntilWorkload("a", "runs", runs)
			tc.misconfigure(w)
			if tc.queueReason != "" {
				// b must be created after the operator has observed the problem: the message of a pending Workload is
				// updated only when the reason for which it waits changes.
				status := metav1.ConditionFalse
				if tc.active {
					status = metav1.ConditionTrue
				}
				w.untilQueue(status, tc.queueReason, tc.queueMessage)
			}
			w.Create(w.bare("b", "gpu", 8))
			w.untilPending("b", tc.reason, tc.message)
			w.Create(w.bare("other", "second", 1))
			w.UntilWorkload("other", "runs", runs)
			w.UntilWorkload("a", "still runs", runs)
			tc.repair(w)
			w.UntilWorkload("b", "runs", runs)
			w.untilQueue(metav1.ConditionTrue, kueue.ClusterQueueActiveReasonReady, "")
		})
	}
}

// TestGiganticRequestsWaitWithoutBlockingOthers creates Workloads with the largest quantities and counts that the API
// accepts. They wait because they exceed the capacity, and smaller Workloads are admitted. Larger quantities are
// refused.
func TestGiganticRequestsWaitWithoutBlockingOthers(t *testing.T) {
	w := newWorld(t)
	w.gpuQueue("gpu", 8)
	asking := func(name, amount string, pods int32) *kueue.Workload {
		o := w.bare(name, "gpu", 1)
		resources := &o.Spec.PodSets[0].Template.Spec.Containers[0].Resources
		resources.Requests[gpu], resources.Limits[gpu] = resource.MustParse(amount), resource.MustParse(amount)
		o.Spec.PodSets[0].Count = pods
		return o
	}
	for _, amount := range []string{"9223372036854775808", "1e30", "1e999"} {
		if err := w.Client.Create(t.Context(), asking("larger", amount, 1)); !apierrors.IsInvalid(err) ||
			!strings.Contains(err.Error(), "nvidia.com/gpu: "+amount) {
			t.Errorf("creating a Workload of %s GPUs: error %v, want it refused by this amount", amount, err)
		}
	}
	w.Create(asking("large", "9223372036854775807", 1<<30), asking("smallest", "1e-999", 1)) // rounded up to one GPU
	w.untilPending("large", kueue.WorkloadExceedsMaxQuota, "> maximum capacity (8)")
	w.UntilWorkload("smallest", "runs", runs)
	w.Create(w.bare("a", "gpu", 7))
	w.UntilWorkload("a", "runs", runs)
}

// TestInvalidWorkloadsAreRejected creates Workloads that the API server must reject by their schema, so that no
// controller ever observes them.
func TestInvalidWorkloadsAreRejected(t *testing.T) {
	w := newWorld(t)
	w.gpuQueue("gpu", 8)
	for name, invalidate := range map[string]func(*kueue.Workload){
		"a negative request": func(o *kueue.Workload) {
			o.Spec.PodSets[0].Template.Spec.Containers[0].Resources.Requests[gpu] = resource.MustParse("-1")
		},
		"a request with two billion digits": func(o *kueue.Workload) {
			o.Spec.PodSets[0].Template.Spec.Containers[0].Resources.Requests[gpu] = resource.MustParse("1e2147483647")
		},
		"a minCount above the count": func(o *kueue.Workload) { o.Spec.PodSets[0].MinCount = ptr.To[int32](2) },
		"too many pod sets": func(o *kueue.Workload) {
			for i := range 64 {
				more := *o.Spec.PodSets[0].DeepCopy()
				more.Name = kueue.PodSetReference(fmt.Sprintf("more-%d", i))
				o.Spec.PodSets = append(o.Spec.PodSets, more)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := w.bare("invalid", "gpu", 1)
			invalidate(o)
			ctx, cancel := context.WithTimeout(t.Context(), harness.Patience)
			defer cancel()
			if err := w.Client.Create(ctx, o); !apierrors.IsInvalid(err) {
				t.Errorf("creating the Workload: error %v, want Invalid", err)
			}
		})
	}
	w.Create(w.bare("a", "gpu", 8))
	w.UntilWorkload("a", "runs", runs)
}
