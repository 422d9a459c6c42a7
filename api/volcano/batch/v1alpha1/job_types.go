package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	bus "github.com/musterhq/muster/api/volcano/bus/v1alpha1"
)

// Job is tasks, each a number of equal pods, that start together.
//
// Rules over several parts of it at once are in tools/crdgen/vcjob.go.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:path=jobs,shortName=vcjob;vj
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="STATUS",type=string,JSONPath=`.status.state.phase`,description="Where the job stands"
// +kubebuilder:printcolumn:name="minAvailable",type=integer,JSONPath=`.status.minAvailable`,description="Pods that must run together"
// +kubebuilder:printcolumn:name="RUNNINGS",type=integer,JSONPath=`.status.running`,description="Pods that run"
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=`.metadata.creationTimestamp`,description="Time since it was made"
// +kubebuilder:printcolumn:name="QUEUE",type=string,priority=1,JSONPath=`.spec.queue`,description="Queue that the job names"
type Job struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what is to run.
	Spec JobSpec `json:"spec"`
	// status is how it fares.
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

// JobSpec is what a Job is to run. After creation only minAvailable, replicas and priorityClassName may change.
type JobSpec struct {
	// schedulerName is that of all pods whose template names none.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	SchedulerName string `json:"schedulerName,omitempty"`

	// minAvailable is how many pods must be able to run together before any is started. It is the sum of the tasks' where it
	// is 0 or absent.
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

	// tasks are the pods, in groups of equal ones.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Tasks []TaskSpec `json:"tasks,omitempty"`

	// policies say what is done when something happens to a pod whose task does not say it.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Policies []LifecyclePolicy `json:"policies,omitempty"`

	// plugins add to pods what they need to know of each other: by name, with arguments.
	//
	// +optional
	// +kubebuilder:validation:MaxProperties=16
	Plugins map[string]PluginArguments `json:"plugins,omitempty"`

	// runningEstimate is how long the job will probably run.
	//
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:Pattern=`^(0|([0-9]{1,6}(\.[0-9]{1,9})?h)?([0-9]{1,7}(\.[0-9]{1,9})?m)?([0-9]{1,9}(\.[0-9]{1,9})?s)?([0-9]{1,9}(\.[0-9]{1,9})?(ms|us|µs|ns))?)$`
	RunningEstimate *metav1.Duration `json:"runningEstimate,omitempty"`

	// queue is the name of the queue; default where it is empty.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)?$`
	Queue string `json:"queue,omitempty"`

	// maxRetry is how often the job is restarted before it has failed; 3 where it is 0.
	//
	// +optional
	// +kubebuilder:default=3
	// +kubebuilder:validation:Minimum=0
	MaxRetry int32 `json:"maxRetry,omitempty"`

	// ttlSecondsAfterFinished is how long the job is kept after its end; for ever where it is absent.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished,omitempty"`

	// priorityClassName says how urgent the job is.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	PriorityClassName string `json:"priorityClassName,omitempty"`

	// minSuccess is how many pods must succeed for the job to have; then it ends. Without it the job ends with its last pod.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	MinSuccess *int32 `json:"minSuccess,omitempty"`

	// networkTopology says how near to each other the pods must be.
	//
	// +optional
	NetworkTopology *NetworkTopologySpec `json:"networkTopology,omitempty"`
}

// PluginArguments are what a plugin is told, as on a command line.
//
// +listType=atomic
// +kubebuilder:validation:MaxItems=64
type PluginArguments []string

// NetworkTopologyMode is whether pods must be near to each other, or should.
//
// +kubebuilder:validation:Enum=hard;soft
type NetworkTopologyMode string

const (
	// HardNetworkTopologyMode: they must.
	HardNetworkTopologyMode NetworkTopologyMode = "hard"
	// SoftNetworkTopologyMode: they should.
	SoftNetworkTopologyMode NetworkTopologyMode = "soft"
)

// NetworkTopologySpec says how near to each other pods must be.
type NetworkTopologySpec struct {
	// mode is whether they must or should.
	//
	// +optional
	// +kubebuilder:default=hard
	Mode NetworkTopologyMode `json:"mode,omitempty"`

	// highestTierAllowed is the tier of the largest domain that may hold them all; 1 is the smallest.
	//
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	HighestTierAllowed *int32 `json:"highestTierAllowed,omitempty"`
}

// VolumeSpec is a volume claim that all containers mount.
type VolumeSpec struct {
	// mountPath is where.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	MountPath string `json:"mountPath"`

	// volumeClaimName is the claim, of one that is there.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	VolumeClaimName string `json:"volumeClaimName,omitempty"`

	// volumeClaim is the claim that is made.
	//
	// +optional
	VolumeClaim *corev1.PersistentVolumeClaimSpec `json:"volumeClaim,omitempty"`
}

// LifecyclePolicy says what is done when something happens.
type LifecyclePolicy struct {
	// action is what is done.
	//
	// +optional
	// +kubebuilder:validation:Enum=AbortJob;RestartJob;RestartTask;RestartPod;RestartPartition;TerminateJob;CompleteJob;ResumeJob
	Action bus.Action `json:"action,omitempty"`

	// event is what happens.
	//
	// +optional
	// +kubebuilder:validation:Enum=*;PodFailed;PodEvicted;PodPending;PodRunning;Unknown;TaskCompleted;TaskFailed
	Event bus.Event `json:"event,omitempty"`

	// events are what may happen.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:Enum=*;PodFailed;PodEvicted;PodPending;PodRunning;Unknown;TaskCompleted;TaskFailed
	Events []bus.Event `json:"events,omitempty"`

	// exitCode is that of a container: the policy is for pods that fail with it.
	//
	// +optional
	ExitCode *int32 `json:"exitCode,omitempty"`

	// timeout is for how long it must be so before anything is done; not at all where it is absent.
	//
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:Pattern=`^(0|([0-9]{1,6}(\.[0-9]{1,9})?h)?([0-9]{1,7}(\.[0-9]{1,9})?m)?([0-9]{1,9}(\.[0-9]{1,9})?s)?([0-9]{1,9}(\.[0-9]{1,9})?(ms|us|µs|ns))?)$`
	Timeout *metav1.Duration `json:"timeout,omitempty"`
}

// NumaPolicy is what a pod asks of the NUMA nodes of its node. Volcano's scheduler alone heeds it.
//
// +kubebuilder:validation:Enum=none;best-effort;restricted;single-numa-node
type NumaPolicy string

// TaskSpec is a number of equal pods.
type TaskSpec struct {
	// name of the task, which is part of the names of its pods: default and its number where it is empty.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$`
	Name string `json:"name,omitempty"`

	// replicas is how many pods there are.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000
	Replicas int32 `json:"replicas,omitempty"`

	// minAvailable is how many of them must be able to run together before any is started; all where it is absent.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	MinAvailable *int32 `json:"minAvailable,omitempty"`

	// template of the pods.
	//
	// +optional
	Template corev1.PodTemplateSpec `json:"template,omitempty"`

	// policies say what is done when something happens to a pod of the task. They go before those of the job.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Policies []LifecyclePolicy `json:"policies,omitempty"`

	// topologyPolicy is what a pod asks of the NUMA nodes of its node. Volcano's scheduler alone heeds it.
	//
	// +optional
	TopologyPolicy NumaPolicy `json:"topologyPolicy,omitempty"`

	// maxRetry is how often containers of the task's pods may fail and be restarted where they are before the event TaskFailed.
	//
	// +optional
	// +kubebuilder:default=3
	// +kubebuilder:validation:Minimum=0
	MaxRetry int32 `json:"maxRetry,omitempty"`

	// dependsOn are tasks that must run first.
	//
	// +optional
	DependsOn *DependsOn `json:"dependsOn,omitempty"`
}

// Iteration is of how many of the named tasks something must hold.
//
// +kubebuilder:validation:Enum=any;all
type Iteration string

const (
	// IterationAny: of one.
	IterationAny Iteration = "any"
	// IterationAll: of all.
	IterationAll Iteration = "all"
)

// DependsOn names tasks that must run before the pods of another are made.
type DependsOn struct {
	// name lists the tasks.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=63
	Name []string `json:"name,omitempty"`

	// iteration is whether all of them must run, or any; all where it is absent.
	//
	// +optional
	Iteration Iteration `json:"iteration,omitempty"`
}
