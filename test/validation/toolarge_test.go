package validation

import (
	"sort"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/refusal"
	"github.com/musterhq/muster/internal/testcluster"
	"github.com/musterhq/muster/internal/workload"
)

// TestAPaddedWorkloadCanLoseItsQuota: after its admission a Workload is padded with annotations until not one byte more
// fits. The API server refuses the eviction in words that are known to mean its size, and takes the brief form.
func TestAPaddedWorkloadCanLoseItsQuota(t *testing.T) {
	cluster := testcluster.Get(t)
	c, err := client.New(cluster.Config, client.Options{Scheme: testcluster.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	w := &kueue.Workload{ObjectMeta: metav1.ObjectMeta{Name: "padded", Namespace: cluster.Namespace(t),
		// The garbage collector leaves an owner alone whose kind it does not know.
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "example.com/v1", Kind: "Anything", Name: "a", UID: "u"}}}}
	w.Spec = kueue.WorkloadSpec{QueueName: "q",
		PodSets: []kueue.PodSet{{Name: "main", Count: 1, Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "c", Image: "i",
				Env: []corev1.EnvVar{{Name: "LARGE", Value: strings.Repeat("a", 1400<<10)}}}}}}}}}
	if err := c.Create(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	admitted := w.DeepCopy()
	admitted.Status.Admission = &kueue.Admission{ClusterQueue: "q",
		PodSetAssignments: []kueue.PodSetAssignment{{Name: "main", Count: ptr.To[int32](1)}}}
	workload.SetCondition(admitted, kueue.WorkloadQuotaReserved, metav1.ConditionTrue, kueue.WorkloadQuotaReservedReason,
		"Quota reserved in ClusterQueue q", at)
	workload.SetCondition(admitted, kueue.WorkloadAdmitted, metav1.ConditionTrue, kueue.WorkloadAdmittedReason,
		"The workload is admitted", at)
	if err := c.Status().Patch(t.Context(), admitted, client.MergeFrom(w)); err != nil {
		t.Fatal(err)
	}
	pad := func(size int) error {
		padded := admitted.DeepCopy()
		padded.Annotations = map[string]string{"pad": strings.Repeat("a", size)}
		return c.Patch(t.Context(), padded, client.MergeFrom(admitted))
	}
	fits := sort.Search(200<<10, func(size int) bool { return pad(size+1) != nil })
	if err := pad(fits); err != nil {
		t.Fatal(err)
	}
	if err := pad(fits + 1); !refusal.IsTooLarge(err) {
		t.Fatalf("one byte more: %v, want a refusal for the size", err)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(w), w); err != nil {
		t.Fatal(err)
	}
	evicted := w.DeepCopy()
	workload.Evict(evicted, workload.Eviction{Reason: kueue.WorkloadEvictedByPreemption, Cause: "InClusterQueue",
		Message: "for another"}, at)
	brief := workload.InBrief(w, evicted)
	if err := c.Status().Patch(t.Context(), evicted, client.MergeFrom(w)); !refusal.IsTooLarge(err) {
		t.Errorf("the eviction: %v, want a refusal for the size", err)
	}
	if err := c.Status().Patch(t.Context(), brief, client.MergeFrom(w)); err != nil {
		t.Fatalf("the brief form: %v", err)
	}
	if workload.HoldsQuota(brief) {
		t.Error("the Workload holds quota for ever")
	}
}
