package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// JobPhase is where a Job stands.
type JobPhase string

const (
	// Pending: the job waits for its pods to run.
	Pending JobPhase = "Pending"
	// Aborting: it is being stopped, for the time being.
	Aborting JobPhase = "Aborting"
	// Aborted: it is stopped until it is resumed.
	Aborted JobPhase = "Aborted"
	// Running: as many pods run as must.
	Running JobPhase = "Running"
	// Restarting: its pods are being stopped, and will be made anew.
	Restarting JobPhase = "Restarting"
	// Completing: it has done its work, and what still runs is being stopped.
	Completing JobPhase = "Completing"
	// Completed: it has done its work.
	Completed JobPhase = "Completed"
	// Terminating: it is being stopped for good.
	Terminating JobPhase = "Terminating"
	// Terminated: it was stopped for good.
	Terminated JobPhase = "Terminated"
	// Failed: it has failed, or was restarted too often.
	Failed JobPhase = "Failed"
)

// JobState is where a Job stands, and since when.
type JobState struct {
	// phase is a word for it.
	//
	// +optional
	Phase JobPhase `json:"phase,omitempty"`

	// reason is a word for why.
	//
	// +optional
	Reason string `json:"reason,omitempty"`

	// message tells people why.
	//
	// +optional
	Message string `json:"message,omitempty"`

	// lastTransitionTime is since when.
	//
	// +optional
	LastTransitionTime metav1.Time `json:"lastTransitionTime,omitempty"`
}

// TaskState counts the pods of a task.
type TaskState struct {
	// phase has how many there are of each phase.
	//
	// +optional
	Phase map[corev1.PodPhase]int32 `json:"phase,omitempty"`
}

// JobCondition is a phase that a Job was in.
type JobCondition struct {
	// status is the phase.
	Status JobPhase `json:"status"`

	// lastTransitionTime is since when.
	//
	// +optional
	LastTransitionTime *metav1.Time `json:"lastTransitionTime,omitempty"`
}

// JobStatus is how a Job fares.
type JobStatus struct {
	// state is where it stands.
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

	// pending counts pods that are there and do not run yet.
	//
	// +optional
	Pending int32 `json:"pending,omitempty"`

	// running counts pods that run.
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

	// terminating counts pods that were deleted and are still there.
	//
	// +optional
	Terminating int32 `json:"terminating,omitempty"`

	// unknown counts pods of whose state nothing is known.
	//
	// +optional
	Unknown int32 `json:"unknown,omitempty"`

	// version is how often the job was stopped or restarted. Pods of an earlier one count no more.
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

	// controlledResources lists what plugins have made, and what is remembered of pods that may be gone.
	//
	// +optional
	ControlledResources map[string]string `json:"controlledResources,omitempty"`

	// conditions are the phases that the job was in, the last one last.
	//
	// +optional
	// +listType=atomic
	Conditions []JobCondition `json:"conditions,omitempty"`
}
