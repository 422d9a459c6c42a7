package v1alpha2

// JobSetConditionType is the type of a condition of a JobSet.
type JobSetConditionType string

const (
	// JobSetCompleted: the set has succeeded.
	JobSetCompleted JobSetConditionType = "Completed"
	// JobSetFailed: the set has failed.
	JobSetFailed JobSetConditionType = "Failed"
	// JobSetSuspended: the set is suspended.
	JobSetSuspended JobSetConditionType = "Suspended"
	// JobSetRestarting: Jobs are being made anew and are not all ready.
	JobSetRestarting JobSetConditionType = "RestartingJobSet"
	// JobSetStartupPolicyInProgress: Jobs are being started in order.
	JobSetStartupPolicyInProgress JobSetConditionType = "StartupPolicyInProgress"
	// JobSetStartupPolicyCompleted: all Jobs have been started in order.
	JobSetStartupPolicyCompleted JobSetConditionType = "StartupPolicyCompleted"
)

// Reasons and messages of Completed.
const (
	// AllJobsCompletedReason: the Jobs that the success policy asks for have succeeded.
	AllJobsCompletedReason  = "AllJobsCompleted"
	AllJobsCompletedMessage = "jobset completed successfully"
)

// Reasons and messages of Failed.
const (
	// FailedJobsReason: a Job failed and there is no failure policy.
	FailedJobsReason  = "FailedJobs"
	FailedJobsMessage = "jobset failed due to one or more job failures"
	// ReachedMaxRestartsReason: a Job failed and maxRestarts is used up.
	ReachedMaxRestartsReason  = "ReachedMaxRestarts"
	ReachedMaxRestartsMessage = "jobset failed due to reaching max number of restarts"
	// FailJobSetFailurePolicyActionReason: a failure rule asked for it.
	FailJobSetFailurePolicyActionReason  = "FailJobSetFailurePolicyAction"
	FailJobSetFailurePolicyActionMessage = "applying FailJobSet failure policy action"
	// FirstFailedJobMessage ends the messages above; its verb takes the name of the Job.
	FirstFailedJobMessage = " (first failed job: %s)"
)

// Reasons of events about failures that do not end the JobSet. Their message is RestartFailurePolicyActionMessage, whose
// verb takes the action, with FirstFailedJobMessage at the end.
const (
	RestartJobSetFailurePolicyActionReason = "RestartJobSetFailurePolicyAction"
	RestartJobFailurePolicyActionReason    = "RestartJobFailurePolicyAction"
	RestartJobSetIgnoreMaxRestartsReason   = "RestartJobSetAndIgnoreMaxRestartsFailurePolicyAction"
	RestartJobIgnoreMaxRestartsReason      = "RestartJobAndIgnoreMaxRestartsFailurePolicyAction"
	RestartFailurePolicyActionMessage      = "applying %s failure policy action"
)

// Reasons of events about objects that could not be made; the message is the API server's refusal.
const (
	JobCreationFailedReason             = "JobCreationFailed"
	HeadlessServiceCreationFailedReason = "HeadlessServiceCreationFailed"
	PVCCreationFailedReason             = "PVCCreationFailed"
)

// Reasons and messages of Suspended.
const (
	// JobSetSuspendedReason: it is True.
	JobSetSuspendedReason  = "SuspendedJobs"
	JobSetSuspendedMessage = "jobset is suspended"
	// JobSetResumedReason: it is False again.
	JobSetResumedReason  = "ResumeJobs"
	JobSetResumedMessage = "jobset is resumed"
)

// Reasons and messages of RestartingJobSet. While it is True the message is that of the action.
const (
	// DefaultFailurePolicyReason: no rule matched, so the set restarts.
	DefaultFailurePolicyReason = "DefaultFailurePolicy"
	// FailurePolicyReasonPrefix begins the reason where a rule asked for the restart; the name of the rule ends it.
	FailurePolicyReasonPrefix = "FailurePolicy_"
	// JobsReadyReason: it is False, for all Jobs are ready.
	JobsReadyReason  = "JobsReady"
	JobsReadyMessage = "all jobs are ready"
	// RestartJobSetFailedReason: it is False, for the set has failed.
	RestartJobSetFailedReason  = "JobSetFailed"
	RestartJobSetFailedMessage = "jobset failed"
	// RestartCompletedReason: it is False, for the set has succeeded; the message is AllJobsCompletedMessage.
	RestartCompletedReason = "JobSetCompleted"
	// RestartSuspendedReason: it is False, for the set is suspended; the message is JobSetSuspendedMessage.
	RestartSuspendedReason = "JobSetSuspended"
)

// Reasons and messages of StartupPolicyInProgress and StartupPolicyCompleted, when they turn True.
const (
	InOrderStartupPolicyInProgressReason  = "InOrderStartupPolicyInProgress"
	InOrderStartupPolicyInProgressMessage = "in order startup policy is in progress"
	InOrderStartupPolicyCompletedReason   = "InOrderStartupPolicyCompleted"
	InOrderStartupPolicyCompletedMessage  = "in order startup policy has completed"
)
