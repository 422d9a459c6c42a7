package v1alpha1

// Labels and the field manager of the objects that a LatticeJob is compiled to.
const (
	// NameLabel holds the name of the job on its VCJob, and <job>-<task> on the objects of a task.
	NameLabel = "app.kubernetes.io/name"
	// ManagedByLabel names the controller of the object; its value is ManagedBy.
	ManagedByLabel = "app.kubernetes.io/managed-by"
	ManagedBy      = "lattice"
	// FieldManager is the field manager of the applied objects.
	FieldManager = "lattice-job-controller"
)

// Labels of the pods of a training.
const (
	// TrainingJobLabel holds the name of the job, whose pods communicate directly.
	TrainingJobLabel = "lattice.dev/training-job"
	// MeshModeLabel with the value NoMesh excludes them from the ambient mesh.
	MeshModeLabel = "istio.io/dataplane-mode"
	NoMesh        = "none"
)

// Label and annotation of a run of a job with a schedule.
const (
	// CronJobLabel holds the name of the job with the schedule.
	CronJobLabel = "lattice.dev/cron-job"
	// ScheduledAtAnnotation is the scheduled time of the run.
	ScheduledAtAnnotation = "lattice.dev/scheduled-at"
)

// DefaultScheduler is the scheduler of a job without schedulerName.
const DefaultScheduler = "volcano"

// Messages of the status.
const (
	SubmittedMessage = "Job submitted to Volcano"
	SucceededMessage = "All tasks completed successfully"
	FailedMessage    = "Job failed"
	// LostMessage is that of a job whose VCJob was deleted by others while it ran. It stays Running.
	LostMessage = "Its VCJob was deleted and is not recreated: to run the job again, delete the LatticeJob and create a new one"
	// CronSubmittedMessage is the first one of a job with a schedule; CronActiveMessage replaces it with the number of
	// active runs and the scheduled time of the last run.
	CronSubmittedMessage = "Cron job active"
	CronActiveMessage    = "Cron active: %d job(s), last scheduled: %s"
	// CompileFailedMessage takes the error in the spec.
	CompileFailedMessage = "Failed to compile job: %s"
	// RetryCompileMessage takes the error of a read.
	RetryCompileMessage = "Compile failed (will retry): %s"
	// RetryApplyMessage takes the error of a write.
	RetryApplyMessage = "Apply failed (will retry): %s"
)
