package v1alpha2

// JobSetConditionType is the type of a condition of a JobSet.
type JobSetConditionType string

const (
	// JobSetCompleted: the JobSet has succeeded.
	JobSetCompleted JobSetConditionType = "Completed"
	// JobSetFailed: the JobSet has failed.
	JobSetFailed JobSetConditionType = "Failed"
	// JobSetSuspended: the JobSet is suspended.
	JobSetSuspended JobSetConditionType = "Suspended"
	// JobSetRestarting: Jobs are being recreated and not all are ready.
	JobSetRestarting JobSetConditionType = "RestartingJobSet"
	// JobSetStartupPolicyInProgress: Jobs are being started in order.
	JobSetStartupPolicyInProgress JobSetConditionType = "StartupPolicyInProgress"
	// JobSetStartupPolicyCompleted: all Jobs have been started in order.
	JobSetStartupPolicyCompleted JobSetConditionType = "StartupPolicyCompleted"
)

// Reasons and messages of Completed.
const (
	// AllJobsCompletedReason: the Jobs that the success policy requires have succeeded.
	AllJobsCompletedReason  = "AllJobsCompleted"
	AllJobsCompletedMessage = "jobset completed successfully"
)

// Reasons and messages of Failed.
const (
	// FailedJobsReason: a Job failed and there is no failure policy.
	FailedJobsReason  = "FailedJobs"
	FailedJobsMessage = "jobset failed due to one or more job failures"
	// ReachedMaxRestartsReason: a Job failed and maxRestarts is exhausted.
	ReachedMaxRestartsReason  = "ReachedMaxRestarts"
	ReachedMaxRestartsMessage = "jobset failed due to reaching max number of restarts"
	// FailJobSetFailurePolicyActionReason: a failure policy rule failed the JobSet.
	FailJobSetFailurePolicyActionReason  = "FailJobSetFailurePolicyAction"
	FailJobSetFailurePolicyActionMessage = "applying FailJobSet failure policy action"
	// FirstFailedJobMessage is the end of the messages above; it takes the name of the Job.
	FirstFailedJobMessage = " (first failed job: %s)"
)

// Reasons of events about failures that do not end the JobSet. Their message is RestartFailurePolicyActionMessage,
// which takes the action, followed by FirstFailedJobMessage.
const (
	RestartJobSetFailurePolicyActionReason = "RestartJobSetFailurePolicyAction"
	RestartJobFailurePolicyActionReason    = "RestartJobFailurePolicyAction"
	RestartJobSetIgnoreMaxRestartsReason   = "RestartJobSetAndIgnoreMaxRestartsFailurePolicyAction"
	RestartJobIgnoreMaxRestartsReason      = "RestartJobAndIgnoreMaxRestartsFailurePolicyAction"
	RestartFailurePolicyActionMessage      = "applying %s failure policy action"
)

// Reasons of events about objects that could not be created; the message is the API server's error.
const (
	JobCreationFailedReason             = "JobCreationFailed"
	HeadlessServiceCreationFailedReason = "HeadlessServiceCreationFailed"
	PVCCreationFailedReason             = "PVCCreationFailed"
)

// Reasons and messages of Suspended.
const (
	// JobSetSuspendedReason: the condition is True.
	JobSetSuspendedReason  = "SuspendedJobs"
	JobSetSuspendedMessage = "jobset is suspended"
	// JobSetResumedReason: the condition is False again.
	JobSetResumedReason  = "ResumeJobs"
	JobSetResumedMessage = "jobset is resumed"
)

// Reasons and messages of RestartingJobSet. While it is True the message is that of the action.
const (
	// DefaultFailurePolicyReason: no rule matched, so the JobSet restarts.
	DefaultFailurePolicyReason = "DefaultFailurePolicy"
	// FailurePolicyReasonPrefix, followed by the name of a rule, is the reason for a restart by that rule.
	FailurePolicyReasonPrefix = "FailurePolicy_"
	// JobsReadyReason: the condition is False since all Jobs are ready.
	JobsReadyReason  = "JobsReady"
	JobsReadyMessage = "all jobs are ready"
	// RestartJobSetFailedReason: the condition is False since the JobSet has failed.
	RestartJobSetFailedReason  = "JobSetFailed"
	RestartJobSetFailedMessage = "jobset failed"
	// RestartCompletedReason: the condition is False since the JobSet has succeeded; the message is
	// AllJobsCompletedMessage.
	RestartCompletedReason = "JobSetCompleted"
	// RestartSuspendedReason: the condition is False since the JobSet is suspended; the message is
	// JobSetSuspendedMessage.
	RestartSuspendedReason = "JobSetSuspended"
)

// Reasons and messages of StartupPolicyInProgress and StartupPolicyCompleted, when they turn True.
const (
	InOrderStartupPolicyInProgressReason  = "InOrderStartupPolicyInProgress"
	InOrderStartupPolicyInProgressMessage = "in order startup policy is in progress"
	InOrderStartupPolicyCompletedReason   = "InOrderStartupPolicyCompleted"
	InOrderStartupPolicyCompletedMessage  = "in order startup policy has completed"
)
