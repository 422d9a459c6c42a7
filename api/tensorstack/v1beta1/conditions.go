package v1beta1

// JobConditionType is the type of a condition of a GenericJob.
type JobConditionType string

// The types of conditions, in the order in which they are listed.
const (
	// JobInitialized: the job has been reconciled.
	JobInitialized JobConditionType = "Initialized"
	// JobRunning: all pods are running or have succeeded.
	JobRunning JobConditionType = "Running"
	// JobFailed: the job has failed.
	JobFailed JobConditionType = "Failed"
	// JobCompleted: the job has succeeded or failed.
	JobCompleted JobConditionType = "Completed"
	// JobReplicaFailure: a replica has failed, and not all are running again.
	JobReplicaFailure JobConditionType = "ReplicaFailure"
	// JobPaused: the job is paused.
	JobPaused JobConditionType = "Paused"
)

// Reasons of conditions.
const (
	// NoReason: there is nothing to explain.
	NoReason = "-"
	// SucceededReason and FailedReason are those of conditions that change at the end of the job.
	SucceededReason = "Succeeded"
	FailedReason    = "Failed"
	// PausedReason is that of conditions that change with a pause, ResumedReason that of conditions that change at its
	// end.
	PausedReason  = "Paused"
	ResumedReason = "Resumed"
	// ErrorInPodReason: a container of a pod has ended with an error.
	ErrorInPodReason = "ErrorInPod"
	// PodsNotRunningReason: some pods are not running, not yet or not any more.
	PodsNotRunningReason = "PodsNotRunning"
)

// Messages of conditions.
const (
	InitializedMessage = "The job has been initialized successfully."
	RunningMessage     = "All pods are running normally."
	NotRunningMessage  = "Not all pods are running."
	SucceededMessage   = "The job has finished successfully."
	// FailedByRuleMessage takes the rule, as JSON.
	FailedByRuleMessage = "The job is failed with rule: %s"
	// NoSuccessMessage takes the ReplicaFailedMessage of a replica.
	NoSuccessMessage = "The job is failed: no success rule can be met any more. %s"
	// NotAllSucceededMessage, for a job without success rules, takes the ReplicaFailedMessage of a replica.
	NotAllSucceededMessage = "The job is failed: without success rules all its replicas have to succeed. %s"
	// ReplicaFailedMessage takes the name of the pod and the exit code of its first container that failed.
	ReplicaFailedMessage = "Pod[%s] exited with error code %d"
	// ReplicaLostMessage takes the name of the pod and why it failed, for a pod without a failed container.
	ReplicaLostMessage = "Pod[%s] failed: %s"
	NotEndedMessage    = "The job has not ended."
	PausedMessage      = "The job is paused."
	NotPausedMessage   = "The job is not paused."
)
