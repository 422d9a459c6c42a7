package slim

import (
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	breezeml "github.com/musterhq/muster/api/breezeml/v1"
	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	"github.com/musterhq/muster/internal/replicas"
	"github.com/musterhq/muster/internal/workload"
)

// ByObject is for the options of a manager's cache. The operator has one watch of each kind, and a cluster may have a
// hundred thousand pods. An object read from the cache may only be changed by a patch that is computed from it: an
// update would remove the fields that the cache does not keep.
func ByObject() map[client.Object]cache.ByObject {
	return map[client.Object]cache.ByObject{
		&corev1.Node{}:    {Transform: stripNode},
		&corev1.Pod{}:     {Transform: stripPod},
		&kueue.Workload{}: {Transform: stripWorkload},
		&batchv1.Job{}:    {Transform: stripJob},
	}
}

// stripNode drops the large fields of a Node that nothing reads.
func stripNode(object any) (any, error) {
	if node, ok := object.(*corev1.Node); ok {
		node.ManagedFields = nil
		node.Annotations = nil
		node.Status.Images = nil
	}
	return object, nil
}

// stripWorkload keeps of the pod sets of a finished Workload only what they request: clusters keep finished Workloads
// for as long as their jobs, and by their requests the engine knows which jobs are like them. What Workloads have in
// common is interned.
func stripWorkload(object any) (any, error) {
	w, ok := object.(*kueue.Workload)
	if !ok {
		return object, nil
	}
	w.ManagedFields = nil
	if workload.IsFinished(w) {
		w.Spec.PodSets = requestsOf(w.Spec.PodSets)
	}
	shareWorkload(w)
	return w, nil
}

// requestsOf returns the pod sets with nothing but their numbers of pods, what the pods request, and their deadlines.
func requestsOf(podSets []kueue.PodSet) []kueue.PodSet {
	out := make([]kueue.PodSet, len(podSets))
	for i := range podSets {
		given := &podSets[i].Template.Spec
		out[i] = kueue.PodSet{Name: podSets[i].Name, Count: podSets[i].Count}
		out[i].Template.Spec = corev1.PodSpec{
			Containers: resourcesOf(given.Containers), InitContainers: resourcesOf(given.InitContainers),
			Overhead: given.Overhead, Resources: given.Resources, RuntimeClassName: given.RuntimeClassName,
			ActiveDeadlineSeconds: given.ActiveDeadlineSeconds,
		}
	}
	return out
}

// resourcesOf returns the containers with nothing but their resources.
func resourcesOf(containers []corev1.Container) []corev1.Container {
	out := make([]corev1.Container, len(containers))
	for i := range containers {
		c := &containers[i]
		out[i] = corev1.Container{Name: c.Name, RestartPolicy: c.RestartPolicy, Resources: c.Resources}
	}
	return out
}

// stripJob drops the pod template of a batch Job that has ended, which is most of its size: clusters keep ended Jobs,
// and nothing reads their templates. Only a JobSet reads the templates of its Jobs, which it may run again.
func stripJob(object any) (any, error) {
	job, ok := object.(*batchv1.Job)
	if !ok {
		return object, nil
	}
	job.ManagedFields = nil
	if owner := metav1.GetControllerOf(job); hasEnded(job) && (owner == nil || owner.Kind != "JobSet") {
		job.Spec.Template = corev1.PodTemplateSpec{}
	}
	return job, nil
}

// hasEnded reports whether the Job is complete or has failed.
func hasEnded(job *batchv1.Job) bool {
	return slices.ContainsFunc(job.Status.Conditions, func(c batchv1.JobCondition) bool {
		return (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) && c.Status == corev1.ConditionTrue
	})
}

// stripPod keeps of a Pod its identity, its node and node selection, its requests and its status. Of a pod that no
// job can own it keeps only requests and node.
func stripPod(object any) (any, error) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return object, nil
	}
	keep := detailOf(pod)
	meta := metav1.ObjectMeta{
		Name: pod.Name, Namespace: shareText(pod.Namespace), UID: pod.UID, ResourceVersion: pod.ResourceVersion,
		Generation:        pod.Generation,
		CreationTimestamp: pod.CreationTimestamp, DeletionTimestamp: pod.DeletionTimestamp,
		DeletionGracePeriodSeconds: pod.DeletionGracePeriodSeconds,
		OwnerReferences:            shareOwners(pod.OwnerReferences),
	}
	if keep > resizesOnly {
		meta.Labels, meta.Annotations, meta.Finalizers = shareMap(pod.Labels), shareMap(jobAnnotations(pod.Annotations)),
			shareFinalizers(pod.Finalizers)
	}
	started, grace, deadline := pod.Status.StartTime, pod.Spec.TerminationGracePeriodSeconds,
		pod.Spec.ActiveDeadlineSeconds
	pod.ObjectMeta = meta
	pod.Spec = strippedSpec(&pod.Spec)
	stripStatus(&pod.Status, &pod.Spec, keep)
	if keep > resizesOnly && pod.Labels[breezeml.JobNameLabel] != "" { // a TrainingJob stops its pods by a deadline
		pod.Status.StartTime, pod.Spec.TerminationGracePeriodSeconds, pod.Spec.ActiveDeadlineSeconds =
			started, grace, deadline
	}
	return pod, nil
}

// ControlledByOthers reports whether the pod's controller cannot be a job: it is one of Kubernetes' apps, a
// replication controller, or a Node for the kubelet's static pods.
func ControlledByOthers(pod *corev1.Pod) bool {
	owner := metav1.GetControllerOf(pod)
	return owner != nil && (strings.HasPrefix(owner.APIVersion, "apps/") || owner.APIVersion == "v1")
}

// jobAnnotations returns the annotations that job APIs and Muster put on pods, but for certificates, which are large.
func jobAnnotations(annotations map[string]string) map[string]string {
	var out map[string]string
	for key, value := range annotations {
		if key == muster.ProgressAuthorityAnnotation {
			continue
		}
		domain, _, _ := strings.Cut(key, "/")
		for _, known := range []string{"kueue.x-k8s.io", "jobset.sigs.k8s.io", "muster.dev", "batch.kubernetes.io",
			"volcano.sh", "tensorstack.dev", "lattice.dev", "breezeml.ai"} {
			if domain == known || strings.HasSuffix(domain, "."+known) {
				if out == nil {
					out = map[string]string{}
				}
				out[key] = value
			}
		}
	}
	return out
}

func strippedSpec(s *corev1.PodSpec) corev1.PodSpec {
	return corev1.PodSpec{
		NodeName: shareText(s.NodeName), NodeSelector: shareMap(s.NodeSelector), Affinity: nodeAffinity(s.Affinity),
		SchedulingGates: s.SchedulingGates,
		Containers:      shareContainers(strippedContainers(s.Containers)),
		InitContainers:  shareContainers(strippedContainers(s.InitContainers)),
		Overhead:        s.Overhead, Resources: s.Resources, RuntimeClassName: s.RuntimeClassName, HostNetwork: s.HostNetwork,
		RestartPolicy: shareText(s.RestartPolicy), Priority: sharePriority(s.Priority),
		SchedulerName: shareText(s.SchedulerName),
		Hostname:      s.Hostname, Subdomain: shareText(s.Subdomain), SchedulingGroup: s.SchedulingGroup,
	}
}

// nodeAffinity returns the required node affinity, the only part of an affinity that the operator reads.
func nodeAffinity(a *corev1.Affinity) *corev1.Affinity {
	if a == nil || a.NodeAffinity == nil || a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return nil
	}
	return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution}}
}

func strippedContainers(containers []corev1.Container) []corev1.Container {
	if len(containers) == 0 {
		return nil
	}
	out := make([]corev1.Container, len(containers))
	for i := range containers {
		c := &containers[i]
		// Limits are not needed: the API server has copied them to missing requests.
		out[i] = corev1.Container{Name: c.Name, Resources: corev1.ResourceRequirements{Requests: c.Resources.Requests},
			RestartPolicy: c.RestartPolicy}
		for _, port := range c.Ports {
			if port.HostPort != 0 {
				out[i].Ports = append(out[i].Ports, port)
			}
		}
	}
	return out
}

// detail is how much is kept of a pod's status.
type detail int

const (
	// resizesOnly: pods that no job can own.
	resizesOnly detail = iota
	// exits: of a container, also its state, its exit and its restarts.
	exits
	// starts: also when containers started, for the timeouts of VCJobs' policies. A status with a time belongs to one pod
	// only, so that it cannot be interned.
	starts
)

func detailOf(pod *corev1.Pod) detail {
	switch {
	case ControlledByOthers(pod):
		return resizesOnly
	case pod.Labels[volcano.JobNameKey] != "":
		return starts
	}
	return exits
}

// stripStatus keeps the phase, some conditions, and of the rest what the detail says.
func stripStatus(s *corev1.PodStatus, spec *corev1.PodSpec, keep detail) {
	s.HostIP, s.HostIPs, s.PodIP, s.PodIPs, s.NominatedNodeName, s.QOSClass = "", nil, "", nil, "", ""
	s.EphemeralContainerStatuses, s.ResourceClaimStatuses = nil, nil
	if keep < starts {
		s.StartTime = nil
	}
	s.ContainerStatuses = strippedStatuses(s.ContainerStatuses, spec.Containers, keep)
	s.InitContainerStatuses = strippedStatuses(s.InitContainerStatuses, spec.InitContainers, keep)
	s.Phase = shareText(s.Phase)
	kept := jobPodConditions
	if keep == resizesOnly {
		kept = otherPodConditions
	}
	s.Conditions = strippedConditions(s.Conditions, kept)
}

// strippedConditions returns the conditions of the kept types, in a slice without spare capacity.
func strippedConditions(conditions []corev1.PodCondition, kept []corev1.PodConditionType) (out []corev1.PodCondition) {
	isKept := func(c *corev1.PodCondition) bool { return slices.Contains(kept, c.Type) }
	count := 0
	for i := range conditions {
		if isKept(&conditions[i]) {
			count++
		}
	}
	if count == 0 {
		return nil
	}
	out = make([]corev1.PodCondition, 0, count)
	for i := range conditions {
		if c := conditions[i]; isKept(&c) {
			c.Type, c.Status, c.Reason = shareText(c.Type), shareText(c.Status), shareText(c.Reason)
			out = append(out, c)
		}
	}
	return out
}

// jobPodConditions are the conditions that are kept of pods of jobs, otherPodConditions the conditions that are kept of
// all other pods.
var (
	otherPodConditions = []corev1.PodConditionType{corev1.PodResizePending}
	jobPodConditions   = []corev1.PodConditionType{corev1.PodResizePending, corev1.PodScheduled, corev1.PodReady,
		corev1.DisruptionTarget}
)

// strippedStatuses drops images, mounts and users. It keeps a container's resources if they differ from the resources
// in its spec: then the container is being resized, and uses the larger ones of its node.
func strippedStatuses(statuses []corev1.ContainerStatus, containers []corev1.Container,
	keep detail) []corev1.ContainerStatus {
	out := make([]corev1.ContainerStatus, 0, len(statuses))
	for i := range statuses {
		s := &statuses[i]
		kept := corev1.ContainerStatus{Name: s.Name}
		resized := isResized(s, containers)
		if resized {
			kept.Resources, kept.AllocatedResources = s.Resources, s.AllocatedResources
		}
		if keep > resizesOnly {
			kept.State, kept.Ready, kept.RestartCount = strippedState(&s.State, keep), s.Ready, s.RestartCount
		}
		if keep == starts {
			kept.LastTerminationState = strippedState(&s.LastTerminationState, keep)
		}
		if resized || keep > resizesOnly {
			out = append(out, kept)
		}
	}
	return shareStatuses(out)
}

// running is the shared state of all running containers whose start does not matter.
var running = &corev1.ContainerStateRunning{}

// strippedState keeps whether the container runs, or how it ended, when, and after what time; of what the container
// itself said at its end, only whether the agent in it has reported a failure. A container that does neither is
// waiting.
func strippedState(s *corev1.ContainerState, keep detail) (out corev1.ContainerState) {
	switch {
	case s.Terminated != nil:
		out.Terminated = &corev1.ContainerStateTerminated{ExitCode: s.Terminated.ExitCode, StartedAt: s.Terminated.StartedAt,
			FinishedAt: s.Terminated.FinishedAt,
			Reason:     shareText(s.Terminated.Reason), Message: replicas.WhyNotStarted(s.Terminated)}
		if strings.Contains(s.Terminated.Message, muster.AgentReport) {
			out.Terminated.Message = muster.AgentReport
		}
	case s.Running != nil && keep == starts:
		out.Running = &corev1.ContainerStateRunning{StartedAt: s.Running.StartedAt}
	case s.Running != nil:
		out.Running = running
	}
	return out
}

// isResized reports whether a container has other resources than its spec requests.
func isResized(s *corev1.ContainerStatus, containers []corev1.Container) bool {
	for i := range containers {
		if containers[i].Name != s.Name {
			continue
		}
		requests := containers[i].Resources.Requests
		return s.Resources != nil && !equality.Semantic.DeepEqual(s.Resources.Requests, requests) ||
			len(s.AllocatedResources) > 0 && !equality.Semantic.DeepEqual(s.AllocatedResources, requests)
	}
	return false
}
