package v1alpha1

// Labels and annotations of the pods of a Job.
const (
	// JobNameKey holds the name of the Job; a label, and an annotation too.
	JobNameKey = "volcano.sh/job-name"
	// JobNamespaceKey holds the namespace of the Job; a label.
	JobNamespaceKey = "volcano.sh/job-namespace"
	// QueueNameKey holds the queue that the Job names; a label, and an annotation too.
	QueueNameKey = "volcano.sh/queue-name"
	// TaskSpecKey holds the name of the task; a label, and an annotation too.
	TaskSpecKey = "volcano.sh/task-spec"
	// TaskIndexKey holds the number of the pod in its task; a label, and an annotation too.
	TaskIndexKey = "volcano.sh/task-index"
	// JobVersionKey holds status.version of the Job when the pod was made; an annotation.
	JobVersionKey = "volcano.sh/job-version"
	// JobRetryCountKey holds status.retryCount of the Job when the pod was made; an annotation.
	JobRetryCountKey = "volcano.sh/job-retry-count"
	// JobTypeKey holds the kind of job that it is for Volcano's users; an annotation that is theirs to set.
	JobTypeKey = "volcano.sh/job-type"
	// TemplateUIDKey holds the name of job and task; an annotation.
	TemplateUIDKey = "volcano.sh/template-uid"
	// GroupNameAnnotation holds the name of the PodGroup, for Volcano's scheduler.
	GroupNameAnnotation = "scheduling.k8s.io/group-name"
)

// SchedulerName is the name of Volcano's scheduler in a pod's spec.
const SchedulerName = "volcano"

// Reasons of the state of a Job that is Pending and may have no pods yet. Volcano has none of them.
const (
	// WaitingForQuota is that of a Job whose queue has no room for it yet, or no more.
	WaitingForQuota = "WaitingForQuota"
	// QueueNotFound is that of a Job whose queue there is not.
	QueueNotFound = "QueueNotFound"
	// NoPods is that of a Job of which all tasks have no replicas.
	NoPods = "NoPods"
)

// DefaultQueue is the queue of a Job that names none.
const DefaultQueue = "default"

// DefaultMaxRetry is how often a Job is restarted that does not say it.
const DefaultMaxRetry int32 = 3

// DefaultTaskPrefix begins the name of a task that has none; its number follows.
const DefaultTaskPrefix = "default"
