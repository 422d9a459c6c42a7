package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// GenericJob is a job of replicas of several types, each a pod, that end together by rules over them.
//
// Rules over several parts of it at once are in tools/crdgen/genericjob.go.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Phase",JSONPath=".status.phase",type=string,description="Where the job stands"
// +kubebuilder:printcolumn:name="Running",JSONPath=".status.aggregate.running",type=integer,description="Pods that run"
// +kubebuilder:printcolumn:name="Succeeded",JSONPath=".status.aggregate.succeeded",type=integer,description="Pods that have succeeded"
// +kubebuilder:printcolumn:name="Queue",JSONPath=".spec.scheduler.t9kScheduler.queue",type=string,priority=1,description="Queue that the job names"
// +kubebuilder:printcolumn:name="Age",JSONPath=".metadata.creationTimestamp",type=date,description="Time since it was made"
type GenericJob struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what is to run.
	Spec GenericJobSpec `json:"spec"`
	// status is how it fares.
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

// GenericJobSpec is what a GenericJob is to run. Types and numbers of replicas are fixed at creation.
type GenericJobSpec struct {
	// successRules say when the job has succeeded: when one of them is met. Without any it is when all replicas have.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=5000
	SuccessRules []FinishRule `json:"successRules,omitempty"`

	// failureRules say when the job has failed: when one of them is met. It has failed too when no success rule can be
	// met any more.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=5000
	FailureRules []FinishRule `json:"failureRules,omitempty"`

	// service gives each replica a Service of its own. Without it there is none.
	//
	// +optional
	Service *ServiceOption `json:"service,omitempty"`

	// runMode says how the job is run: at once, unless it says otherwise.
	//
	// +optional
	RunMode *RunMode `json:"runMode,omitempty"`

	// cleanUpPolicy says which pods are deleted when the job has ended.
	//
	// +optional
	// +kubebuilder:default=None
	CleanUpPolicy CleanUpPolicy `json:"cleanUpPolicy,omitempty"`

	// scheduler says by whom, and in which queue, the job is scheduled.
	//
	// +optional
	Scheduler *SchedulePolicy `json:"scheduler,omitempty"`

	// replicaSpecs are the replicas, by type.
	//
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	ReplicaSpecs []ReplicaSpec `json:"replicaSpecs"`
}

// FinishRule names replicas: the indices of each type. It is met when all of them have succeeded, or failed, and will not
// be restarted.
//
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:MaxProperties=64
type FinishRule map[string]Indices

// Indices of replicas of one type, from 0, as numbers or as text.
//
// +listType=atomic
// +kubebuilder:validation:MinItems=1
// +kubebuilder:validation:MaxItems=5000
type Indices []intstr.IntOrString

// ServiceOption is what the Services of replicas have in common.
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

// RunMode says how a job is run. Pause goes before debug.
type RunMode struct {
	// debug has pods made that do nothing, for people to work in.
	//
	// +optional
	Debug *DebugMode `json:"debug,omitempty"`

	// pause has the job's pods deleted, or never made, until it is resumed.
	//
	// +optional
	Pause *PauseMode `json:"pause,omitempty"`
}

// DebugMode says how pods are made in debug mode.
type DebugMode struct {
	// enabled turns the mode on, for pods that are made from then on.
	//
	// +optional
	Enabled bool `json:"enabled,omitempty"`

	// replicaSpecs say, by type, what differs. A type that is not listed has the defaults.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=64
	ReplicaSpecs []ReplicaDebugSet `json:"replicaSpecs,omitempty"`
}

// ReplicaDebugSet says how replicas of a type are made in debug mode.
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

// PauseMode says whether the job is paused, and how it goes on.
type PauseMode struct {
	// enabled pauses the job, and resumes it, at any time.
	//
	// +optional
	Enabled bool `json:"enabled,omitempty"`

	// resumeSpecs say, by type, what differs in pods that are made after a pause. They are fixed at creation.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=64
	ResumeSpecs []ResumeSpec `json:"resumeSpecs,omitempty"`
}

// ResumeSpec says how replicas of a type go on after a pause.
type ResumeSpec struct {
	// type of the replicas.
	//
	// +kubebuilder:validation:MaxLength=63
	Type string `json:"type"`

	// skipInitContainer leaves the init containers out.
	//
	// +optional
	SkipInitContainer bool `json:"skipInitContainer,omitempty"`

	// command of the main container, the first; the template's where it is absent.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1024
	Command []string `json:"command,omitempty"`

	// args of the main container, the first; the template's where they are absent.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1024
	Args []string `json:"args,omitempty"`
}

// CleanUpPolicy says which pods are deleted when a job has ended.
//
// +kubebuilder:validation:Enum=None;Unfinished;All
type CleanUpPolicy string

const (
	// CleanUpNone keeps all pods, running ones too.
	CleanUpNone CleanUpPolicy = "None"
	// CleanUpUnfinished deletes pods that have not ended, and keeps the others for their logs.
	CleanUpUnfinished CleanUpPolicy = "Unfinished"
	// CleanUpAll deletes all pods.
	CleanUpAll CleanUpPolicy = "All"
)

// SchedulePolicy says by whom a job is scheduled.
type SchedulePolicy struct {
	// t9kScheduler asks for a queue, where the pods wait until there is room for all of them.
	//
	// +optional
	T9kScheduler *T9kScheduler `json:"t9kScheduler,omitempty"`
}

// T9kScheduler names a queue and the job's rank in it.
type T9kScheduler struct {
	// queue is the name of the queue; default where it is empty.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)?$`
	Queue string `json:"queue,omitempty"`

	// priority in the queue: the higher goes first.
	//
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	Priority int32 `json:"priority,omitempty"`
}

// ReplicaSpec is a number of replicas of one type.
type ReplicaSpec struct {
	// type of the replicas. It is part of their names.
	//
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Type string `json:"type"`

	// replicas is how many there are.
	//
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=5000
	Replicas *int32 `json:"replicas,omitempty"`

	// restartPolicy says whether replicas that have ended are started anew.
	//
	// +optional
	// +kubebuilder:default={policy: OnFailure}
	RestartPolicy RestartPolicy `json:"restartPolicy,omitempty"`

	// template of the pods. In command, args and env of its containers stand $(type), $(rank), $(replicas[TYPE]),
	// $(service.TYPE[RANK].host) and $(service.port[NAME]) for what they say.
	Template corev1.PodTemplateSpec `json:"template"`
}

// RestartPolicy says whether replicas that have ended are started anew.
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
	// RestartAlways restarts replicas that have succeeded too.
	RestartAlways RestartPolicyType = "Always"
)
