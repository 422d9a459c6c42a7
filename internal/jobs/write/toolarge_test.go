package write

import (
	"context"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/workload"
)

// errTooLarge is the API server's answer to an object that etcd refuses to store for its size.
var errTooLarge = &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: 500,
	Reason: metav1.StatusReasonUnknown, Message: "etcdserver: request is too large"}}

// TestAnEvictedWorkloadThatDoesNotFitReturnsItsQuota: others wait for it, and whoever may annotate the Workload must
// not be able to keep it from them.
func TestAnEvictedWorkloadThatDoesNotFitReturnsItsQuota(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := kueue.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	w := &kueue.Workload{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "ns",
		OwnerReferences: []metav1.OwnerReference{{Kind: "Job", Name: "a"}}}}
	w.Status.Admission = &kueue.Admission{ClusterQueue: "cq", PodSetAssignments: []kueue.PodSetAssignment{{Name: "main"}}}
	workload.SetCondition(w, kueue.WorkloadQuotaReserved, metav1.ConditionTrue, kueue.WorkloadQuotaReservedReason,
		"Quota reserved in ClusterQueue cq", at)
	workload.Evict(w, workload.Eviction{Reason: kueue.WorkloadEvictedByPreemption, Message: "for another"}, at)
	var first sync.Once
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(w).WithStatusSubresource(w).
		WithInterceptorFuncs(interceptor.Funcs{
			SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch,
				opts ...client.SubResourcePatchOption) (err error) {
				first.Do(func() { err = errTooLarge })
				return errorOr(err, func() error { return c.SubResource(sub).Patch(ctx, o, p, opts...) })
			}}).Build()
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(w), w); err != nil {
		t.Fatal(err)
	}
	returned := w.DeepCopy()
	workload.GiveBack(returned, at)
	if err := NewExecutor(c, &fakeRecorder{}).Run(t.Context(), aJob(),
		Batch{Writes: []Write{ChangeStatus(w, returned)}}); err != nil {
		t.Error(err)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(w), w); err != nil {
		t.Fatal(err)
	}
	if workload.HoldsQuota(w) {
		t.Error("the Workload holds quota for ever")
	}
}
