package slim

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/admission/admissiontest"
	"github.com/musterhq/muster/internal/podspec"
	"github.com/musterhq/muster/internal/workload"
)

// fullPod returns a pod as an API server returns it, bound to the node n, with all fields that make pods large.
func fullPod(controller metav1.OwnerReference) *corev1.Pod {
	container := func(name, cpu string) corev1.Container {
		return corev1.Container{
			Name: name, Image: "example.com/trainer:1", Command: []string{"train"}, Args: []string{"--steps", "100"},
			Env: []corev1.EnvVar{{Name: "A", Value: "1"}},
			Resources: corev1.ResourceRequirements{Requests: admissiontest.Quantities("cpu", cpu, "memory", "1Gi"),
				Limits: admissiontest.Quantities("cpu", cpu)},
			VolumeMounts: []corev1.VolumeMount{{Name: "token", MountPath: "/var/run"}},
			Ports:        []corev1.ContainerPort{{ContainerPort: 80}, {ContainerPort: 90, HostPort: 90}},
		}
	}
	sidecar := container("sidecar", "500m")
	sidecar.RestartPolicy = ptr.To(corev1.ContainerRestartPolicyAlways)
	controller.Controller = ptr.To(true)
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "p", Namespace: "ns", UID: "p-uid", ResourceVersion: "7",
			Labels: map[string]string{"kueue.x-k8s.io/podset": "main", "app": "a"},
			Annotations: map[string]string{"kueue.x-k8s.io/workload": "w", "batch.kubernetes.io/job-completion-index": "3",
				"alpha.jobset.sigs.k8s.io/exclusive-topology": "rack", "istio.io/large": "x"},
			OwnerReferences: []metav1.OwnerReference{controller},
			ManagedFields:   []metav1.ManagedFieldsEntry{{Manager: "m"}},
		},
		Spec: corev1.PodSpec{
			NodeName: "n", Containers: []corev1.Container{container("main", "2")},
			InitContainers: []corev1.Container{sidecar, container("init", "4")},
			Overhead:       admissiontest.Quantities("cpu", "100m"), NodeSelector: map[string]string{corev1.LabelHostname: "n"},
			Volumes:     []corev1.Volume{{Name: "token"}},
			Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
		},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, PodIP: "10.0.0.1", HostIPs: []corev1.HostIP{{IP: "1.2.3.4"}},
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
			ContainerStatuses: []corev1.ContainerStatus{{
				Name: "main", Image: "example.com/trainer:1", ImageID: "sha256:1", RestartCount: 2,
				State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}},
				LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 137,
					Reason: "OOMKilled"}},
				Resources: &corev1.ResourceRequirements{Requests: admissiontest.Quantities("cpu", "2", "memory", "1Gi")},
			}},
		},
	}
}

var (
	ofJob        = metav1.OwnerReference{APIVersion: "batch/v1", Kind: "Job", Name: "j"}
	ofReplicaSet = metav1.OwnerReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "r"}
)

func stripped(t *testing.T, pod *corev1.Pod) *corev1.Pod {
	t.Helper()
	out, err := stripPod(pod.DeepCopy())
	if err != nil {
		t.Fatal(err)
	}
	return out.(*corev1.Pod)
}

// TestOfAFinishedWorkloadOnlyRequestsAreKept: clusters keep thousands of finished Workloads. Those of one kind of job
// share what their pods request, whatever else these have.
func TestOfAFinishedWorkloadOnlyRequestsAreKept(t *testing.T) {
	w := &kueue.Workload{
		ObjectMeta: metav1.ObjectMeta{Name: "w", ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}}},
		Spec: kueue.WorkloadSpec{QueueName: "q",
			PodSets: []kueue.PodSet{{Name: "main", Count: 1, Template: corev1.PodTemplateSpec{Spec: fullPod(ofJob).Spec}}}},
		Status: kueue.WorkloadStatus{Admission: &kueue.Admission{ClusterQueue: "cq"}},
	}
	whole := w.DeepCopy()
	whole.ManagedFields = nil
	if _, err := stripWorkload(w); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(whole, w); diff != "" {
		t.Errorf("a running Workload (-whole +stripped):\n%s", diff)
	}
	workload.SetCondition(w, kueue.WorkloadFinished, metav1.ConditionTrue,
		kueue.WorkloadFinishedReasonSucceeded, "", time.Time{})
	if _, err := stripWorkload(w); err != nil {
		t.Fatal(err)
	}
	kept := w.Spec.PodSets[0].Template.Spec
	given := whole.Spec.PodSets[0].Template.Spec
	if diff := cmp.Diff(podspec.Requests(given), podspec.Requests(kept)); diff != "" {
		t.Errorf("the requests of its pods (-whole +stripped):\n%s", diff)
	}
	for i := range kept.Containers {
		if c := kept.Containers[i]; c.Image != "" || c.Env != nil || c.Ports != nil {
			t.Errorf("a container of a finished Workload is %+v, want only its resources", c)
		}
	}
	other := whole.DeepCopy()
	other.Spec.PodSets[0].Template.Spec.Containers[0].Image = "other"
	workload.SetCondition(other, kueue.WorkloadFinished, metav1.ConditionTrue, "", "", time.Time{})
	if _, err := stripWorkload(other); err != nil || &other.Spec.PodSets[0] != &w.Spec.PodSets[0] {
		t.Errorf("two finished Workloads of the same requests have their own copies (error %v)", err)
	}
	if kept.NodeSelector != nil || w.Spec.QueueName != "q" || w.Status.Admission == nil || !workload.IsFinished(w) {
		t.Errorf("finished Workload = %+v, want only requests", w)
	}
}

// TestTemplateOfAnEndedJobIsDropped, unless the Job is that of a JobSet, which may run it again.
func TestTemplateOfAnEndedJobIsDropped(t *testing.T) {
	ended := func(kind batchv1.JobConditionType, status corev1.ConditionStatus, owner string) *batchv1.Job {
		job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "job", Labels: map[string]string{"a": "b"}}}
		if owner != "" {
			job.OwnerReferences = []metav1.OwnerReference{{Kind: owner, Controller: ptr.To(true)}}
		}
		job.Spec.Parallelism = ptr.To[int32](2)
		job.Spec.Template.Spec.Containers = []corev1.Container{{Name: "c"}}
		job.Status.Conditions = []batchv1.JobCondition{{Type: kind, Status: status}}
		return job
	}
	for name, tc := range map[string]struct {
		job   *batchv1.Job
		drops bool
	}{
		"complete":              {ended(batchv1.JobComplete, corev1.ConditionTrue, ""), true},
		"failed, of a CronJob":  {ended(batchv1.JobFailed, corev1.ConditionTrue, "CronJob"), true},
		"suspended":             {ended(batchv1.JobSuspended, corev1.ConditionTrue, ""), false},
		"complete is not true":  {ended(batchv1.JobComplete, corev1.ConditionFalse, ""), false},
		"about to be complete":  {ended(batchv1.JobSuccessCriteriaMet, corev1.ConditionTrue, ""), false},
		"complete, of a JobSet": {ended(batchv1.JobComplete, corev1.ConditionTrue, "JobSet"), false},
	} {
		want := tc.job.DeepCopy()
		if tc.drops {
			want.Spec.Template = corev1.PodTemplateSpec{}
		}
		tc.job.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubectl"}}
		for range 2 { // the cache may transform an object again
			if got, err := stripJob(tc.job); err != nil || !equality.Semantic.DeepEqual(got, want) {
				t.Errorf("%s: kept %+v, %v; want %+v", name, got, err, want)
			}
		}
	}
}

func TestAStrippedPodKeepsItsRequests(t *testing.T) {
	resizing := fullPod(ofJob)
	resizing.Status.ContainerStatuses[0].Resources.Requests = admissiontest.Quantities("cpu", "8", "memory", "1Gi")
	resizing.Status.ContainerStatuses[0].AllocatedResources = admissiontest.Quantities("cpu", "8", "memory", "1Gi")
	refused := fullPod(ofReplicaSet)
	refused.Spec.InitContainers = nil
	refused.Spec.Containers[0].Resources.Requests = admissiontest.Quantities("cpu", "64", "memory", "1Gi")
	refused.Status.ContainerStatuses[0].AllocatedResources = admissiontest.Quantities("cpu", "2", "memory", "1Gi")
	refused.Status.Conditions = append(refused.Status.Conditions,
		corev1.PodCondition{Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: corev1.PodReasonInfeasible})
	for name, tc := range map[string]struct {
		pod *corev1.Pod
		cpu string
	}{
		"a pod of a job":                {fullPod(ofJob), "4600m"},
		"a pod of a service":            {fullPod(ofReplicaSet), "4600m"},
		"a pod that shrinks":            {resizing, "8600m"},
		"a pod whose growth is refused": {refused, "2100m"},
	} {
		t.Run(name, func(t *testing.T) {
			before, after := podspec.RequestsOnNode(tc.pod), podspec.RequestsOnNode(stripped(t, tc.pod))
			if diff := cmp.Diff(before, after); diff != "" {
				t.Errorf("requests (-whole +stripped):\n%s", diff)
			}
			if got := after.Cpu().String(); got != tc.cpu {
				t.Errorf("requests %s cpu, want %s", got, tc.cpu)
			}
		})
	}
}

func TestAStrippedJobPodKeepsIdentityAndStatus(t *testing.T) {
	whole := fullPod(ofJob)
	got := stripped(t, whole)
	if got.Labels["kueue.x-k8s.io/podset"] != "main" || got.Annotations["kueue.x-k8s.io/workload"] != "w" ||
		got.Annotations["batch.kubernetes.io/job-completion-index"] != "3" ||
		got.Annotations["alpha.jobset.sigs.k8s.io/exclusive-topology"] != "rack" {
		t.Errorf("labels = %v, annotations = %v", got.Labels, got.Annotations)
	}
	if metav1.GetControllerOf(got) == nil || got.Spec.NodeName != "n" ||
		got.Spec.NodeSelector[corev1.LabelHostname] != "n" {
		t.Errorf("stripped pod = %+v, want its controller and node", got)
	}
	if s := got.Status.ContainerStatuses; len(s) != 1 || s[0].State.Running == nil || s[0].RestartCount != 2 ||
		s[0].Resources != nil {
		t.Errorf("container statuses = %+v, want one, running and without resources", s)
	}
	if len(got.Spec.Containers[0].Ports) != 1 || got.Spec.Containers[0].Ports[0].HostPort != 90 {
		t.Errorf("ports = %+v, want the host port only", got.Spec.Containers[0].Ports)
	}
	if _, kept := got.Annotations["istio.io/large"]; kept || got.Spec.Volumes != nil ||
		got.Spec.Containers[0].Env != nil || got.ManagedFields != nil {
		t.Errorf("pod = %+v, want volumes, environment and large annotations stripped", got)
	}
	if slices.ContainsFunc(whole.Status.Conditions,
		func(c corev1.PodCondition) bool { return c.Type == corev1.PodReady }) != (len(got.Status.Conditions) == 1) {
		t.Errorf("conditions = %+v, want Ready only", got.Status.Conditions)
	}
}

// TestAStrippedJobPodKeepsHowItEnded: the exit codes, reasons and times of several containers are kept, and why one did
// not start. How long one ran says whether the delays of restarts begin again.
func TestAStrippedJobPodKeepsHowItEnded(t *testing.T) {
	at := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	pod := fullPod(ofJob)
	pod.Status.Phase, pod.Status.Reason, pod.Status.Message = corev1.PodFailed, "Evicted", "the node was low on memory"
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodInitialized}, {Type: corev1.DisruptionTarget,
		Status: corev1.ConditionTrue, Reason: "r", Message: "m", LastTransitionTime: at}, {Type: corev1.PodReady}}
	ended := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 7, FinishedAt: at,
		ContainerID: "containerd://1", StartedAt: at, Reason: "Error", Message: "last words"}}
	unstarted := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 128, FinishedAt: at,
		StartedAt: at, Reason: "StartError", Message: "no such command"}}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: ended, RestartCount: 1},
		{Name: "misspelt", State: unstarted},
		{Name: "other", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}}}}
	got := stripped(t, pod).Status
	want := corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted", Message: "the node was low on memory",
		Conditions: pod.Status.Conditions[1:],
		ContainerStatuses: []corev1.ContainerStatus{{Name: "main", RestartCount: 1,
			State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 7, FinishedAt: at, StartedAt: at,
				Reason: "Error"}}},
			{Name: "misspelt", State: unstarted}, {Name: "other"}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
	if room := cap(stripped(t, pod).Status.Conditions); room != 2 {
		t.Errorf("capacity of the conditions = %d, want 2", room)
	}
}

// TestAStrippedPodOfAVCJobKeepsWhenItStarted: the timeouts of the VCJob's policies count from then, whatever became of
// its containers since.
func TestAStrippedPodOfAVCJobKeepsWhenItStarted(t *testing.T) {
	at := func(minute int) metav1.Time { return metav1.NewTime(time.Date(2026, 1, 2, 3, minute, 0, 0, time.UTC)) }
	began := at(1)
	pod := fullPod(metav1.OwnerReference{APIVersion: "batch.volcano.sh/v1alpha1", Kind: "Job", Name: "j"})
	pod.Labels["volcano.sh/job-name"] = "j"
	pod.Status.StartTime = &began
	pod.Status.ContainerStatuses[0].LastTerminationState.Terminated.StartedAt = at(2)
	pod.Status.ContainerStatuses[0].State.Running.StartedAt = at(3)
	later := pod.DeepCopy()
	later.Status.ContainerStatuses[0].State.Running.StartedAt = at(4)
	for started, pod := range map[metav1.Time]*corev1.Pod{at(3): pod, at(4): later} {
		got := stripped(t, stripped(t, pod)).Status // an informer may strip it twice
		s := got.ContainerStatuses[0]
		if got.StartTime == nil || *got.StartTime != began || s.LastTerminationState.Terminated.StartedAt != at(2) ||
			s.State.Running.StartedAt != started {
			t.Errorf("status = %+v, want the times of the whole pod %+v", got, pod.Status)
		}
	}
}

// TestAStrippedPodOfATrainingJobCanBeStopped: its job gives it a deadline, if it has started, and waits for its grace
// period.
func TestAStrippedPodOfATrainingJobCanBeStopped(t *testing.T) {
	began := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	pod := fullPod(metav1.OwnerReference{APIVersion: "breezeml.ai/v1", Kind: "TrainingJob", Name: "j"})
	pod.Labels["training.kubeflow.org/job-name"] = "j"
	pod.Status.StartTime, pod.Spec.TerminationGracePeriodSeconds, pod.Spec.ActiveDeadlineSeconds = &began,
		ptr.To[int64](300), ptr.To[int64](1)
	got := stripped(t, stripped(t, pod)) // an informer may strip it twice
	if s := got.Spec; got.Status.StartTime == nil || *got.Status.StartTime != began ||
		ptr.Deref(s.TerminationGracePeriodSeconds, 0) != 300 || ptr.Deref(s.ActiveDeadlineSeconds, 0) != 1 {
		t.Errorf("stripped pod = %+v, want its start, grace period and deadline", got)
	}
}

// TestAStrippedPodKeepsTheReportOfItsAgent, and nothing else of what the container said: users write any length.
func TestAStrippedPodKeepsTheReportOfItsAgent(t *testing.T) {
	for said, want := range map[string]string{
		"last words": "",
		"last words\n" + muster.AgentReport + " exit code 137\n": muster.AgentReport,
	} {
		pod := fullPod(ofJob)
		pod.Status.ContainerStatuses[0].State =
			corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 137, Message: said}}
		if got := stripped(t, stripped(t, pod)).Status.ContainerStatuses[0].State.Terminated.Message; got != want {
			t.Errorf("of the message %q is kept %q, want %q", said, got, want)
		}
	}
}

func TestAStrippedServicePodIsSmall(t *testing.T) {
	got := stripped(t, fullPod(ofReplicaSet))
	if len(got.Labels) != 0 || len(got.Annotations) != 0 || len(got.Status.ContainerStatuses) != 0 ||
		len(got.Status.Conditions) != 0 {
		t.Errorf("stripped pod = %+v, want no metadata and status", got)
	}
	if metav1.GetControllerOf(got) == nil {
		t.Error("the stripped pod has no controller, which says whether it belongs to its node")
	}
}
