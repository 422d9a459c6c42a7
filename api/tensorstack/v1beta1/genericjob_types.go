package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// GenericJob is a job with replicas of several types, each replica a pod, whose end is determined by rules on the
// replicas.
//
// Validation rules that involve several parts of it are in tools/crdgen/genericjob.go.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Phase",JSONPath=".status.phase",type=string,description="State of the job"
// +kubebuilder:printcolumn:name="Running",JSONPath=".status.aggregate.running",type=integer,description="Running pods"
// +kubebuilder:printcolumn:name="Succeeded",JSONPath=".status.aggregate.succeeded",type=integer,description="Pods that have succeeded"
// +kubebuilder:printcolumn:name="Queue",JSONPath=".spec.scheduler.t9kScheduler.queue",type=string,priority=1,description="Queue that the job names"
// +kubebuilder:printcolumn:name="Age",JSONPath=".metadata.creationTimestamp",type=date,description="Time since creation"
type GenericJob struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state of the job.
	Spec GenericJobSpec `json:"spec"`
	// status is the observed state of the job.
	//
	// +optional
	Status GenericJobStatus `json:"status,omitempty"`
}

// GenericJobList is a list of GenericJobs.
//
// +kubebuilder:object:root=true
type GenericJobList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []GenericJob `json:"items"`
}

// GenericJobSpec describes the replicas of a GenericJob and how they are run. Types and numbers of replicas are
// immutable.
type GenericJobSpec struct {
	// successRules: the job has succeeded when one of them is met. Without any, it has succeeded when all replicas
	// have.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=5000
	SuccessRules []FinishRule `json:"successRules,omitempty"`

	// failureRules: the job has failed when one of them is met. It has also failed when no success rule can be met any
	// more.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=5000
	FailureRules []FinishRule `json:"failureRules,omitempty"`

	// service creates a Service for each replica. Without it there is none.
	//
	// +optional
	Service *ServiceOption `json:"service,omitempty"`

	// runMode allows the job to be run in debug mode or paused. Without it the job runs at once.
	//
	// +optional
	RunMode *RunMode `json:"runMode,omitempty"`

	// cleanUpPolicy selects the pods that are deleted after the end of the job.
	//
	// +optional
	// +kubebuilder:default=None
	CleanUpPolicy CleanUpPolicy `json:"cleanUpPolicy,omitempty"`

	// scheduler selects the scheduler of the job, and its queue.
	//
	// +optional
	Scheduler *SchedulePolicy `json:"scheduler,omitempty"`

	// replicaSpecs describe the replicas, by type.
	//
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	ReplicaSpecs []ReplicaSpec `json:"replicaSpecs"`
}

// FinishRule lists replicas: the indices of each type. It is met when all of them have succeeded (or failed, in
// failureRules) and will not be restarted.
//
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:MaxProperties=64
type FinishRule map[string]Indices

// Indices of replicas of one type, from 0, as numbers or strings.
//
// +listType=atomic
// +kubebuilder:validation:MinItems=1
// +kubebuilder:validation:MaxItems=5000
type Indices []intstr.IntOrString

// ServiceOption is the common configuration of the Services of replicas.
type ServiceOption struct {
	// ports of each Service.
	//
	// +optional
	// +listType=map
	// +listMapKey=port
	// +listMapKey=protocol
	// +kubebuilder:validation:MaxItems=32
	Ports []corev1.ServicePort `json:"ports,omitempty"`
}

// RunMode configures how a job is run. Pause takes precedence over debug.
type RunMode struct {
	// debug creates pods that run no workload, for users to work in.
	//
	// +optional
	Debug *DebugMode `json:"debug,omitempty"`

	// pause deletes the job's pods, or prevents their creation, until the job is resumed.
	//
	// +optional
	Pause *PauseMode `json:"pause,omitempty"`
}

// DebugMode configures the pods of debug mode.
type DebugMode struct {
	// enabled enables the mode for pods that are created from then on.
	//
	// +optional
	Enabled bool `json:"enabled,omitempty"`

	// replicaSpecs configure the replicas by type. The defaults apply to types that are not listed.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=64
	ReplicaSpecs []ReplicaDebugSet `json:"replicaSpecs,omitempty"`
}

// ReplicaDebugSet configures the replicas of a type in debug mode.
type ReplicaDebugSet struct {
	// type of the replicas.
	//
	// +kubebuilder:validation:MaxLength=63
	Type string `json:"type"`

	// skipInitContainer leaves the init containers out.
	//
	// +optional
	SkipInitContainer bool `json:"skipInitContainer,omitempty"`

	// command of the main container, the first. Its args are dropped.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:default={"sleep","inf"}
	// +kubebuilder:validation:MaxItems=1024
	Command []string `json:"command,omitempty"`
}

// PauseMode says whether the job is paused, and how it is resumed.
type PauseMode struct {
	// enabled pauses the job when set and resumes it when unset, at any time.
	//
	// +optional
	Enabled bool `json:"enabled,omitempty"`

	// resumeSpecs configure, by type, pods that are created after a pause. They are immutable.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=64
	ResumeSpecs []ResumeSpec `json:"resumeSpecs,omitempty"`
}

// ResumeSpec configures the replicas of a type after a pause.
type ResumeSpec struct {
	// type of the replicas.
	//
	// +kubebuilder:validation:MaxLength=63
	Type string `json:"type"`

	// skipInitContainer leaves the init containers out.
	//
	// +optional
	SkipInitContainer bool `json:"skipInitContainer,omitempty"`

	// command of the main container, the first; default: that of the template.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1024
	Command []string `json:"command,omitempty"`

	// args of the main container, the first; default: those of the template.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1024
	Args []string `json:"args,omitempty"`
}

// CleanUpPolicy selects the pods that are deleted after the end of a job.
//
// +kubebuilder:validation:Enum=None;Unfinished;All
type CleanUpPolicy string

const (
	// CleanUpNone keeps all pods, including running ones.
	CleanUpNone CleanUpPolicy = "None"
	// CleanUpUnfinished deletes pods that have not ended, and keeps the others for their logs.
	CleanUpUnfinished CleanUpPolicy = "Unfinished"
	// CleanUpAll deletes all pods.
	CleanUpAll CleanUpPolicy = "All"
)

// SchedulePolicy selects the scheduler of a job.
type SchedulePolicy struct {
	// t9kScheduler queues the job until all its pods can run.
	//
	// +optional
	T9kScheduler *T9kScheduler `json:"t9kScheduler,omitempty"`
}

// T9kScheduler has the job's queue and its priority there.
type T9kScheduler struct {
	// queue is the name of the queue; if empty, default.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)?$`
	Queue string `json:"queue,omitempty"`

	// priority in the queue: a higher one goes first.
	//
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	Priority int32 `json:"priority,omitempty"`
}

// ReplicaSpec describes a number of replicas of one type.
type ReplicaSpec struct {
	// type of the replicas, which is part of the names of their pods.
	//
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Type string `json:"type"`

	// replicas is the number of replicas.
	//
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=5000
	Replicas *int32 `json:"replicas,omitempty"`

	// restartPolicy says whether replicas that have ended are restarted.
	//
	// +optional
	// +kubebuilder:default={policy: OnFailure}
	RestartPolicy RestartPolicy `json:"restartPolicy,omitempty"`

	// template of the pods. In command, args and env of its containers, the variables $(type), $(rank),
	// $(replicas[TYPE]), $(service.TYPE[RANK].host) and $(service.port[NAME]) are expanded.
	Template corev1.PodTemplateSpec `json:"template"`
}

// RestartPolicy says whether replicas that have ended are restarted.
type RestartPolicy struct {
	// policy says after which end a replica is restarted.
	//
	// +optional
	// +kubebuilder:default=OnFailure
	Policy RestartPolicyType `json:"policy,omitempty"`

	// limit is how often each replica is restarted at most.
	//
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	Limit int32 `json:"limit,omitempty"`
}

// RestartPolicyType says after which end a replica is restarted.
//
// +kubebuilder:validation:Enum=Never;OnFailure;Always
type RestartPolicyType string

const (
	// RestartNever restarts no replica.
	RestartNever RestartPolicyType = "Never"
	// RestartOnFailure restarts replicas that have failed.
	RestartOnFailure RestartPolicyType = "OnFailure"
	// RestartAlways also restarts replicas that have succeeded.
	RestartAlways RestartPolicyType = "Always"
)
