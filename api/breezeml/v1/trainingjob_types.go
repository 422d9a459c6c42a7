package v1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TrainingJob is a training job that runs with as many workers, between two bounds, as the cluster can give it.
//
// Rules over several parts of it at once are in tools/crdgen/trainingjob.go.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="State",JSONPath=".status.stage",type=string,description="Where the job stands"
// +kubebuilder:printcolumn:name="Size",JSONPath=".status.currentSize",type=integer,description="Workers that it runs with"
// +kubebuilder:printcolumn:name="Priority",JSONPath=".spec.priority",type=integer,description="Its rank: the higher goes first"
// +kubebuilder:printcolumn:name="Min",JSONPath=".spec.minSize",type=integer,priority=1,description="Fewest workers"
// +kubebuilder:printcolumn:name="Max",JSONPath=".spec.maxSize",type=integer,priority=1,description="Most workers"
// +kubebuilder:printcolumn:name="Age",JSONPath=".metadata.creationTimestamp",type=date,description="Time since it was made"
type TrainingJob struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what is to run.
	Spec TrainingJobSpec `json:"spec"`
	// status is how it fares.
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

// TrainingJobSpec is what a TrainingJob is to run, and with how many workers.
type TrainingJobSpec struct {
	// runPolicy says for how long the job may run, what is kept of it, and whether it is suspended.
	RunPolicy RunPolicy `json:"runPolicy"`

	// replicaSpecs are the workers.
	ReplicaSpecs ReplicaSpec `json:"replicaSpecs"`

	// minSize is the fewest workers that the job runs with; 1 where it is absent. Sizes below 1, and a minSize above
	// maxSize, bring the job to the stage WrongConfiguration until they are mended.
	//
	// +optional
	// +kubebuilder:validation:Maximum=10000
	MinSize *int32 `json:"minSize,omitempty"`

	// maxSize is the most workers that the job runs with; minSize where it is absent.
	//
	// +optional
	// +kubebuilder:validation:Maximum=10000
	MaxSize *int32 `json:"maxSize,omitempty"`

	// injectLattice runs the command under the agent, which tells each worker its rank and the others, and starts them
	// anew when the size changes. The container needs an explicit command.
	//
	// +optional
	InjectLattice bool `json:"injectLattice,omitempty"`

	// framework of the program. The agent is told.
	//
	// +optional
	// +kubebuilder:default=pytorch
	Framework Framework `json:"framework,omitempty"`

	// priority of the job: the higher goes strictly first, and takes from lower ones what it needs.
	//
	// +optional
	// +kubebuilder:default=0
	Priority int32 `json:"priority,omitempty"`

	// dataset is the PersistentVolumeClaim, in the job's namespace, that each worker finds at /datasets/<name>, to read.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$`
	Dataset string `json:"dataset,omitempty"`
}

// Framework is what a program trains with.
//
// +kubebuilder:validation:Enum=pytorch;generic
type Framework string

const (
	// FrameworkPyTorch programs have their state saved and restored by themselves where the add-on can.
	FrameworkPyTorch Framework = "pytorch"
	// FrameworkGeneric programs are left as they are.
	FrameworkGeneric Framework = "generic"
)

// ReplicaSpec is how workers are made.
type ReplicaSpec struct {
	// replicas does not count: the number of workers follows from minSize, maxSize and what the cluster can give.
	//
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	Replicas *int32 `json:"replicas,omitempty"`

	// template of the pods.
	Template corev1.PodTemplateSpec `json:"template"`

	// restartPolicy says what becomes of a worker that has ended. It goes before that of the template. With injectLattice
	// it is Never: the agent restarts programs.
	//
	// +optional
	// +kubebuilder:default=Never
	RestartPolicy RestartPolicy `json:"restartPolicy,omitempty"`
}

// RestartPolicy says what becomes of a worker that has ended.
//
// +kubebuilder:validation:Enum=Always;OnFailure;Never;ExitCode
type RestartPolicy string

const (
	// RestartAlways restarts its containers on their node, however they ended.
	RestartAlways RestartPolicy = "Always"
	// RestartOnFailure restarts containers that failed.
	RestartOnFailure RestartPolicy = "OnFailure"
	// RestartNever has a failure be one of the job.
	RestartNever RestartPolicy = "Never"
	// RestartExitCode makes a new pod if the exit code is 128 or more; a lower one is a failure of the job.
	RestartExitCode RestartPolicy = "ExitCode"
)

// CleanPodPolicy says which pods are deleted when a job has ended, and the Services of the same names with them.
//
// +kubebuilder:validation:Enum="";None;Running;All
type CleanPodPolicy string

const (
	// CleanPodNone keeps all pods.
	CleanPodNone CleanPodPolicy = "None"
	// CleanPodRunning deletes pods that have not ended, running or pending.
	CleanPodRunning CleanPodPolicy = "Running"
	// CleanPodAll deletes all pods. It is what an empty policy means.
	CleanPodAll CleanPodPolicy = "All"
)

// RunPolicy says how a job is run.
type RunPolicy struct {
	// cleanPodPolicy says which pods are deleted when the job has ended.
	//
	// +optional
	// +kubebuilder:default=All
	CleanPodPolicy CleanPodPolicy `json:"cleanPodPolicy,omitempty"`

	// ttlSecondsAfterFinished is for how long the job is kept when it has ended; for ever where it is absent.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished,omitempty"`

	// activeDeadlineSeconds is for how long the job may go on from its first start.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	ActiveDeadlineSeconds *int64 `json:"activeDeadlineSeconds,omitempty"`

	// backoffLimit is how many restarts of its workers, by new pods or on their nodes, the job survives. Without one they
	// are not counted.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	BackoffLimit *int32 `json:"backoffLimit,omitempty"`

	// schedulingPolicy names a queue. Of the rest the sizes of the job take the place.
	//
	// +optional
	SchedulingPolicy *SchedulingPolicy `json:"schedulingPolicy,omitempty"`

	// suspend has the job's pods deleted, or never made, until it is false again.
	//
	// +optional
	Suspend *bool `json:"suspend,omitempty"`

	// managedBy names the controller that runs the job, where that is not Muster.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=63
	ManagedBy *string `json:"managedBy,omitempty"`
}

// SchedulingPolicy is what schedulers of gangs are told.
type SchedulingPolicy struct {
	// minAvailable does not count: minSize does.
	//
	// +optional
	MinAvailable *int32 `json:"minAvailable,omitempty"`

	// queue of the job. The label kueue.x-k8s.io/queue-name goes before it.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)?$`
	Queue string `json:"queue,omitempty"`

	// minResources does not count: those of minSize workers do.
	//
	// +optional
	MinResources *corev1.ResourceList `json:"minResources,omitempty"`

	// priorityClass of the job in its queue, where priority is 0.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	PriorityClass string `json:"priorityClass,omitempty"`

	// scheduleTimeoutSeconds does not count: a job whose pods stay pending is queued again.
	//
	// +optional
	ScheduleTimeoutSeconds *int32 `json:"scheduleTimeoutSeconds,omitempty"`
}
