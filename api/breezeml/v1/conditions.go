package v1

// Reasons of conditions and of events.
const (
	CreatedReason    = "TrainingJobCreated"
	RunningReason    = "TrainingJobRunning"
	RestartingReason = "TrainingJobRestarting"
	SucceededReason  = "TrainingJobSucceeded"
	FailedReason     = "TrainingJobFailed"
	SuspendedReason  = "TrainingJobSuspended"
	ResumedReason    = "TrainingJobResumed"
	// TemplateRestartPolicyReason is that of the event which says that the template's restart policy is ignored.
	TemplateRestartPolicyReason = "SettedPodTemplateRestartPolicy"
	// RestartPolicyReplacedReason is that of the event which says that another restart policy is used than the job says.
	RestartPolicyReplacedReason = "RestartPolicyReplaced"
	// WrongConfigurationReason and RequeueCooldownReason are those of the events that report these stages.
	WrongConfigurationReason = "WrongConfiguration"
	RequeueCooldownReason    = "RequeueCooldown"
	// StoppedByCooldownReason is that of the condition Running, whose message says why pods were pending.
	StoppedByCooldownReason = "TrainingJobRequeueCooldown"
	// ResizedReason is that of the event that reports a new size.
	ResizedReason = "Resized"
	// SizeLimitedReason is that of the event which says why the job goes on with fewer workers than it was given.
	SizeLimitedReason = "SizeLimited"
)

// Messages of conditions and of events. Each takes the name of the job first.
const (
	CreatedMessage   = "TrainingJob %s is created."
	RunningMessage   = "TrainingJob %s is running."
	SucceededMessage = "TrainingJob %s is successfully completed."
	// RestartingMessage and FailedMessage take the number of failed workers, and how one of them failed.
	RestartingMessage = "TrainingJob %s is restarting because %d worker replica(s) failed: %s"
	FailedMessage     = "TrainingJob %s is failed because %d worker replica(s) failed: %s"
	DeadlineMessage   = "TrainingJob %s has failed because it was active longer than specified deadline"
	// BackoffMessage takes how one worker failed.
	BackoffMessage = "TrainingJob %s has failed because it has reached the specified backoff limit: %s"
	// StoppedMessage is that of a job that has lost its workers' quota.
	StoppedMessage   = "TrainingJob %s has no workers."
	SuspendedMessage = "TrainingJob %s is suspended."
	ResumedMessage   = "TrainingJob %s is resumed."
)
