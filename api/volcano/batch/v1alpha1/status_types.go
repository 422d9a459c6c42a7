package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// JobPhase is the phase of a Job.
type JobPhase string

const (
	// Pending: the job waits for its pods to run.
	Pending JobPhase = "Pending"
	// Aborting: it is being stopped and can be resumed.
	Aborting JobPhase = "Aborting"
	// Aborted: it is stopped until it is resumed.
	Aborted JobPhase = "Aborted"
	// Running: at least minAvailable pods are running.
	Running JobPhase = "Running"
	// Restarting: its pods are being stopped in order to be recreated.
	Restarting JobPhase = "Restarting"
	// Completing: it has succeeded, and its running pods are being stopped.
	Completing JobPhase = "Completing"
	// Completed: it has succeeded.
	Completed JobPhase = "Completed"
	// Terminating: it is being stopped permanently.
	Terminating JobPhase = "Terminating"
	// Terminated: it was stopped permanently.
	Terminated JobPhase = "Terminated"
	// Failed: it has failed, or was restarted too often.
	Failed JobPhase = "Failed"
)

// JobState is the state of a Job.
type JobState struct {
	// phase of the Job.
	//
	// +optional
	Phase JobPhase `json:"phase,omitempty"`

	// reason as one word in CamelCase.
	//
	// +optional
	Reason string `json:"reason,omitempty"`

	// message in human-readable form.
	//
	// +optional
	Message string `json:"message,omitempty"`

	// lastTransitionTime is when the phase last changed.
	//
	// +optional
	LastTransitionTime metav1.Time `json:"lastTransitionTime,omitempty"`
}

// TaskState counts the pods of a task.
type TaskState struct {
	// phase maps pod phases to numbers of pods.
	//
	// +optional
	Phase map[corev1.PodPhase]int32 `json:"phase,omitempty"`
}

// JobCondition is a phase that a Job was in.
type JobCondition struct {
	// status is the phase.
	Status JobPhase `json:"status"`

	// lastTransitionTime is when the phase began.
	//
	// +optional
	LastTransitionTime *metav1.Time `json:"lastTransitionTime,omitempty"`
}

// JobStatus is the observed state of a Job.
type JobStatus struct {
	// state of the Job.
	//
	// +optional
	State JobState `json:"state,omitempty"`

	// minAvailable is how many pods must run together.
	//
	// +optional
	MinAvailable int32 `json:"minAvailable,omitempty"`

	// taskStatusCount counts the pods of each task by phase.
	//
	// +optional
	TaskStatusCount map[string]TaskState `json:"taskStatusCount,omitempty"`

	// pending counts pods that exist and are not yet running.
	//
	// +optional
	Pending int32 `json:"pending,omitempty"`

	// running counts running pods.
	//
	// +optional
	Running int32 `json:"running,omitempty"`

	// succeeded counts pods that have succeeded.
	//
	// +optional
	Succeeded int32 `json:"succeeded,omitempty"`

	// failed counts pods that have failed.
	//
	// +optional
	Failed int32 `json:"failed,omitempty"`

	// terminating counts pods with a deletion timestamp.
	//
	// +optional
	Terminating int32 `json:"terminating,omitempty"`

	// unknown counts pods whose state is not known.
	//
	// +optional
	Unknown int32 `json:"unknown,omitempty"`

	// version is how often the job was stopped or restarted. Pods of an earlier version are ignored.
	//
	// +optional
	Version int32 `json:"version,omitempty"`

	// retryCount is how often the job, a task or a pod of it was restarted.
	//
	// +optional
	RetryCount int32 `json:"retryCount,omitempty"`

	// runningDuration is how long the job ran.
	//
	// +optional
	RunningDuration *metav1.Duration `json:"runningDuration,omitempty"`

	// controlledResources lists what plugins have created, and records data of pods that may have been deleted.
	//
	// +optional
	ControlledResources map[string]string `json:"controlledResources,omitempty"`

	// conditions are the phases of the job so far, the latest last.
	//
	// +optional
	// +listType=atomic
	Conditions []JobCondition `json:"conditions,omitempty"`
}
