package v1beta1

// Labels of the pods of a GenericJob.
const (
	// GenericJobLabel holds the name of the GenericJob.
	GenericJobLabel = "genericjob"
	// ReplicaLabel holds the name of the replica, <job>-<type>-<rank>, which is also that of the pod and the Service.
	ReplicaLabel = "genericjob-replica"
	// ComponentLabel says what created the pod; its value is ComponentGenericJob.
	ComponentLabel      = "tensorstack.dev/component"
	ComponentGenericJob = "genericjob"
	// ComponentTypeLabel says for whom the pod was created; its value is ComponentTypeUser.
	ComponentTypeLabel = "tensorstack.dev/component-type"
	ComponentTypeUser  = "user"
	// OwnerNameLabel holds the name of the GenericJob.
	OwnerNameLabel = "tensorstack.dev/owner-name"
)

// Labels of the pods of a GenericJob with a t9kScheduler section.
const (
	// GroupNameLabel holds the name of the PodGroup, which is the GenericJob's.
	GroupNameLabel = "scheduler.tensorstack.dev/group-name"
	// QueueLabel holds the queue.
	QueueLabel = "scheduler.tensorstack.dev/queue"
	// RoleLabel holds the type of the replica.
	RoleLabel = "scheduler.tensorstack.dev/role"
)

// T9kSchedulerName is the name of the vendor's own scheduler in a pod's spec.
const T9kSchedulerName = "t9k-scheduler"

// DefaultQueue is the queue of a t9kScheduler section without one.
const DefaultQueue = "default"
