package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// GenericJobStatus is the observed state of a GenericJob.
type GenericJobStatus struct {
	// tasks lists the replicas, by type in the order of the spec.
	//
	// +optional
	// +listType=atomic
	Tasks []Tasks `json:"tasks,omitempty"`

	// phase is the state of the job, in one word.
	//
	// +optional
	Phase JobPhase `json:"phase,omitempty"`

	// aggregate counts the replicas by phase.
	//
	// +optional
	Aggregate *Aggregate `json:"aggregate,omitempty"`

	// ready is the number of running replicas whose pods are ready.
	//
	// +optional
	Ready *int32 `json:"ready,omitempty"`

	// conditions of the job.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []JobCondition `json:"conditions,omitempty"`
}

// JobPhase is the phase of a job.
type JobPhase string

const (
	// JobPhasePending: the job waits for its replicas to start.
	JobPhasePending JobPhase = "Pending"
	// JobPhaseRunning: all replicas have been started.
	JobPhaseRunning JobPhase = "Running"
	// JobPhasePaused: the job is paused.
	JobPhasePaused JobPhase = "Paused"
	// JobPhaseResuming: the job was paused, and not all replicas are running again.
	JobPhaseResuming JobPhase = "Resuming"
	// JobPhaseSucceeded: the job has succeeded.
	JobPhaseSucceeded JobPhase = "Succeeded"
	// JobPhaseFailed: the job has failed.
	JobPhaseFailed JobPhase = "Failed"
	// JobPhaseUnknown: the state of a pod is not known.
	JobPhaseUnknown JobPhase = "Unknown"
)

// Aggregate counts replicas by phase. The sum of its fields is the number of replicas.
type Aggregate struct {
	// creating counts replicas without a pod, or with a pod that is not scheduled.
	Creating int32 `json:"creating"`
	// pending counts pods that are scheduled and not yet running.
	Pending int32 `json:"pending"`
	// running counts running pods.
	Running int32 `json:"running"`
	// succeeded counts pods that have succeeded.
	Succeeded int32 `json:"succeeded"`
	// failed counts pods that have failed.
	Failed int32 `json:"failed"`
	// unknown counts pods whose state is not known.
	Unknown int32 `json:"unknown"`
	// deleted counts replicas whose pod was deleted and is not to be recreated at present.
	Deleted int32 `json:"deleted"`
}

// Tasks are the replicas of one type.
type Tasks struct {
	// type of the replicas.
	Type string `json:"type"`

	// restartCount is the sum of their restarts.
	//
	// +optional
	RestartCount int32 `json:"restartCount"`

	// replicas in the order of their ranks.
	//
	// +optional
	// +listType=atomic
	Replicas []ReplicaStatus `json:"replicas,omitempty"`
}

// ReplicaStatus is the observed state of a replica.
type ReplicaStatus struct {
	// name of the replica, and of its pod.
	Name string `json:"name"`

	// uid of its pod, or of the last one if there is none.
	//
	// +optional
	UID types.UID `json:"uid,omitempty"`

	// phase of the pod, or Creating or Deleted.
	Phase ReplicaPhase `json:"phase"`

	// restartCount is how often this replica was restarted. The pod of that attempt has the number in an annotation.
	//
	// +optional
	RestartCount int32 `json:"restartCount,omitempty"`

	// settledRestarts is its restartCount when a pod of it last ran for ten minutes. Restarts after that are delayed
	// more and more.
	//
	// +optional
	SettledRestarts int32 `json:"settledRestarts,omitempty"`

	// containers of the pod, or of the last one if there is none.
	//
	// +optional
	// +listType=atomic
	Containers []ContainerStatus `json:"containers,omitempty"`
}

// ReplicaPhase is the phase of a replica: that of its pod, Creating or Deleted.
type ReplicaPhase string

const (
	// ReplicaCreating: there is no pod yet, or it is not scheduled.
	ReplicaCreating ReplicaPhase = "Creating"
	// ReplicaPending: the pod is scheduled and not yet running.
	ReplicaPending ReplicaPhase = ReplicaPhase(corev1.PodPending)
	// ReplicaRunning: the pod is running.
	ReplicaRunning ReplicaPhase = ReplicaPhase(corev1.PodRunning)
	// ReplicaSucceeded: the pod has succeeded.
	ReplicaSucceeded ReplicaPhase = ReplicaPhase(corev1.PodSucceeded)
	// ReplicaFailed: the pod has failed.
	ReplicaFailed ReplicaPhase = ReplicaPhase(corev1.PodFailed)
	// ReplicaUnknown: the state of the pod is not known.
	ReplicaUnknown ReplicaPhase = ReplicaPhase(corev1.PodUnknown)
	// ReplicaDeleted: the pod was deleted and is not to be recreated at present.
	ReplicaDeleted ReplicaPhase = "Deleted"
)

// ContainerStatus is the observed state of a container.
type ContainerStatus struct {
	// name of the container.
	Name string `json:"name"`

	// state is Waiting, Running or Terminated.
	State ContainerState `json:"state"`

	// exitCode of a container that has ended.
	//
	// +optional
	ExitCode *int32 `json:"exitCode,omitempty"`
}

// ContainerState is the state of a container.
type ContainerState string

const (
	// ContainerWaiting: it has not started.
	ContainerWaiting ContainerState = "Waiting"
	// ContainerRunning: it runs.
	ContainerRunning ContainerState = "Running"
	// ContainerTerminated: it has ended.
	ContainerTerminated ContainerState = "Terminated"
)

// JobCondition is a condition of a GenericJob.
type JobCondition struct {
	// type of the condition.
	Type JobConditionType `json:"type"`

	// status is True, False or Unknown.
	Status metav1.ConditionStatus `json:"status"`

	// lastTransitionTime is when status last changed.
	//
	// +optional
	LastTransitionTime metav1.Time `json:"lastTransitionTime,omitempty"`

	// reason as one word in CamelCase.
	//
	// +optional
	Reason string `json:"reason,omitempty"`

	// message in human-readable form.
	//
	// +optional
	Message string `json:"message,omitempty"`
}
