package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	bus "github.com/musterhq/muster/api/volcano/bus/v1alpha1"
)

// Job is a set of tasks, each a number of equal pods, that start together.
//
// Validation rules that involve several parts of it are in tools/crdgen/vcjob.go.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:path=jobs,shortName=vcjob;vj
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="STATUS",type=string,JSONPath=`.status.state.phase`,description="State of the job"
// +kubebuilder:printcolumn:name="minAvailable",type=integer,JSONPath=`.status.minAvailable`,description="Pods that must run together"
// +kubebuilder:printcolumn:name="RUNNINGS",type=integer,JSONPath=`.status.running`,description="Running pods"
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=`.metadata.creationTimestamp`,description="Time since creation"
// +kubebuilder:printcolumn:name="QUEUE",type=string,priority=1,JSONPath=`.spec.queue`,description="Queue that the job names"
type Job struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state of the job.
	Spec JobSpec `json:"spec"`
	// status is the observed state of the job.
	//
	// +optional
	Status JobStatus `json:"status,omitempty"`
}

// JobList is a list of Jobs.
//
// +kubebuilder:object:root=true
type JobList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Job `json:"items"`
}

// JobSpec describes a Job. After creation only minAvailable, replicas and priorityClassName may change.
type JobSpec struct {
	// schedulerName is the scheduler of all pods whose template names none.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	SchedulerName string `json:"schedulerName,omitempty"`

	// minAvailable is how many pods must be able to run together before any is started. If it is 0 or absent, it is the
	// sum over the tasks.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	MinAvailable int32 `json:"minAvailable,omitempty"`

	// volumes are mounted into all containers of all pods.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Volumes []VolumeSpec `json:"volumes,omitempty"`

	// tasks are the pods, in groups of equal pods.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Tasks []TaskSpec `json:"tasks,omitempty"`

	// policies determine the actions on events of pods whose task has no policy for them.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Policies []LifecyclePolicy `json:"policies,omitempty"`

	// plugins configure pods to find each other, keyed by the plugin's name, with arguments.
	//
	// +optional
	// +kubebuilder:validation:MaxProperties=16
	Plugins map[string]PluginArguments `json:"plugins,omitempty"`

	// runningEstimate is the expected duration of the job.
	//
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:Pattern=`^(0|([0-9]{1,6}(\.[0-9]{1,9})?h)?([0-9]{1,7}(\.[0-9]{1,9})?m)?([0-9]{1,9}(\.[0-9]{1,9})?s)?([0-9]{1,9}(\.[0-9]{1,9})?(ms|us|µs|ns))?)$`
	RunningEstimate *metav1.Duration `json:"runningEstimate,omitempty"`

	// queue is the name of the queue; if empty, default.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)?$`
	Queue string `json:"queue,omitempty"`

	// maxRetry is the number of restarts at which the job fails: with 2 it is restarted once; 0 means 3.
	//
	// +optional
	// +kubebuilder:default=3
	// +kubebuilder:validation:Minimum=0
	MaxRetry int32 `json:"maxRetry,omitempty"`

	// ttlSecondsAfterFinished is how long the job is kept after its end; forever if absent.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished,omitempty"`

	// priorityClassName is the name of the job's priority class.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	PriorityClassName string `json:"priorityClassName,omitempty"`

	// minSuccess is how many pods must succeed for the job to succeed; then it ends. Without it the job ends with its
	// last pod.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	MinSuccess *int32 `json:"minSuccess,omitempty"`

	// networkTopology determines how close to each other the pods are placed.
	//
	// +optional
	NetworkTopology *NetworkTopologySpec `json:"networkTopology,omitempty"`
}

// PluginArguments are the arguments of a plugin, as on a command line.
//
// +listType=atomic
// +kubebuilder:validation:MaxItems=64
type PluginArguments []string

// NetworkTopologyMode says whether the pods must or should be close to each other.
//
// +kubebuilder:validation:Enum=hard;soft
type NetworkTopologyMode string

const (
	// HardNetworkTopologyMode: they must.
	HardNetworkTopologyMode NetworkTopologyMode = "hard"
	// SoftNetworkTopologyMode: they should.
	SoftNetworkTopologyMode NetworkTopologyMode = "soft"
)

// NetworkTopologySpec determines how close to each other pods are placed.
type NetworkTopologySpec struct {
	// mode says whether this is required or preferred.
	//
	// +optional
	// +kubebuilder:default=hard
	Mode NetworkTopologyMode `json:"mode,omitempty"`

	// highestTierAllowed is the highest tier of a domain that may hold them all; 1 is the smallest.
	//
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	HighestTierAllowed *int32 `json:"highestTierAllowed,omitempty"`
}

// VolumeSpec is a volume claim mounted in all containers.
type VolumeSpec struct {
	// mountPath of the volume.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	MountPath string `json:"mountPath"`

	// volumeClaimName is the name of an existing claim.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	VolumeClaimName string `json:"volumeClaimName,omitempty"`

	// volumeClaim is the spec of a claim to create.
	//
	// +optional
	VolumeClaim *corev1.PersistentVolumeClaimSpec `json:"volumeClaim,omitempty"`
}

// LifecyclePolicy is an action on an event.
type LifecyclePolicy struct {
	// action to take.
	//
	// +optional
	// +kubebuilder:validation:Enum=AbortJob;RestartJob;RestartTask;RestartPod;RestartPartition;TerminateJob;CompleteJob;ResumeJob
	Action bus.Action `json:"action,omitempty"`

	// event that triggers the action.
	//
	// +optional
	// +kubebuilder:validation:Enum=*;PodFailed;PodEvicted;PodPending;PodRunning;Unknown;TaskCompleted;TaskFailed
	Event bus.Event `json:"event,omitempty"`

	// events that trigger the action.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:Enum=*;PodFailed;PodEvicted;PodPending;PodRunning;Unknown;TaskCompleted;TaskFailed
	Events []bus.Event `json:"events,omitempty"`

	// exitCode of a container: the policy applies to pods that fail with it.
	//
	// +optional
	ExitCode *int32 `json:"exitCode,omitempty"`

	// timeout is how long the state of the event must last before the action is taken; zero if absent.
	//
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:Pattern=`^(0|([0-9]{1,6}(\.[0-9]{1,9})?h)?([0-9]{1,7}(\.[0-9]{1,9})?m)?([0-9]{1,9}(\.[0-9]{1,9})?s)?([0-9]{1,9}(\.[0-9]{1,9})?(ms|us|µs|ns))?)$`
	Timeout *metav1.Duration `json:"timeout,omitempty"`
}

// NumaPolicy is a pod's NUMA policy. Only Volcano's scheduler implements it.
//
// +kubebuilder:validation:Enum=none;best-effort;restricted;single-numa-node
type NumaPolicy string

// TaskSpec is a number of equal pods.
type TaskSpec struct {
	// name of the task, which is part of the names of its pods; if empty, default followed by its index.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$`
	Name string `json:"name,omitempty"`

	// replicas is the number of pods.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000
	Replicas int32 `json:"replicas,omitempty"`

	// minAvailable is how many of them must be able to run together before any is started; default all.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	MinAvailable *int32 `json:"minAvailable,omitempty"`

	// template of the pods.
	//
	// +optional
	Template corev1.PodTemplateSpec `json:"template,omitempty"`

	// policies determine the actions on events of the task's pods. They take precedence over those of the job.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Policies []LifecyclePolicy `json:"policies,omitempty"`

	// topologyPolicy is the pods' NUMA policy. Only Volcano's scheduler implements it.
	//
	// +optional
	TopologyPolicy NumaPolicy `json:"topologyPolicy,omitempty"`

	// maxRetry is how often containers of the task's pods may be restarted in place before the event TaskFailed.
	//
	// +optional
	// +kubebuilder:default=3
	// +kubebuilder:validation:Minimum=0
	MaxRetry int32 `json:"maxRetry,omitempty"`

	// dependsOn are tasks whose pods must be running first.
	//
	// +optional
	DependsOn *DependsOn `json:"dependsOn,omitempty"`
}

// Iteration says for how many of the named tasks a condition must hold.
//
// +kubebuilder:validation:Enum=any;all
type Iteration string

const (
	// IterationAny: for at least one.
	IterationAny Iteration = "any"
	// IterationAll: for all.
	IterationAll Iteration = "all"
)

// DependsOn lists tasks that must run before the pods of another task are created.
type DependsOn struct {
	// name lists the tasks.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=63
	Name []string `json:"name,omitempty"`

	// iteration says whether all of them must run or any; default all.
	//
	// +optional
	Iteration Iteration `json:"iteration,omitempty"`
}
