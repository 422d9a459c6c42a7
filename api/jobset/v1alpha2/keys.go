package v1alpha2

// Keys that are both label and annotation on every Job of a JobSet and on its pods.
const (
	// JobSetNameKey holds the name of the JobSet.
	JobSetNameKey = "jobset.sigs.k8s.io/jobset-name"
	// JobSetUIDKey holds the UID of the JobSet.
	JobSetUIDKey = "jobset.sigs.k8s.io/jobset-uid"
	// ReplicatedJobNameKey holds the name of the replicated job.
	ReplicatedJobNameKey = "jobset.sigs.k8s.io/replicatedjob-name"
	// ReplicatedJobReplicas holds the number of Jobs of the replicated job.
	ReplicatedJobReplicas = "jobset.sigs.k8s.io/replicatedjob-replicas"
	// GlobalReplicasKey holds the number of Jobs of the JobSet.
	GlobalReplicasKey = "jobset.sigs.k8s.io/global-replicas"
	// JobIndexKey holds the index of the Job within its replicated job, from 0.
	JobIndexKey = "jobset.sigs.k8s.io/job-index"
	// JobGlobalIndexKey holds the index of the Job within the JobSet, in the order of the spec, from 0.
	JobGlobalIndexKey = "jobset.sigs.k8s.io/job-global-index"
	// JobKey holds the SHA-1, in hex, of "<namespace>/<job name>".
	JobKey = "jobset.sigs.k8s.io/job-key"
	// GroupNameKey holds the group of the replicated job.
	GroupNameKey = "jobset.sigs.k8s.io/group-name"
	// GroupReplicasKey holds the number of Jobs of the group.
	GroupReplicasKey = "jobset.sigs.k8s.io/group-replicas"
	// JobGroupIndexKey holds the index of the Job within its group, from 0.
	JobGroupIndexKey = "jobset.sigs.k8s.io/job-group-index"
	// RestartAttemptKey holds status.restarts of the JobSet at the time when the Job was created.
	RestartAttemptKey = "jobset.sigs.k8s.io/restart-attempt"
	// JobRestartAttemptKey holds how often this one Job had been restarted when it was created.
	JobRestartAttemptKey = "jobset.sigs.k8s.io/job-restart-attempt"
	// CoordinatorKey holds the host name at which the coordinator pod is reached.
	CoordinatorKey = "jobset.sigs.k8s.io/coordinator"
)

// Keys that are not on every Job.
const (
	// PriorityKey is a label, on pods only: the priority of the pod.
	PriorityKey = "jobset.sigs.k8s.io/priority"
	// InPlaceRestartAttemptKey is an annotation with the attempt that a pod is in, written for the agent in it.
	InPlaceRestartAttemptKey = "jobset.sigs.k8s.io/in-place-restart-attempt"
	// DisableInPlaceRestartKey is an annotation on the JobSet that makes agents pass the barrier at once.
	DisableInPlaceRestartKey = "jobset.sigs.k8s.io/disable-in-place-restart"
	// ExclusiveKey is an annotation on the JobSet, or on the template of a replicated job, which takes precedence: the
	// node label of the topology level at which each Job gets a domain exclusively.
	ExclusiveKey = "alpha.jobset.sigs.k8s.io/exclusive-topology"
	// NodeSelectorStrategyKey is an annotation in addition to ExclusiveKey: users have labelled and tainted the nodes
	// for each Job. Its value does not matter.
	NodeSelectorStrategyKey = "alpha.jobset.sigs.k8s.io/node-selector"
	// NamespacedJobKey is the node label of that strategy; its value is "<namespace>_<job name>".
	NamespacedJobKey = "alpha.jobset.sigs.k8s.io/namespaced-job"
	// NoScheduleTaintKey is the node taint of that strategy.
	NoScheduleTaintKey = "alpha.jobset.sigs.k8s.io/no-schedule"
)

// JobSetControllerName is the value of spec.managedBy that is equivalent to none: Muster runs the JobSet. Muster
// ignores a JobSet with any other value.
const JobSetControllerName = "jobset.sigs.k8s.io/jobset-controller"

// DefaultGroupName is the group of a replicated job without groupName.
const DefaultGroupName = "default"
