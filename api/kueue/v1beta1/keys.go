package v1beta1

// Labels and annotations that users and job controllers set on jobs, pods and Workloads.
const (
	// QueueLabel, on a job, names the LocalQueue that it is submitted to.
	QueueLabel = "kueue.x-k8s.io/queue-name"
	// QueueAnnotation, on a batch Job or a JobSet without QueueLabel, is the older way to name its LocalQueue.
	QueueAnnotation = "kueue.x-k8s.io/queue-name"
	// WorkloadPriorityClassLabel, on a job, names the WorkloadPriorityClass that gives its priority.
	WorkloadPriorityClassLabel = "kueue.x-k8s.io/priority-class"
	// MaxExecTimeSecondsLabel, on a job, becomes maximumExecutionTimeSeconds of its Workload.
	MaxExecTimeSecondsLabel = "kueue.x-k8s.io/max-exec-time-seconds"
	// PrebuiltWorkloadLabel, on a job, names a Workload that was created for it by others.
	PrebuiltWorkloadLabel = "kueue.x-k8s.io/prebuilt-workload-name"
	// JobUIDLabel, on a Workload, holds the UID of the job that it was made for.
	JobUIDLabel = "kueue.x-k8s.io/job-uid"
	// PodSetLabel, on a pod, names the pod set that it belongs to.
	PodSetLabel = "kueue.x-k8s.io/podset"
	// ClusterQueueLabel, on a pod, names the ClusterQueue that admitted it.
	ClusterQueueLabel = "kueue.x-k8s.io/cluster-queue-name"
	// LocalQueueLabel, on a pod, names the LocalQueue of its Workload.
	LocalQueueLabel = "kueue.x-k8s.io/local-queue-name"

	// WorkloadAnnotation, on a pod template, names the Workload that the pod runs for.
	WorkloadAnnotation = "kueue.x-k8s.io/workload"
	// ElasticJobAnnotation, "true" on a job, lets its Workload be replaced by a larger slice.
	ElasticJobAnnotation = "kueue.x-k8s.io/elastic-job"
	// WorkloadSliceNameAnnotation links the slices of one elastic job.
	WorkloadSliceNameAnnotation = "kueue.x-k8s.io/workload-slice-name"
	// WorkloadSliceReplacementForAnnotation, on a slice, holds the key of the slice that it replaces.
	WorkloadSliceReplacementForAnnotation = "kueue.x-k8s.io/workload-slice-replacement-for"
	// AdmissionGatedByAnnotation, on a job or Workload, lists the controllers that block its admission.
	AdmissionGatedByAnnotation = "kueue.x-k8s.io/admission-gated-by"
	// JobMinParallelismAnnotation, on a batch Job, is the minimum parallelism with which it can start.
	JobMinParallelismAnnotation = "kueue.x-k8s.io/job-min-parallelism"
	// JobCompletionsEqualParallelismAnnotation, on a batch Job, keeps completions equal to parallelism.
	JobCompletionsEqualParallelismAnnotation = "kueue.x-k8s.io/job-completions-equal-parallelism"
)

// Annotations on pod templates that request nodes close to each other.
const (
	// PodSetRequiredTopologyAnnotation names the level of which one domain must hold the whole pod set.
	PodSetRequiredTopologyAnnotation = "kueue.x-k8s.io/podset-required-topology"
	// PodSetPreferredTopologyAnnotation names the level of which one domain should hold the whole pod set.
	PodSetPreferredTopologyAnnotation = "kueue.x-k8s.io/podset-preferred-topology"
	// PodSetUnconstrainedTopologyAnnotation, "true", requests placement in any domains.
	PodSetUnconstrainedTopologyAnnotation = "kueue.x-k8s.io/podset-unconstrained-topology"
	// PodSetSliceRequiredTopologyAnnotation names the level of which one domain must hold each slice of a pod set.
	PodSetSliceRequiredTopologyAnnotation = "kueue.x-k8s.io/podset-slice-required-topology"
	// PodSetSliceRequiredTopologyConstraintsAnnotation defines several layers of slices, as JSON.
	PodSetSliceRequiredTopologyConstraintsAnnotation = "kueue.x-k8s.io/podset-slice-required-topology-constraints"
	// PodSetSliceSizeAnnotation is the number of pods in a slice.
	PodSetSliceSizeAnnotation = "kueue.x-k8s.io/podset-slice-size"
	// PodSetGroupNameAnnotation groups pod sets that are placed together.
	PodSetGroupNameAnnotation = "kueue.x-k8s.io/podset-group-name"
)

// Scheduling gates that hide a pod from kube-scheduler until it may run.
const (
	// AdmissionGate holds a pod until its Workload is admitted.
	AdmissionGate = "kueue.x-k8s.io/admission"
	// TopologyGate holds a pod until its place is assigned.
	TopologyGate = "kueue.x-k8s.io/topology"
	// ElasticJobGate holds a pod of a slice that is not yet admitted.
	ElasticJobGate = "kueue.x-k8s.io/elastic-job"
)

// ResourceInUseFinalizer keeps queues, flavors and, if accounting requires it, Workloads until they are not used any
// more.
const ResourceInUseFinalizer = "kueue.x-k8s.io/resource-in-use"

// Values of a Workload's spec.priorityClassSource.
const (
	// WorkloadPriorityClassSource says that spec.priorityClassName names a WorkloadPriorityClass.
	WorkloadPriorityClassSource = "kueue.x-k8s.io/workloadpriorityclass"
	// PodPriorityClassSource says that spec.priorityClassName names a PriorityClass of scheduling.k8s.io.
	PodPriorityClassSource = "scheduling.k8s.io/priorityclass"
)

// DefaultPodSetName is the name of a pod set without one.
const DefaultPodSetName PodSetReference = "main"
