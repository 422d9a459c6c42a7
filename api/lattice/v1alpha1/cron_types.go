package v1alpha1

// ConcurrencyPolicy is what happens at a time of the schedule while an earlier run goes on.
//
// +kubebuilder:validation:Enum=Allow;Forbid;Replace
type ConcurrencyPolicy string

const (
	// AllowConcurrent runs them side by side.
	AllowConcurrent ConcurrencyPolicy = "Allow"
	// ForbidConcurrent lets the earlier one end first.
	ForbidConcurrent ConcurrencyPolicy = "Forbid"
	// ReplaceConcurrent stops the earlier one.
	ReplaceConcurrent ConcurrencyPolicy = "Replace"
)

// How many runs that have ended are kept where nothing is said.
const (
	DefaultSuccessfulJobsHistoryLimit = 3
	DefaultFailedJobsHistoryLimit     = 1
)

// CronSpec has the job run again and again. Each run is a LatticeJob of its own.
type CronSpec struct {
	// schedule is when the job runs, in UTC: minute, hour, day of the month, month, day of the week; or @hourly, @daily, @weekly,
	// @monthly, @yearly.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Schedule string `json:"schedule,omitempty"`

	// concurrencyPolicy is what happens at a time of the schedule while an earlier run goes on; Allow where nothing is said.
	//
	// +optional
	ConcurrencyPolicy ConcurrencyPolicy `json:"concurrencyPolicy,omitempty"`

	// suspend begins no more runs. Those that have begun go on.
	//
	// +optional
	Suspend *bool `json:"suspend,omitempty"`

	// successfulJobsHistoryLimit is how many runs are kept that have succeeded; 3 where nothing is said.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	SuccessfulJobsHistoryLimit *int32 `json:"successfulJobsHistoryLimit,omitempty"`

	// failedJobsHistoryLimit is how many runs are kept that have failed; 1 where nothing is said.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	FailedJobsHistoryLimit *int32 `json:"failedJobsHistoryLimit,omitempty"`

	// startingDeadlineSeconds is how late a run may begin that could not at its time. At any time where it is absent.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	StartingDeadlineSeconds *int64 `json:"startingDeadlineSeconds,omitempty"`
}
