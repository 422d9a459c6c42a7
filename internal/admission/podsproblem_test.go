package admission

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	testclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/admission/admissiontest"
	"github.com/musterhq/muster/internal/admission/lifecycle"
)

// TestAReadyTimeoutKeepsTheProblemOfThePods, in the words of the pods that are there at that time, found by the label
// of the job's API.
func TestAReadyTimeoutKeepsTheProblemOfThePods(t *testing.T) {
	for name, tc := range map[string]struct {
		apiVersion, kind, label string
		status                  corev1.PodStatus
		want                    string
		claims                  []string // that the pods mount; there is one, data
		event                   string   // of the kubelet, about a volume of the pod p0, "" for none
	}{
		"a Job without its image": {"batch/v1", "Job", "batch.kubernetes.io/job-name",
			corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "c",
				State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff",
					Message: "no image \x1b[31mx"}}}}},
			`: 2 of 2 pods like p0: ImagePullBackOff: no image \x1b[31mx`, nil, ""},
		"a JobSet out of memory": {"jobset.x-k8s.io/v1alpha2", "JobSet", "jobset.sigs.k8s.io/jobset-name",
			corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "c",
				State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "OOMKilled"}}}}},
			": 2 of 2 pods like p0: OOMKilled: container c: exit code 137, killed: out of memory", nil, ""},
		"a Job between two crashes": {"batch/v1", "Job", "batch.kubernetes.io/job-name",
			corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "c",
				State: corev1.ContainerState{
					Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(admissiontest.Now.Add(time.Minute))}},
				LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 3,
					Reason: "Error"}}}}},
			": 2 of 2 pods like p0: Restarted: container c: exit code 3", nil, ""},
		"a VCJob without its claim": {"batch.volcano.sh/v1alpha1", "Job",
			"volcano.sh/job-name", corev1.PodStatus{Conditions: []corev1.PodCondition{{
				Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable",
				Message: `persistentvolumeclaim "data" not found`}}},
			`: 2 of 2 pods like p0: Unschedulable: persistentvolumeclaim "data" not found`, nil, ""},
		"a TrainingJob whose claim kube-scheduler hides": {"breezeml.ai/v1", "TrainingJob", "training.kubeflow.org/job-name",
			corev1.PodStatus{Conditions: []corev1.PodCondition{{
				Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "SchedulerError",
				Message: `error in "DynamicResources" PodGroupPostFilter plugins: not found`}}},
			`: 2 of 2 pods like p0: Unschedulable: claim gone does not exist`, []string{"data", "gone"}, ""},
		"a JobSet without its ConfigMap": {"jobset.x-k8s.io/v1alpha2", "JobSet", "jobset.sigs.k8s.io/jobset-name",
			corev1.PodStatus{Phase: corev1.PodPending},
			`: 2 of 2 pods like p0: FailedMount: volume "config" cannot be mounted: configmap "gone" not found`, nil,
			`MountVolume.SetUp failed for volume "config" : configmap "gone" not found`},
		"pods without a problem": {"batch/v1", "Job", "batch.kubernetes.io/job-name", corev1.PodStatus{}, "", nil, ""},
		"pods of another job": {"batch/v1", "Job", "other",
			corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted"}, "", nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			of := admissiontest.AdmittedWorkload("a")
			of.OwnerReferences = []metav1.OwnerReference{{APIVersion: tc.apiVersion, Kind: tc.kind, Name: "train", UID: "j",
				Controller: ptr.To(true)}}
			w := admissiontest.NewWorld(t, admissiontest.NewClusterQueue("cq", "8"), admissiontest.NewLocalQueue("q", "cq"), of)
			if err := w.Create(t.Context(),
				&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "data"}}); err != nil {
				t.Fatal(err)
			}
			for _, name := range []string{"p1", "p0"} {
				pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name,
					Labels: map[string]string{tc.label: "train"}}, Status: tc.status}
				if tc.event != "" {
					pod.UID, pod.Spec.NodeName = types.UID(name), "n"
				}
				for _, claim := range tc.claims {
					pod.Spec.Volumes = append(pod.Spec.Volumes,
						corev1.Volume{VolumeSource: corev1.VolumeSource{
							PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}})
				}
				if err := w.Create(t.Context(), pod); err != nil {
					t.Fatal(err)
				}
			}
			if tc.event != "" {
				if err := w.Create(t.Context(),
					&corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "e"}, Reason: "FailedMount", Message: tc.event,
						InvolvedObject: corev1.ObjectReference{UID: "p0"},
						LastTimestamp:  metav1.NewTime(admissiontest.Now.Add(time.Minute))}); err != nil {
					t.Fatal(err)
				}
			}
			r := newWorkloads(w, lifecycle.Policy{PodsReady: &lifecycle.PodsReady{Timeout: time.Minute,
				BackoffBase: time.Second}, BackoffMax: time.Hour})
			r.clock = testclock.NewFakePassiveClock(admissiontest.Now.Add(2 * time.Minute))
			if _, err := r.Reconcile(t.Context(), requestFor("a")); err != nil {
				t.Fatal(err)
			}
			evicted := meta.FindStatusCondition(w.Workload("a").Status.Conditions, kueue.WorkloadEvicted)
			if evicted == nil || evicted.Reason != kueue.WorkloadEvictedByPodsReadyTimeout {
				t.Fatalf("condition Evicted = %+v, want the timeout", evicted)
			}
			if got, want := evicted.Message, "Exceeded the PodsReady timeout ns/a"+tc.want; got != want ||
				strings.ContainsRune(got, '\x1b') {
				t.Errorf("got  %q\nwant %q", got, want)
			}
		})
	}
}
