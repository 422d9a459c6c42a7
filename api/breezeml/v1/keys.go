package v1

// Labels of the pods and Services of a TrainingJob.
const (
	// OperatorNameLabel names the operator that created them; its value is OperatorName.
	OperatorNameLabel = "training.kubeflow.org/operator-name"
	OperatorName      = "trainingjob-controller"
	// JobNameLabel holds the name of the TrainingJob.
	JobNameLabel = "training.kubeflow.org/job-name"
	// ReplicaTypeLabel holds the type of the replica; its value is WorkerType.
	ReplicaTypeLabel = "training.kubeflow.org/replica-type"
	WorkerType       = "worker"
	// ReplicaIndexLabel holds the number of the replica, from 0.
	ReplicaIndexLabel = "training.kubeflow.org/replica-index"
)

const (
	// DefaultContainerName is the name of the main container: its exit code counts, and the agent runs in it. If no
	// container has that name, it is the first one.
	DefaultContainerName = "trainingjob"

	// DatasetsPath is where the dataset of a job is mounted, under its name.
	DatasetsPath = "/datasets/"

	// ControllerName is the value of spec.runPolicy.managedBy that is equivalent to none. A job with any other value is
	// left to another controller.
	ControllerName = "kubeflow.org/training-operator"
)

// MostWorkers is how many workers a job may have. The schema refuses larger jobs, but not those that were stored before
// it did.
const MostWorkers = 10000
