package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// GenericJobStatus is how a GenericJob fares.
type GenericJobStatus struct {
	// tasks list the replicas, by type in the order of the spec.
	//
	// +optional
	// +listType=atomic
	Tasks []Tasks `json:"tasks,omitempty"`

	// phase is where the job stands, in a word.
	//
	// +optional
	Phase JobPhase `json:"phase,omitempty"`

	// aggregate counts the replicas by phase.
	//
	// +optional
	Aggregate *Aggregate `json:"aggregate,omitempty"`

	// conditions tell more.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []JobCondition `json:"conditions,omitempty"`
}

// JobPhase is where a job stands.
type JobPhase string

const (
	// JobPhasePending: the job waits for its replicas to start.
	JobPhasePending JobPhase = "Pending"
	// JobPhaseRunning: all replicas were started.
	JobPhaseRunning JobPhase = "Running"
	// JobPhasePaused: the job is paused.
	JobPhasePaused JobPhase = "Paused"
	// JobPhaseResuming: the job was paused, and not all replicas run again.
	JobPhaseResuming JobPhase = "Resuming"
	// JobPhaseSucceeded: the job has succeeded.
	JobPhaseSucceeded JobPhase = "Succeeded"
	// JobPhaseFailed: the job has failed.
	JobPhaseFailed JobPhase = "Failed"
	// JobPhaseUnknown: what became of a pod cannot be told.
	JobPhaseUnknown JobPhase = "Unknown"
)

// Aggregate counts replicas by phase. Together they are all replicas.
type Aggregate struct {
	// creating counts replicas that have no pod, or one that has no node.
	Creating int32 `json:"creating"`
	// pending counts pods that have a node and do not run yet.
	Pending int32 `json:"pending"`
	// running counts pods that run.
	Running int32 `json:"running"`
	// succeeded counts pods that have succeeded.
	Succeeded int32 `json:"succeeded"`
	// failed counts pods that have failed.
	Failed int32 `json:"failed"`
	// unknown counts pods of whose state nothing is known.
	Unknown int32 `json:"unknown"`
	// deleted counts replicas whose pod was deleted and is not made again, for the time being.
	Deleted int32 `json:"deleted"`
}

// Tasks are the replicas of one type.
type Tasks struct {
	// type of the replicas.
	Type string `json:"type"`

	// restartCount adds up how often they were restarted.
	//
	// +optional
	RestartCount int32 `json:"restartCount"`

	// replicas in the order of their ranks.
	//
	// +optional
	// +listType=atomic
	Replicas []ReplicaStatus `json:"replicas,omitempty"`
}

// ReplicaStatus is how a replica fares.
type ReplicaStatus struct {
	// name of the replica, and of its pod.
	Name string `json:"name"`

	// uid of its pod, of the last one if there is none.
	//
	// +optional
	UID types.UID `json:"uid,omitempty"`

	// phase of the pod, or Creating or Deleted.
	Phase ReplicaPhase `json:"phase"`

	// restartCount is how often this replica was restarted. The pod of that attempt bears the number too.
	//
	// +optional
	RestartCount int32 `json:"restartCount,omitempty"`

	// containers of the pod, of the last one if there is none.
	//
	// +optional
	// +listType=atomic
	Containers []ContainerStatus `json:"containers,omitempty"`
}

// ReplicaPhase is where a replica stands: a phase of its pod, Creating or Deleted.
type ReplicaPhase string

const (
	// ReplicaCreating: there is no pod yet, or it has no node.
	ReplicaCreating ReplicaPhase = "Creating"
	// ReplicaPending: the pod has a node and does not run yet.
	ReplicaPending ReplicaPhase = ReplicaPhase(corev1.PodPending)
	// ReplicaRunning: the pod runs.
	ReplicaRunning ReplicaPhase = ReplicaPhase(corev1.PodRunning)
	// ReplicaSucceeded: the pod has succeeded.
	ReplicaSucceeded ReplicaPhase = ReplicaPhase(corev1.PodSucceeded)
	// ReplicaFailed: the pod has failed.
	ReplicaFailed ReplicaPhase = ReplicaPhase(corev1.PodFailed)
	// ReplicaUnknown: nothing is known of the pod.
	ReplicaUnknown ReplicaPhase = ReplicaPhase(corev1.PodUnknown)
	// ReplicaDeleted: the pod was deleted and is not made again, for the time being.
	ReplicaDeleted ReplicaPhase = "Deleted"
)

// ContainerStatus is how a container fares.
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

// ContainerState is where a container stands.
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

	// reason is why, in a word.
	//
	// +optional
	Reason string `json:"reason,omitempty"`

	// message is why, in a sentence.
	//
	// +optional
	Message string `json:"message,omitempty"`
}
