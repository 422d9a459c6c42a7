package v1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TrainingJobStatus is the observed state of a TrainingJob.
type TrainingJobStatus struct {
	// execStatus is the state of its workers.
	//
	// +optional
	ExecStatus JobStatus `json:"execStatus"`

	// currentSize is the number of workers that the job should run with at present.
	//
	// +optional
	CurrentSize int32 `json:"currentSize,omitempty"`

	// stage of the job.
	//
	// +optional
	Stage Stage `json:"stage,omitempty"`

	// submitTime is when the job was created, or corrected after a WrongConfiguration.
	//
	// +optional
	SubmitTime *metav1.Time `json:"submitTime,omitempty"`

	// queuedTime is when the job was queued: among equal priorities, jobs are ordered by it. A preempted job keeps it.
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

	// requeueTime is until when pods of the job may be pending. It is set while some are.
	//
	// +optional
	RequeueTime *metav1.Time `json:"requeueTime,omitempty"`

	// cooldownTime is until when the job is not queued, because its pods were pending for too long.
	//
	// +optional
	CooldownTime *metav1.Time `json:"cooldownTime,omitempty"`

	// restarts counts, by the index of a worker, the pods that replaced failed ones.
	//
	// +optional
	// +mapType=atomic
	Restarts map[string]int32 `json:"restarts,omitempty"`

	// settledRestarts has, by the index of a worker, its count in restarts when a pod of it last ran for ten minutes.
	// Restarts after that are delayed more and more.
	//
	// +optional
	// +mapType=atomic
	SettledRestarts map[string]int32 `json:"settledRestarts,omitempty"`

	// losses are when workers were replaced, in the last hour, that had been lost through no fault of their program.
	//
	// +optional
	// +listType=atomic
	Losses []metav1.Time `json:"losses,omitempty"`

	// sizeLimit is set once the job had to go on with fewer workers than it was given, because the others could not be
	// placed or replaced.
	//
	// +optional
	SizeLimit *SizeLimit `json:"sizeLimit,omitempty"`
}

// SizeLimit is the number of workers that a job goes on with while more than that fail.
type SizeLimit struct {
	// workers is the most workers that the job runs with.
	Workers int32 `json:"workers"`

	// failures counts how often in a row a larger size than this has failed. The pause before the next try doubles with
	// each.
	Failures int32 `json:"failures"`

	// since is when a larger size last failed.
	Since metav1.Time `json:"since"`

	// until is when a larger size is tried again, if the nodes do not change before. It is absent while one is tried.
	//
	// +optional
	Until *metav1.Time `json:"until,omitempty"`

	// message says why the larger size failed.
	//
	// +optional
	Message string `json:"message,omitempty"`
}

// Stage is the stage of a TrainingJob.
type Stage string

const (
	// StageNone: the job has not been reconciled yet.
	StageNone Stage = ""
	// StageWaiting: the job is queued or suspended.
	StageWaiting Stage = "Waiting"
	// StageRunning: the job runs, or is starting, with currentSize workers.
	StageRunning Stage = "Running"
	// StageWrongConfiguration: the sizes are invalid. The job is not queued until they are corrected.
	StageWrongConfiguration Stage = "WrongConfiguration"
	// StageCancelled: the Workload of the job was deactivated. The job continues when it is activated again.
	StageCancelled Stage = "Cancelled"
	// StageCompleted: the job has succeeded or failed.
	StageCompleted Stage = "Completed"
	// StageRequeueCooldown: pods of the job were pending for too long. It queues again later.
	StageRequeueCooldown Stage = "RequeueCooldown"
)

// JobConditionType is the type of a condition.
type JobConditionType string

// The conditions.
const (
	// JobCreated: the job has been reconciled.
	JobCreated JobConditionType = "Created"
	// JobRunning: a worker is running.
	JobRunning JobConditionType = "Running"
	// JobRestarting: a worker has failed and is being replaced.
	JobRestarting JobConditionType = "Restarting"
	// JobSucceeded: the job has succeeded.
	JobSucceeded JobConditionType = "Succeeded"
	// JobFailed: the job has failed.
	JobFailed JobConditionType = "Failed"
	// JobSuspended: the job is suspended.
	JobSuspended JobConditionType = "Suspended"
)

// JobStatus is the state of a job's workers.
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

	// startTime is when the job was first started after it was last suspended.
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
	// active is the number of running pods.
	//
	// +optional
	Active int32 `json:"active,omitempty"`
	// ready is the number of running pods that are ready. It is absent once the job has ended.
	//
	// +optional
	Ready *int32 `json:"ready,omitempty"`
	// succeeded is the number of pods that have succeeded.
	//
	// +optional
	Succeeded int32 `json:"succeeded,omitempty"`
	// failed is the number of pods that have failed.
	//
	// +optional
	Failed int32 `json:"failed,omitempty"`
	// selector of the pods, in string form.
	//
	// +optional
	Selector string `json:"selector,omitempty"`
}

// JobCondition is a condition of a job.
type JobCondition struct {
	// type of the condition.
	Type JobConditionType `json:"type"`
	// status of the condition: True, False or Unknown.
	Status corev1.ConditionStatus `json:"status"`
	// reason as one word in CamelCase.
	//
	// +optional
	Reason string `json:"reason,omitempty"`
	// message in human-readable form.
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
