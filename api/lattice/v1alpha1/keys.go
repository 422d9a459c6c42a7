package v1alpha1

// What the objects that a LatticeJob is compiled to are known by.
const (
	// NameLabel holds the name of the job on its VCJob, and <job>-<task> on all that is a task's.
	NameLabel = "app.kubernetes.io/name"
	// ManagedByLabel says who looks after the object; its value is ManagedBy.
	ManagedByLabel = "app.kubernetes.io/managed-by"
	ManagedBy      = "lattice"
	// FieldManager owns the fields of the objects that are applied.
	FieldManager = "lattice-job-controller"
)

// Labels of the pods of a training.
const (
	// TrainingJobLabel holds the name of the job: pods of it talk to each other directly.
	TrainingJobLabel = "lattice.dev/training-job"
	// MeshModeLabel keeps them out of the ambient mesh with the value NoMesh.
	MeshModeLabel = "istio.io/dataplane-mode"
	NoMesh        = "none"
)

// What a run of a job with a schedule is known by.
const (
	// CronJobLabel holds the name of the job with the schedule.
	CronJobLabel = "lattice.dev/cron-job"
	// ScheduledAtAnnotation is the time of the schedule that it is for.
	ScheduledAtAnnotation = "lattice.dev/scheduled-at"
)

// DefaultScheduler is the scheduler of a job that names none.
const DefaultScheduler = "volcano"

// Messages of the status.
const (
	SubmittedMessage = "Job submitted to Volcano"
	SucceededMessage = "All tasks completed successfully"
	FailedMessage    = "Job failed"
	// LostMessage is that of a job whose VCJob somebody deleted while it ran. It stays Running.
	LostMessage = "Its VCJob was deleted, so nothing of it runs, and it is not made again: delete the LatticeJob, and make another to run it"
	// CronSubmittedMessage is that of a job with a schedule at first, and CronActiveMessage later: how many runs go on, and
	// the last time of the schedule at which one began.
	CronSubmittedMessage = "Cron job active"
	CronActiveMessage    = "Cron active: %d job(s), last scheduled: %s"
	// CompileFailedMessage takes what is wrong with the spec.
	CompileFailedMessage = "Failed to compile job: %s"
	// RetryCompileMessage takes what could not be read.
	RetryCompileMessage = "Compile failed (will retry): %s"
	// RetryApplyMessage takes what could not be written.
	RetryApplyMessage = "Apply failed (will retry): %s"
)
