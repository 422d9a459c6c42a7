package decisions

import (
	"encoding/json"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/admission/admissiontest"
)

// drawStatus draws a status with and without each kind of field: objects, lists, numbers, and maps within objects.
func drawStatus(t *rapid.T) (out kueue.WorkloadStatus) {
	if rapid.Bool().Draw(t, "admitted") {
		assignment := kueue.PodSetAssignment{Name: "main", Flavors: map[corev1.ResourceName]kueue.ResourceFlavorReference{},
			ResourceUsage: corev1.ResourceList{}}
		for _, name := range rapid.SliceOfDistinct(
			rapid.SampledFrom([]corev1.ResourceName{"cpu", "memory", "nvidia.com/gpu"}), rapid.ID).Draw(t, "resources") {
			assignment.Flavors[name] = "f"
			assignment.ResourceUsage[name] = *resource.NewQuantity(rapid.Int64Range(0, 3).Draw(t, "amount"), resource.DecimalSI)
		}
		out.Admission = &kueue.Admission{
			ClusterQueue: rapid.SampledFrom([]kueue.ClusterQueueReference{"a", "b"}).Draw(t, "queue"),
			PodSetAssignments: rapid.SampledFrom([][]kueue.PodSetAssignment{nil, {assignment}, {assignment, assignment}}).
				Draw(t, "assignments"),
		}
	}
	if rapid.Bool().Draw(t, "requeued") {
		out.RequeueState = &kueue.RequeueState{
			Count: rapid.SampledFrom([]*int32{nil, ptr.To[int32](0), ptr.To[int32](2)}).Draw(t, "count")}
		if rapid.Bool().Draw(t, "waits") {
			out.RequeueState.RequeueAt = ptr.To(metav1.NewTime(admissiontest.Now))
		}
	}
	for _, kind := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{kueue.WorkloadAdmitted, kueue.WorkloadEvicted,
		kueue.WorkloadFinished}), 0, 3, rapid.ID).Draw(t, "conditions") {
		out.Conditions = append(out.Conditions, metav1.Condition{
			Type: kind, Status: rapid.SampledFrom([]metav1.ConditionStatus{"True", "False"}).Draw(t, "status"),
			LastTransitionTime: metav1.NewTime(admissiontest.Now)})
	}
	out.AccumulatedPastExexcutionTimeSeconds = rapid.SampledFrom([]*int32{nil, ptr.To[int32](0), ptr.To[int32](7)}).
		Draw(t, "seconds")
	out.ReclaimablePods = rapid.SampledFrom([][]kueue.ReclaimablePod{nil, {}, {{Name: "main", Count: 1}}}).
		Draw(t, "reclaimable")
	return out
}

func TestAStatusPatchGivesTheDesiredStatus(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seen, desired := admissiontest.NewWorkload("w", 1, nil), admissiontest.NewWorkload("w", 1, nil)
		seen.ResourceVersion = "7"
		seen.Status, desired.Status = drawStatus(t), drawStatus(t)
		patch, err := statusPatch(seen, desired)
		if err != nil {
			t.Fatal(err)
		}
		stored, err := json.Marshal(seen)
		if err != nil {
			t.Fatal(err)
		}
		stored, err = jsonpatch.MergePatch(stored, patch)
		if err != nil {
			t.Fatal(err)
		}
		var got kueue.Workload
		if err := json.Unmarshal(stored, &got); err != nil {
			t.Fatal(err)
		}
		desired.ResourceVersion = "7"
		if diff := cmp.Diff(desired, &got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("status after the patch %s (-want +got):\n%s", patch, diff)
		}
	})
}

func TestAStatusPatchOmitsEqualFields(t *testing.T) {
	seen := admissiontest.NewWorkload("w", 1, nil)
	seen.ResourceVersion = "7"
	seen.Status.Conditions = []metav1.Condition{{Type: kueue.WorkloadFinished}}
	desired := seen.DeepCopy()
	desired.Status.AccumulatedPastExexcutionTimeSeconds = ptr.To[int32](3)
	patch, err := statusPatch(seen, desired)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"metadata":{"resourceVersion":"7"},"status":{"accumulatedPastExexcutionTimeSeconds":3}}`
	if string(patch) != want {
		t.Errorf("patch = %s, want %s", patch, want)
	}
}
