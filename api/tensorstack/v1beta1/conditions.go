package v1beta1

// JobConditionType is the type of a condition of a GenericJob.
type JobConditionType string

// The conditions, in the order in which they are listed.
const (
	// JobInitialized: the job was looked at.
	JobInitialized JobConditionType = "Initialized"
	// JobRunning: all pods run, or have succeeded.
	JobRunning JobConditionType = "Running"
	// JobFailed: the job has failed.
	JobFailed JobConditionType = "Failed"
	// JobCompleted: the job has ended, in whatever way.
	JobCompleted JobConditionType = "Completed"
	// JobReplicaFailure: a replica has failed, and not all run again.
	JobReplicaFailure JobConditionType = "ReplicaFailure"
	// JobPaused: the job is paused.
	JobPaused JobConditionType = "Paused"
)

// Reasons of conditions.
const (
	// NoReason: there is nothing to explain.
	NoReason = "-"
	// SucceededReason and FailedReason are of the conditions that the end changes.
	SucceededReason = "Succeeded"
	FailedReason    = "Failed"
	// PausedReason is of the conditions that a pause changes, ResumedReason of those that its end changes.
	PausedReason  = "Paused"
	ResumedReason = "Resumed"
	// ErrorInPodReason: a container of a pod has ended with an error.
	ErrorInPodReason = "ErrorInPod"
	// PodsNotRunningReason: some pods do not run yet, or no more.
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
	// NoSuccessMessage takes what a replica did, ReplicaFailedMessage.
	NoSuccessMessage = "The job is failed: no success rule can be met any more. %s"
	// NotAllSucceededMessage takes what a replica of a job without success rules did, ReplicaFailedMessage.
	NotAllSucceededMessage = "The job is failed: without success rules all its replicas have to succeed. %s"
	// ReplicaFailedMessage takes the name of the pod and the exit code of its first container that failed.
	ReplicaFailedMessage = "Pod[%s] exited with error code %d"
	// ReplicaLostMessage takes the name of the pod and why it failed, where no container did.
	ReplicaLostMessage = "Pod[%s] failed: %s"
	NotEndedMessage    = "The job has not ended."
	PausedMessage      = "The job is paused."
	NotPausedMessage   = "The job is not paused."
)
