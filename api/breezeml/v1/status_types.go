package v1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TrainingJobStatus is how a TrainingJob fares.
type TrainingJobStatus struct {
	// execStatus is how its workers fare.
	//
	// +optional
	ExecStatus JobStatus `json:"execStatus"`

	// currentSize is how many workers the job is to run with.
	//
	// +optional
	CurrentSize int32 `json:"currentSize,omitempty"`

	// stage is where the job stands.
	//
	// +optional
	Stage Stage `json:"stage,omitempty"`

	// submitTime is when the job was made, or mended after a WrongConfiguration.
	//
	// +optional
	SubmitTime *metav1.Time `json:"submitTime,omitempty"`

	// queuedTime is since when the job queues: who has queued longer goes first among equal priorities. A job that is
	// stopped for others keeps it.
	//
	// +optional
	QueuedTime *metav1.Time `json:"queuedTime,omitempty"`

	// lastExecTime is when the job was last started.
	//
	// +optional
	LastExecTime *metav1.Time `json:"lastExecTime,omitempty"`

	// completionTime is when the job ended.
	//
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`

	// requeueTime is until when pods of the job may be pending. It is there while some are.
	//
	// +optional
	RequeueTime *metav1.Time `json:"requeueTime,omitempty"`

	// cooldownTime is until when the job does not queue, because its pods could not be scheduled.
	//
	// +optional
	CooldownTime *metav1.Time `json:"cooldownTime,omitempty"`

	// restarts counts, by the index of a worker, the pods that were made in place of failed ones.
	//
	// +optional
	// +mapType=atomic
	Restarts map[string]int32 `json:"restarts,omitempty"`
}

// Stage is where a TrainingJob stands.
type Stage string

const (
	// StageNone: nobody has looked at the job yet.
	StageNone Stage = ""
	// StageWaiting: the job queues, or is suspended.
	StageWaiting Stage = "Waiting"
	// StageRunning: the job is to run with currentSize workers.
	StageRunning Stage = "Running"
	// StageWrongConfiguration: the sizes make no sense. The job does not queue until they are mended.
	StageWrongConfiguration Stage = "WrongConfiguration"
	// StageCancelled: the Workload of the job was deactivated. The job goes on once it is activated.
	StageCancelled Stage = "Cancelled"
	// StageCompleted: the job has ended, well or not.
	StageCompleted Stage = "Completed"
	// StageRequeueCooldown: the pods of the job could not be scheduled. It queues again later.
	StageRequeueCooldown Stage = "RequeueCooldown"
)

// JobConditionType is the type of a condition.
type JobConditionType string

// The conditions.
const (
	// JobCreated: the job was looked at.
	JobCreated JobConditionType = "Created"
	// JobRunning: a worker runs.
	JobRunning JobConditionType = "Running"
	// JobRestarting: a worker has failed and is made anew.
	JobRestarting JobConditionType = "Restarting"
	// JobSucceeded: the job has ended well.
	JobSucceeded JobConditionType = "Succeeded"
	// JobFailed: the job has ended otherwise.
	JobFailed JobConditionType = "Failed"
	// JobSuspended: the job is suspended.
	JobSuspended JobConditionType = "Suspended"
)

// JobStatus is how the workers of a job fare.
type JobStatus struct {
	// conditions of the job.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []JobCondition `json:"conditions,omitempty"`

	// replicaStatuses count the workers, under the key Worker.
	//
	// +optional
	ReplicaStatuses map[string]ReplicaStatus `json:"replicaStatuses,omitempty"`

	// startTime is when the job was first started, since it was last suspended.
	//
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`

	// completionTime is when the job ended.
	//
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`

	// lastReconcileTime is when this status last changed.
	//
	// +optional
	LastReconcileTime *metav1.Time `json:"lastReconcileTime,omitempty"`
}

// WorkerStatuses is the key under which workers are counted.
const WorkerStatuses = "Worker"

// ReplicaStatus counts workers.
type ReplicaStatus struct {
	// active pods run.
	//
	// +optional
	Active int32 `json:"active,omitempty"`
	// succeeded pods have ended well.
	//
	// +optional
	Succeeded int32 `json:"succeeded,omitempty"`
	// failed pods have ended otherwise.
	//
	// +optional
	Failed int32 `json:"failed,omitempty"`
	// selector of the pods, as text.
	//
	// +optional
	Selector string `json:"selector,omitempty"`
}

// JobCondition says one thing about a job.
type JobCondition struct {
	// type of the condition.
	Type JobConditionType `json:"type"`
	// status of the condition: True, False or Unknown.
	Status corev1.ConditionStatus `json:"status"`
	// reason in a word.
	//
	// +optional
	Reason string `json:"reason,omitempty"`
	// message for people.
	//
	// +optional
	Message string `json:"message,omitempty"`
	// lastUpdateTime is when the condition last changed in any way.
	//
	// +optional
	LastUpdateTime metav1.Time `json:"lastUpdateTime,omitempty"`
	// lastTransitionTime is when its status last changed.
	//
	// +optional
	LastTransitionTime metav1.Time `json:"lastTransitionTime,omitempty"`
}
