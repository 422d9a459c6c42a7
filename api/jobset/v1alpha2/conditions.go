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

// Reasons and messages of Completed and of Failed. FirstFailedJobMessage is the end of the messages of Failed; its verb
// takes the name of the Job.
const (
	AllJobsCompletedReason                 = "AllJobsCompleted"
	AllJobsCompletedMessage                = "jobset completed successfully"
	FailedJobsReason                       = "FailedJobs"
	FailedJobsMessage                      = "jobset failed due to one or more job failures"
	ReachedMaxRestartsReason               = "ReachedMaxRestarts"
	ReachedMaxRestartsMessage              = "jobset failed due to reaching max number of restarts"
	FailJobSetFailurePolicyActionReason    = "FailJobSetFailurePolicyAction"
	FailJobSetFailurePolicyActionMessage   = "applying FailJobSet failure policy action"
	FirstFailedJobMessage                  = " (first failed job: %s)"
	RestartJobSetFailurePolicyActionReason = "RestartJobSetFailurePolicyAction"
	RestartJobFailurePolicyActionReason    = "RestartJobFailurePolicyAction"
	RestartJobSetIgnoreMaxRestartsReason   = "RestartJobSetAndIgnoreMaxRestartsFailurePolicyAction"
	RestartJobIgnoreMaxRestartsReason      = "RestartJobAndIgnoreMaxRestartsFailurePolicyAction"
	RestartFailurePolicyActionMessage      = "applying %s failure policy action"
	ExclusivePlacementViolationReason      = "ExclusivePlacementViolation"
	JobCreationFailedReason                = "JobCreationFailed"
	HeadlessServiceCreationFailedReason    = "HeadlessServiceCreationFailed"
	PVCCreationFailedReason                = "PVCCreationFailed"
)

// Reasons and messages of Suspended, True and False.
const (
	JobSetSuspendedReason  = "SuspendedJobs"
	JobSetSuspendedMessage = "jobset is suspended"
	JobSetResumedReason    = "ResumeJobs"
	JobSetResumedMessage   = "jobset is resumed"
)

// Reasons and messages of RestartingJobSet. True: the policy that asked for the restart, with the action's message;
// FailurePolicyReasonPrefix begins the reason, and the name of the rule ends it.
const (
	DefaultFailurePolicyReason = "DefaultFailurePolicy"
	FailurePolicyReasonPrefix  = "FailurePolicy_"
	JobsReadyReason            = "JobsReady"
	JobsReadyMessage           = "all jobs are ready"
	RestartJobSetFailedReason  = "JobSetFailed"
	RestartJobSetFailedMessage = "jobset failed"
	RestartCompletedReason     = "JobSetCompleted"
	RestartSuspendedReason     = "JobSetSuspended"
)

// Reasons and messages of StartupPolicyInProgress and StartupPolicyCompleted.
const (
	InOrderStartupPolicyInProgressReason  = "InOrderStartupPolicyInProgress"
	InOrderStartupPolicyInProgressMessage = "in order startup policy is in progress"
	InOrderStartupPolicyCompletedReason   = "InOrderStartupPolicyCompleted"
	InOrderStartupPolicyCompletedMessage  = "in order startup policy has completed"
)
