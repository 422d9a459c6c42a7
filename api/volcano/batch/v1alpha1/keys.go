package v1alpha1

// Labels and annotations of the pods of a Job.
const (
	// JobNameKey holds the name of the Job; a label, and an annotation too.
	JobNameKey = "volcano.sh/job-name"
	// JobNamespaceKey holds the namespace of the Job; a label.
	JobNamespaceKey = "volcano.sh/job-namespace"
	// QueueNameKey holds the queue that the Job names; a label, and an annotation too.
	QueueNameKey = "volcano.sh/queue-name"
	// ReadyKey of status.controlledResources holds how many of the running pods are ready, as Muster adds it.
	ReadyKey = "muster.dev/ready"
	// TaskSpecKey holds the name of the task; a label, and an annotation too.
	TaskSpecKey = "volcano.sh/task-spec"
	// TaskIndexKey holds the number of the pod in its task; a label, and an annotation too.
	TaskIndexKey = "volcano.sh/task-index"
	// JobVersionKey holds status.version of the Job when the pod was created; an annotation.
	JobVersionKey = "volcano.sh/job-version"
	// JobRetryCountKey holds status.retryCount of the Job when the pod was created; an annotation.
	JobRetryCountKey = "volcano.sh/job-retry-count"
	// JobTypeKey holds the type of the job as its user sets it; an annotation.
	JobTypeKey = "volcano.sh/job-type"
	// TemplateUIDKey holds the name of job and task; an annotation.
	TemplateUIDKey = "volcano.sh/template-uid"
	// GroupNameAnnotation holds the name of the PodGroup, for Volcano's scheduler.
	GroupNameAnnotation = "scheduling.k8s.io/group-name"
)

// SchedulerName is the name of Volcano's scheduler in a pod's spec.
const SchedulerName = "volcano"

// Reasons of the state of a Pending Job. They do not exist in Volcano.
const (
	// WaitingForQuota: the queue has no quota for the Job yet, or not any more.
	WaitingForQuota = "WaitingForQuota"
	// QueueNotFound: the queue of the Job does not exist.
	QueueNotFound = "QueueNotFound"
	// NoPods: all tasks of the Job have 0 replicas.
	NoPods = "NoPods"
)

// DefaultQueue is the queue of a Job without one.
const DefaultQueue = "default"

// DefaultMaxRetry is the maxRetry of a Job without one.
const DefaultMaxRetry int32 = 3

// DefaultTaskPrefix, followed by its index, is the name of a task without one.
const DefaultTaskPrefix = "default"
