package scenario

import (
	"fmt"
	"testing"
	"time"

	"github.com/musterhq/muster/test/scenario/harness"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
)

// submitJob creates a Job of two pods with the edited template.
func (w *world) submitJob(edit func(*corev1.PodSpec)) {
	w.Helper()
	job := w.batchJob("job", "gpu", 2, 100*time.Millisecond)
	edit(&job.Spec.Template.Spec)
	w.untilHeld(job)
	w.Create(job)
}

// otherJobCompletes creates another Job, which is valid and fits, and waits until it completes.
func (w *world) otherJobCompletes() {
	w.Helper()
	w.Create(w.batchJob("other", "gpu", 1, 100*time.Millisecond))
	w.UntilJob("other", "completes", jobCompleted)
}

// jobCompleted reports whether a Job has completed successfully.
func jobCompleted(job *batchv1.Job) bool { return job.Status.CompletionTime != nil }

// TestAJobOutsideALimitRangeRunsOnceTheRangeIsWidened: a Job whose pods the API server would reject because of a
// LimitRange is not admitted, and its Workload names the limit. Other Jobs are admitted meanwhile.
func TestAJobOutsideALimitRangeRunsOnceTheRangeIsWidened(t *testing.T) {
	for name, tc := range map[string]struct {
		limit corev1.LimitRangeItem
		want  string
		widen string
	}{
		"container limit": {
			corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, Max: corev1.ResourceList{gpu: resource.MustParse("1")}},
			`.containers[0]: Invalid value: ["nvidia.com/gpu"]: requests must not be above the limitRange max (container "main" of pod set "main" ` +
				`has the request 2 and the limit 2, the max of LimitRange "small" is 1)`,
			`{"type": "Container", "max": {"nvidia.com/gpu": "2"}}`,
		},
		"pod limit": {
			corev1.LimitRangeItem{Type: corev1.LimitTypePod, Max: corev1.ResourceList{gpu: resource.MustParse("1")}},
			`: Invalid value: ["nvidia.com/gpu"]: requests must not be above the limitRange max (the pod of pod set "main" ` +
				`has the request 2 and the limit 2, the max of LimitRange "small" is 1)`,
			`{"type": "Pod", "max": {"nvidia.com/gpu": "2"}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			limits := &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "small"},
				Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{tc.limit}}}
			w.Create(limits)
			w.gpuQueue("gpu", 8)
			w.submitJob(func(pod *corev1.PodSpec) {
				pod.Containers[0].Resources.Requests[gpu], pod.Containers[0].Resources.Limits[gpu] = resource.MustParse("2"),
					resource.MustParse("2")
			})
			w.UntilWorkloadOf("job", "waits because of the LimitRange", harness.Waits(kueue.WorkloadInadmissible,
				"resources didn't satisfy LimitRange constraints: spec.podSets[0].template.spec"+tc.want))
			w.otherJobCompletes()
			w.Patch(limits, fmt.Sprintf(`{"spec": {"limits": [%s]}}`, tc.widen))
			w.UntilJob("job", "completes", jobCompleted)
		})
	}
}

// TestOverheadCountsAndAJobWaitsForItsRuntimeClass: a Job waits while its RuntimeClass is missing, and while the
// overhead of its pods exceeds the quota. It is admitted when the overhead fits, and its usage includes the overhead.
func TestOverheadCountsAndAJobWaitsForItsRuntimeClass(t *testing.T) {
	w := newWorld(t)
	w.Queue("gpu", simulated,
		corev1.ResourceList{gpu: resource.MustParse("8"), corev1.ResourceCPU: resource.MustParse("2")})
	w.submitJob(func(pod *corev1.PodSpec) {
		pod.RuntimeClassName = ptr.To(w.Namespace)
		pod.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("500m")
	})
	w.UntilWorkloadOf("job", "waits because its RuntimeClass does not exist", harness.Waits(kueue.WorkloadInadmissible,
		fmt.Sprintf("resources validation failed: spec.podSets[0].template.spec.runtimeClassName: Not found: %q", w.Namespace)))
	w.otherJobCompletes()

	class := &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace}, Handler: "sandbox",
		Overhead: &nodev1.Overhead{PodFixed: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}}}
	w.Shared(class)
	w.UntilWorkloadOf("job", "waits because its overhead exceeds the quota",
		harness.Waits(kueue.WorkloadExceedsMaxQuota, "current podset request (3) > maximum capacity (2)"))
	w.Patch(class, `{"overhead": {"podFixed": {"cpu": "250m"}}}`)
	admitted := w.UntilWorkloadOf("job", "is admitted", func(o *kueue.Workload) bool { return o.Status.Admission != nil })
	if used := admitted.Status.Admission.PodSetAssignments[0].ResourceUsage[corev1.ResourceCPU]; used.Cmp(
		resource.MustParse("1500m")) != 0 {
		t.Errorf("usage of two pods with 500m CPU and 250m overhead each is %s, want 1500m", used.String())
	}
	w.UntilJob("job", "completes", jobCompleted)
}

// TestResourceClaimsAreRejected: a Job whose pods have resource claims is not admitted, because claims are not counted
// against quota.
func TestResourceClaimsAreRejected(t *testing.T) {
	w := newWorld(t)
	w.gpuQueue("gpu", 8)
	w.submitJob(func(pod *corev1.PodSpec) {
		pod.ResourceClaims = []corev1.PodResourceClaim{{Name: "device", ResourceClaimTemplateName: ptr.To("device")}}
	})
	w.UntilWorkloadOf("job", "waits because of its resource claim", harness.Waits(kueue.WorkloadInadmissible,
		`spec.podSets[0].template.spec.resourceClaims[0]: Forbidden: resource claims are not counted against quota (pod set "main" has the claim "device"; `))
	w.otherJobCompletes()
}
