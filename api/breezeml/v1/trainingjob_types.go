package v1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TrainingJob is a training job whose number of workers adapts, within a range, to what the cluster can give it.
//
// Validation rules that involve several parts of it are in tools/crdgen/trainingjob.go.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="State",JSONPath=".status.stage",type=string,description="State of the job"
// +kubebuilder:printcolumn:name="Size",JSONPath=".status.currentSize",type=integer,description="Current number of workers"
// +kubebuilder:printcolumn:name="Priority",JSONPath=".spec.priority",type=integer,description="Priority of the job: higher goes first"
// +kubebuilder:printcolumn:name="Min",JSONPath=".spec.minSize",type=integer,priority=1,description="Minimum number of workers"
// +kubebuilder:printcolumn:name="Max",JSONPath=".spec.maxSize",type=integer,priority=1,description="Maximum number of workers"
// +kubebuilder:printcolumn:name="Age",JSONPath=".metadata.creationTimestamp",type=date,description="Time since creation"
type TrainingJob struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state of the job.
	Spec TrainingJobSpec `json:"spec"`
	// status is the observed state of the job.
	//
	// +optional
	Status TrainingJobStatus `json:"status,omitempty"`
}

// TrainingJobList is a list of TrainingJobs.
//
// +kubebuilder:object:root=true
type TrainingJobList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []TrainingJob `json:"items"`
}

// TrainingJobSpec describes the workers of a TrainingJob and their number.
type TrainingJobSpec struct {
	// runPolicy says how long the job may run, what is kept of it afterwards, and whether it is suspended.
	RunPolicy RunPolicy `json:"runPolicy"`

	// replicaSpecs describe the workers.
	ReplicaSpecs ReplicaSpec `json:"replicaSpecs"`

	// minSize is the minimum number of workers; default 1. A size below 1, or a minSize greater than maxSize, puts the
	// job into stage WrongConfiguration until it is corrected.
	//
	// +optional
	// +kubebuilder:validation:Maximum=10000
	MinSize *int32 `json:"minSize,omitempty"`

	// maxSize is the maximum number of workers; default minSize.
	//
	// +optional
	// +kubebuilder:validation:Maximum=10000
	MaxSize *int32 `json:"maxSize,omitempty"`

	// injectLattice wraps the command in the agent, which tells each worker its rank and its peers, and restarts the
	// workers when the size changes. The container needs an explicit command.
	//
	// +optional
	InjectLattice bool `json:"injectLattice,omitempty"`

	// framework of the program, passed to the agent.
	//
	// +optional
	// +kubebuilder:default=pytorch
	Framework Framework `json:"framework,omitempty"`

	// priority of the job: a higher one strictly goes first, and preempts lower ones.
	//
	// +optional
	// +kubebuilder:default=0
	Priority int32 `json:"priority,omitempty"`

	// dataset is the name of a PersistentVolumeClaim in the job's namespace that is mounted read-only in each worker at
	// /datasets/<name>.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$`
	Dataset string `json:"dataset,omitempty"`
}

// Framework is the training framework of a program.
//
// +kubebuilder:validation:Enum=pytorch;generic
type Framework string

const (
	// FrameworkPyTorch: the Python add-on saves and restores the program's state automatically where it can.
	FrameworkPyTorch Framework = "pytorch"
	// FrameworkGeneric: the program is not modified.
	FrameworkGeneric Framework = "generic"
)

// ReplicaSpec describes how workers are created.
type ReplicaSpec struct {
	// replicas is ignored: the number of workers follows from minSize, maxSize and what the cluster can give.
	//
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	Replicas *int32 `json:"replicas,omitempty"`

	// template of the pods.
	Template corev1.PodTemplateSpec `json:"template"`

	// restartPolicy of workers that have ended. It overrides that of the template. With injectLattice, where the
	// agent restarts programs, Always is replaced by OnFailure.
	//
	// +optional
	// +kubebuilder:default=Never
	RestartPolicy RestartPolicy `json:"restartPolicy,omitempty"`
}

// RestartPolicy says what happens to a worker that has ended.
//
// +kubebuilder:validation:Enum=Always;OnFailure;Never;ExitCode
type RestartPolicy string

const (
	// RestartAlways restarts its containers in place, whatever their exit codes.
	RestartAlways RestartPolicy = "Always"
	// RestartOnFailure restarts containers that failed.
	RestartOnFailure RestartPolicy = "OnFailure"
	// RestartNever makes the job fail with the worker.
	RestartNever RestartPolicy = "Never"
	// RestartExitCode creates a new pod if the exit code is 128 or more; a lower one fails the job.
	RestartExitCode RestartPolicy = "ExitCode"
)

// CleanPodPolicy selects the pods that are deleted after the end of a job, with their Services of the same names.
//
// +kubebuilder:validation:Enum="";None;Running;All
type CleanPodPolicy string

const (
	// CleanPodNone keeps all pods.
	CleanPodNone CleanPodPolicy = "None"
	// CleanPodRunning deletes running and pending pods.
	CleanPodRunning CleanPodPolicy = "Running"
	// CleanPodAll deletes all pods. An empty policy means the same.
	CleanPodAll CleanPodPolicy = "All"
)

// RunPolicy configures how a job is run.
type RunPolicy struct {
	// cleanPodPolicy selects the pods that are deleted after the end of the job.
	//
	// +optional
	// +kubebuilder:default=All
	CleanPodPolicy CleanPodPolicy `json:"cleanPodPolicy,omitempty"`

	// ttlSecondsAfterFinished is how long the job is kept after its end; forever if absent.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished,omitempty"`

	// activeDeadlineSeconds is how long the job may run, counted from its first start.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	ActiveDeadlineSeconds *int64 `json:"activeDeadlineSeconds,omitempty"`

	// backoffLimit is the maximum number of restarts of workers, by new pods or in place; no limit if absent.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	BackoffLimit *int32 `json:"backoffLimit,omitempty"`

	// schedulingPolicy names a queue. The sizes of the job replace its other fields.
	//
	// +optional
	SchedulingPolicy *SchedulingPolicy `json:"schedulingPolicy,omitempty"`

	// suspend deletes the job's pods, or prevents their creation, until it is false again.
	//
	// +optional
	Suspend *bool `json:"suspend,omitempty"`

	// managedBy names the controller that runs the job, if that is not Muster.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=63
	ManagedBy *string `json:"managedBy,omitempty"`
}

// SchedulingPolicy is scheduling information for gang schedulers.
type SchedulingPolicy struct {
	// minAvailable is ignored in favour of minSize.
	//
	// +optional
	MinAvailable *int32 `json:"minAvailable,omitempty"`

	// queue of the job. The label kueue.x-k8s.io/queue-name takes precedence.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)?$`
	Queue string `json:"queue,omitempty"`

	// minResources is ignored in favour of the requests of minSize workers.
	//
	// +optional
	MinResources *corev1.ResourceList `json:"minResources,omitempty"`

	// priorityClass of the job in its queue, used if priority is 0.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	PriorityClass string `json:"priorityClass,omitempty"`

	// scheduleTimeoutSeconds is ignored: a job whose pods stay pending is requeued.
	//
	// +optional
	ScheduleTimeoutSeconds *int32 `json:"scheduleTimeoutSeconds,omitempty"`
}
