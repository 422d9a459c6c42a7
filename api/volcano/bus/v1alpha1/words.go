package v1alpha1

// Action is what is done about something that happened, or because somebody asked for it.
type Action string

const (
	// AbortJobAction stops the Job, keeps its ended pods, and leaves it so that it can be resumed.
	AbortJobAction Action = "AbortJob"
	// RestartJobAction starts all pods of the Job anew.
	RestartJobAction Action = "RestartJob"
	// RestartTaskAction starts the pods of the task anew in which it happened.
	RestartTaskAction Action = "RestartTask"
	// RestartPodAction starts the pod anew to which it happened.
	RestartPodAction Action = "RestartPod"
	// RestartPartitionAction starts the pods of the partition anew in which it happened.
	RestartPartitionAction Action = "RestartPartition"
	// TerminateJobAction stops the Job for good.
	TerminateJobAction Action = "TerminateJob"
	// CompleteJobAction stops the Job for good, as one that has done its work.
	CompleteJobAction Action = "CompleteJob"
	// ResumeJobAction starts a Job again that was aborted.
	ResumeJobAction Action = "ResumeJob"
	// OpenQueueAction has a Queue take in jobs again.
	OpenQueueAction Action = "OpenQueue"
	// CloseQueueAction has a Queue take in no more jobs.
	CloseQueueAction Action = "CloseQueue"
)

// Event is what may happen to a Job or its pods.
type Event string

const (
	// AnyEvent is every event.
	AnyEvent Event = "*"
	// PodFailedEvent: a pod has failed.
	PodFailedEvent Event = "PodFailed"
	// PodEvictedEvent: a pod was deleted, not by the Job itself.
	PodEvictedEvent Event = "PodEvicted"
	// PodPendingEvent: a pod waits. It is of use with a timeout.
	PodPendingEvent Event = "PodPending"
	// PodRunningEvent: a pod runs. It takes back what waits because of PodPending.
	PodRunningEvent Event = "PodRunning"
	// JobUnknownEvent: some pods of a gang run, and the rest finds no room.
	JobUnknownEvent Event = "Unknown"
	// TaskCompletedEvent: all pods of a task have succeeded.
	TaskCompletedEvent Event = "TaskCompleted"
	// TaskFailedEvent: a task has failed more often than its maxRetry allows.
	TaskFailedEvent Event = "TaskFailed"
	// OutOfSyncEvent is the vendor's own for changes that nothing is to be done about.
	OutOfSyncEvent Event = "OutOfSync"
	// CommandIssuedEvent is the vendor's own for Commands.
	CommandIssuedEvent Event = "CommandIssued"
)
