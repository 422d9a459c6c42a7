package v1alpha1

// ConcurrencyPolicy determines what happens at a scheduled time while an earlier run is active.
//
// +kubebuilder:validation:Enum=Allow;Forbid;Replace
type ConcurrencyPolicy string

const (
	// AllowConcurrent runs both concurrently.
	AllowConcurrent ConcurrencyPolicy = "Allow"
	// ForbidConcurrent starts the run only after the earlier one has ended.
	ForbidConcurrent ConcurrencyPolicy = "Forbid"
	// ReplaceConcurrent stops the earlier run.
	ReplaceConcurrent ConcurrencyPolicy = "Replace"
)

// Default numbers of finished runs that are kept.
const (
	DefaultSuccessfulJobsHistoryLimit = 3
	DefaultFailedJobsHistoryLimit     = 1
)

// CronSpec runs the job repeatedly. Each run is a LatticeJob of its own.
type CronSpec struct {
	// schedule is when the job runs, in UTC: minute, hour, day of the month, month, day of the week; or @hourly, @daily,
	// @weekly, @monthly, @yearly.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Schedule string `json:"schedule,omitempty"`

	// concurrencyPolicy determines what happens at a scheduled time while an earlier run is active; default Allow.
	//
	// +optional
	ConcurrencyPolicy ConcurrencyPolicy `json:"concurrencyPolicy,omitempty"`

	// suspend starts no more runs. Active runs continue.
	//
	// +optional
	Suspend *bool `json:"suspend,omitempty"`

	// successfulJobsHistoryLimit is how many succeeded runs are kept; default 3.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	SuccessfulJobsHistoryLimit *int32 `json:"successfulJobsHistoryLimit,omitempty"`

	// failedJobsHistoryLimit is how many failed runs are kept; default 1.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	FailedJobsHistoryLimit *int32 `json:"failedJobsHistoryLimit,omitempty"`

	// startingDeadlineSeconds is how late a run that missed its scheduled time may start; no limit if absent.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	StartingDeadlineSeconds *int64 `json:"startingDeadlineSeconds,omitempty"`
}
