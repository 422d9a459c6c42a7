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
	// TemplateRestartPolicyReason is of the event that tells that the template's restart policy does not count.
	TemplateRestartPolicyReason = "SettedPodTemplateRestartPolicy"
	// WrongConfigurationReason and RequeueCooldownReason are of the events that tell of these stages.
	WrongConfigurationReason = "WrongConfiguration"
	RequeueCooldownReason    = "RequeueCooldown"
	// ResizedReason is of the event that tells of another size.
	ResizedReason = "Resized"
)

// Messages of conditions and of events. Each takes the name of the job first.
const (
	CreatedMessage   = "TrainingJob %s is created."
	RunningMessage   = "TrainingJob %s is running."
	SucceededMessage = "TrainingJob %s is successfully completed."
	// RestartingMessage and FailedMessage take how many workers have failed, and how one of them did.
	RestartingMessage = "TrainingJob %s is restarting because %d worker replica(s) failed: %s"
	FailedMessage     = "TrainingJob %s is failed because %d worker replica(s) failed: %s"
	DeadlineMessage   = "TrainingJob %s has failed because it was active longer than specified deadline"
	// BackoffMessage takes how one worker failed.
	BackoffMessage = "TrainingJob %s has failed because it has reached the specified backoff limit: %s"
	// StoppedMessage is of a job that has lost what it ran with.
	StoppedMessage   = "TrainingJob %s has no workers."
	SuspendedMessage = "TrainingJob %s is suspended."
	ResumedMessage   = "TrainingJob %s is resumed."
)
