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

// untilQueue waits until the world's ClusterQueue says that it is, or is not, active.
func (w *world) untilQueue(status metav1.ConditionStatus, reason, message string) {
	w.Helper()
	harness.Until(w.World, &kueue.ClusterQueueList{}, "the queue says "+reason+": "+message, func(list *kueue.ClusterQueueList) bool {
		q, ok := findOwn(w, list).(*kueue.ClusterQueue)
		if !ok {
			return false
		}
		c := meta.FindStatusCondition(q.Status.Conditions, kueue.ClusterQueueActive)
		return c != nil && c.Status == status && c.Reason == reason && strings.Contains(c.Message, message)
	})
}

// untilWaits waits until the Workload is told so.
func (w *world) untilPending(name, reason, message string) {
	w.Helper()
	w.UntilWorkload(name, "waits: "+reason+": "+message, harness.Waits(reason, message))
}

// quota sets what the world's queue has.
func (w *world) quota(gpus resource.Quantity) {
	w.Helper()
	w.ChangeQueue(w.Namespace, func(q *kueue.ClusterQueue) { q.Spec.ResourceGroups[0].Flavors[0].Resources[0].NominalQuota = gpus })
}

// localQueue is the one that leads to the world's queue.
func (w *world) localQueue() *kueue.LocalQueue {
	return &kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Name: "gpu", Namespace: w.Namespace},
		Spec: kueue.LocalQueueSpec{ClusterQueue: kueue.ClusterQueueReference(w.Namespace)}}
}

// beside is a queue of one GPU, of the same flavor, in which others go on.
func (w *world) secondQueue() {
	w.Helper()
	q := findOwn(w, listAll(w, &kueue.ClusterQueueList{})).(*kueue.ClusterQueue).DeepCopy()
	other := &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace + "-beside"}, Spec: q.Spec}
	other.Spec.ResourceGroups[0].Flavors = other.Spec.ResourceGroups[0].Flavors[:1]
	other.Spec.Cohort = ""
	w.Create(other, &kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Name: "beside", Namespace: w.Namespace},
		Spec: kueue.LocalQueueSpec{ClusterQueue: kueue.ClusterQueueReference(other.Name)}})
	w.Cleanup(func() { _ = w.Client.Delete(context.Background(), other) })
}

// TestMisconfiguredQueues: something is wrong with a queue in which a runs. It is told, in the
// queue's condition and in that of b, which waits; a runs on, others go on; and when it
// is mended b runs too.
func TestMisconfiguredQueues(t *testing.T) {
	cohort := func(w *world, name, parent string) *kueue.Cohort {
		return &kueue.Cohort{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: kueue.CohortSpec{ParentName: kueue.CohortReference(parent)}}
	}
	for name, tc := range map[string]struct {
		spoil          func(w *world)
		queue, problem string // of the queue's condition; "" where nothing is to be told
		admits         bool   // those whom the problem does not concern
		reason, waits  string // of b
		mend           func(w *world)
	}{
		"cohorts that form a cycle": {
			spoil: func(w *world) {
				w.ChangeQueue(w.Namespace, func(q *kueue.ClusterQueue) { q.Spec.Cohort = kueue.CohortReference(w.Namespace) })
				over, under := cohort(w, w.Namespace, w.Namespace+"-over"), cohort(w, w.Namespace+"-over", w.Namespace)
				w.Create(over, under)
				w.Cleanup(func() {
					_ = w.Client.Delete(context.Background(), over)
					_ = w.Client.Delete(context.Background(), under)
				})
			},
			queue: kueue.ClusterQueueActiveReasonUnknown, problem: "its cohorts form a cycle",
			reason: kueue.WorkloadInadmissible, waits: "its cohorts form a cycle",
			mend: func(w *world) {
				if err := w.Client.Delete(w.Context(), cohort(w, w.Namespace+"-over", "")); err != nil {
					w.Fatal(err)
				}
				w.finish("a") // there is no more quota than before
			},
		},
		"a flavor that does not exist": {
			spoil: func(w *world) {
				w.ChangeQueue(w.Namespace, func(q *kueue.ClusterQueue) {
					missing := *q.Spec.ResourceGroups[0].Flavors[0].DeepCopy()
					missing.Name = kueue.ResourceFlavorReference(w.Namespace + "-missing")
					missing.Resources[0].NominalQuota = resource.MustParse("8")
					q.Spec.ResourceGroups[0].Flavors = append(q.Spec.ResourceGroups[0].Flavors, missing)
				})
			},
			queue: kueue.ClusterQueueActiveReasonFlavorNotFound, problem: "-missing", admits: true,
			reason: kueue.WorkloadWaitingForQuota, waits: "-missing not found",
			mend: func(w *world) {
				flavor := &kueue.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace + "-missing"}}
				w.Create(flavor)
				w.Cleanup(func() { _ = w.Client.Delete(context.Background(), flavor) })
			},
		},
		"a LocalQueue that is deleted": {
			spoil:  func(w *world) { w.Delete(w.localQueue()) },
			reason: kueue.WorkloadInadmissible, waits: "LocalQueue gpu doesn't exist",
			mend: func(w *world) {
				w.Create(w.localQueue())
				w.finish("a") // there is no more quota than before
			},
		},
		"a quota below what is used": {
			spoil:  func(w *world) { w.quota(resource.MustParse("1")) },
			reason: kueue.WorkloadExceedsMaxQuota, waits: "> maximum capacity (1)",
			mend: func(w *world) { w.quota(resource.MustParse("16")) },
		},
		"a quota that is too small, and then beyond all bounds": {
			spoil:  func(w *world) { w.quota(resource.MustParse("4")) },
			reason: kueue.WorkloadExceedsMaxQuota, waits: "> maximum capacity (4)",
			mend: func(w *world) { w.quota(resource.MustParse("1e100")) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.gpuQueue("gpu", 8)
			w.secondQueue()
			w.Create(w.bare("a", "gpu", 8))
			w.UntilWorkload("a", "runs", runs)
			tc.spoil(w)
			if tc.queue != "" {
				// Not until it is known: why b waits is written anew only when it waits for something else.
				status := metav1.ConditionFalse
				if tc.admits {
					status = metav1.ConditionTrue
				}
				w.untilQueue(status, tc.queue, tc.problem)
			}
			w.Create(w.bare("b", "gpu", 8))
			w.untilPending("b", tc.reason, tc.waits)
			w.Create(w.bare("other", "beside", 1))
			w.UntilWorkload("other", "goes on", runs)
			w.UntilWorkload("a", "runs on", runs)
			tc.mend(w)
			w.UntilWorkload("b", "runs", runs)
			w.untilQueue(metav1.ConditionTrue, kueue.ClusterQueueActiveReasonReady, "")
		})
	}
}

// TestGiganticRequestsWaitWithoutBlockingOthers: the largest that the API takes.
func TestGiganticRequestsWaitWithoutBlockingOthers(t *testing.T) {
	w := newWorld(t)
	w.gpuQueue("gpu", 8)
	for name, amount := range map[string]string{"large": "9223372036854775807", "larger": "1e30", "largest": "1e999", "smallest": "1e-999"} {
		o := w.bare(name, "gpu", 1)
		quantity := resource.MustParse(amount)
		resources := &o.Spec.PodSets[0].Template.Spec.Containers[0].Resources
		resources.Requests[gpu], resources.Limits[gpu] = quantity, quantity
		o.Spec.PodSets[0].Count = 1 << 30
		if name == "smallest" {
			o.Spec.PodSets[0].Count = 1 // it counts as one whole GPU
		}
		w.Create(o)
	}
	for _, name := range []string{"large", "larger", "largest"} {
		w.untilPending(name, kueue.WorkloadExceedsMaxQuota, "> maximum capacity (8)")
	}
	w.UntilWorkload("smallest", "runs", runs)
	w.Create(w.bare("a", "gpu", 7))
	w.UntilWorkload("a", "runs", runs)
}

// TestInvalidWorkloadsAreRejected: by the API server, before anybody else reads them.
func TestInvalidWorkloadsAreRejected(t *testing.T) {
	w := newWorld(t)
	w.gpuQueue("gpu", 8)
	for name, spoil := range map[string]func(*kueue.Workload){
		"a negative request": func(o *kueue.Workload) {
			o.Spec.PodSets[0].Template.Spec.Containers[0].Resources.Requests[gpu] = resource.MustParse("-1")
		},
		"a request whose digits fill the memory": func(o *kueue.Workload) {
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
			o := w.bare("senseless", "gpu", 1)
			spoil(o)
			ctx, cancel := context.WithTimeout(t.Context(), harness.Patience)
			defer cancel()
			if err := w.Client.Create(ctx, o); !apierrors.IsInvalid(err) {
				t.Errorf("creating it gave %v, want it refused", err)
			}
		})
	}
	w.Create(w.bare("a", "gpu", 8))
	w.UntilWorkload("a", "runs", runs)
}
