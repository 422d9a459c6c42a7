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

// DefaultScheduler is the scheduler of a job that names none.
const DefaultScheduler = "volcano"

// Messages of the status.
const (
	SubmittedMessage = "Job submitted to Volcano"
	SucceededMessage = "All tasks completed successfully"
	FailedMessage    = "Job failed"
	// CompileFailedMessage takes what is wrong with the spec.
	CompileFailedMessage = "Failed to compile job: %s"
	// RetryCompileMessage takes what could not be read.
	RetryCompileMessage = "Compile failed (will retry): %s"
	// RetryApplyMessage takes what could not be written.
	RetryApplyMessage = "Apply failed (will retry): %s"
)
