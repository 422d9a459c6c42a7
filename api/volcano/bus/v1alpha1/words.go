package v1alpha1

// Action is an action of a policy or of a Command.
type Action string

const (
	// AbortJobAction stops the Job so that it can be resumed, and keeps its finished pods.
	AbortJobAction Action = "AbortJob"
	// RestartJobAction restarts all pods of the Job.
	RestartJobAction Action = "RestartJob"
	// RestartTaskAction restarts the pods of the event's task.
	RestartTaskAction Action = "RestartTask"
	// RestartPodAction restarts the event's pod.
	RestartPodAction Action = "RestartPod"
	// RestartPartitionAction restarts the pods of the event's partition.
	RestartPartitionAction Action = "RestartPartition"
	// TerminateJobAction stops the Job permanently.
	TerminateJobAction Action = "TerminateJob"
	// CompleteJobAction stops the Job permanently, as succeeded.
	CompleteJobAction Action = "CompleteJob"
	// ResumeJobAction resumes an aborted Job.
	ResumeJobAction Action = "ResumeJob"
	// OpenQueueAction makes a Queue accept jobs again.
	OpenQueueAction Action = "OpenQueue"
	// CloseQueueAction makes a Queue accept no more jobs.
	CloseQueueAction Action = "CloseQueue"
)

// Event is an event of a Job or its pods.
type Event string

const (
	// AnyEvent is every event.
	AnyEvent Event = "*"
	// PodFailedEvent: a pod has failed.
	PodFailedEvent Event = "PodFailed"
	// PodEvictedEvent: a pod was deleted by others than the Job itself.
	PodEvictedEvent Event = "PodEvicted"
	// PodPendingEvent: a pod is pending. It is useful only with a timeout.
	PodPendingEvent Event = "PodPending"
	// PodRunningEvent: a pod is running. It cancels the pending action of PodPending.
	PodRunningEvent Event = "PodRunning"
	// JobUnknownEvent: some pods of a gang are running, and the rest cannot be scheduled.
	JobUnknownEvent Event = "Unknown"
	// TaskCompletedEvent: all pods of a task have succeeded.
	TaskCompletedEvent Event = "TaskCompleted"
	// TaskFailedEvent: a task has failed more often than its maxRetry allows.
	TaskFailedEvent Event = "TaskFailed"
	// OutOfSyncEvent is used only within Volcano, for changes that require no action.
	OutOfSyncEvent Event = "OutOfSync"
	// CommandIssuedEvent is used only within Volcano, for Commands.
	CommandIssuedEvent Event = "CommandIssued"
)
