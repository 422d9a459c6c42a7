package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Queue is a share of the cluster for the jobs that name it.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:path=queues,scope=Cluster,shortName=q;queue-v1beta1
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="STATE",type=string,JSONPath=`.status.state`,description="Whether it accepts jobs"
// +kubebuilder:printcolumn:name="PARENT",type=string,JSONPath=`.spec.parent`,description="Parent queue"
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=`.metadata.creationTimestamp`,description="Time since creation"
type Queue struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state of the queue.
	//
	// +optional
	Spec QueueSpec `json:"spec,omitempty"`
	// status is the observed state of the queue.
	//
	// +optional
	Status QueueStatus `json:"status,omitempty"`
}

// QueueList is a list of Queues.
//
// +kubebuilder:object:root=true
type QueueList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Queue `json:"items"`
}

// QueueSpec describes the resources of a Queue.
type QueueSpec struct {
	// weight of the queue's share of resources that no queue is entitled to.
	//
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Weight int32 `json:"weight,omitempty"`

	// capability is the most that its jobs may hold.
	//
	// +optional
	Capability corev1.ResourceList `json:"capability,omitempty"`

	// reclaimable says whether other queues may reclaim what its jobs hold beyond deserved; default true.
	//
	// +optional
	Reclaimable *bool `json:"reclaimable,omitempty"`

	// extendClusters are other clusters to which jobs may be sent. Not implemented.
	//
	// +optional
	// +listType=atomic
	ExtendClusters []Cluster `json:"extendClusters,omitempty"`

	// guarantee is reserved for it even if it is not used.
	//
	// +optional
	Guarantee Guarantee `json:"guarantee,omitempty"`

	// affinity selects node groups for its pods. Only Volcano's scheduler implements it.
	//
	// +optional
	Affinity *Affinity `json:"affinity,omitempty"`

	// type is Volcano's word for the origin of the queue.
	//
	// +optional
	Type string `json:"type,omitempty"`

	// parent is the parent queue; default root.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Parent string `json:"parent,omitempty"`

	// deserved is what the queue may reclaim from others.
	//
	// +optional
	Deserved corev1.ResourceList `json:"deserved,omitempty"`

	// priority takes precedence over weight: a queue with a higher one is served first.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	Priority int32 `json:"priority,omitempty"`

	// dequeueStrategy says whether other jobs are tried if the first one does not fit.
	//
	// +optional
	// +kubebuilder:default=traverse
	DequeueStrategy DequeueStrategy `json:"dequeueStrategy,omitempty"`
}

// DequeueStrategy says whether jobs may overtake one that does not fit.
//
// +kubebuilder:validation:Enum=fifo;traverse
type DequeueStrategy string

const (
	// DequeueStrategyFIFO: they may not.
	DequeueStrategyFIFO DequeueStrategy = "fifo"
	// DequeueStrategyTraverse: they may.
	DequeueStrategyTraverse DequeueStrategy = "traverse"
)

// Guarantee is what is reserved for a Queue.
type Guarantee struct {
	// resource is the amount of each resource.
	//
	// +optional
	Resource corev1.ResourceList `json:"resource,omitempty"`
}

// Cluster is another cluster.
type Cluster struct {
	// name of the cluster.
	//
	// +optional
	Name string `json:"name,omitempty"`
	// weight of the cluster's share.
	//
	// +optional
	Weight int32 `json:"weight,omitempty"`
	// capacity of the cluster.
	//
	// +optional
	Capacity corev1.ResourceList `json:"capacity,omitempty"`
}

// Affinity selects node groups for pods.
type Affinity struct {
	// nodeGroupAffinity are groups on which the pods run.
	//
	// +optional
	NodeGroupAffinity *NodeGroups `json:"nodeGroupAffinity,omitempty"`
	// nodeGroupAntiAffinity are groups on which the pods do not run.
	//
	// +optional
	NodeGroupAntiAffinity *NodeGroups `json:"nodeGroupAntiAffinity,omitempty"`
}

// NodeGroups are names of groups of nodes.
type NodeGroups struct {
	// requiredDuringSchedulingIgnoredDuringExecution must be satisfied.
	//
	// +optional
	// +listType=atomic
	Required []string `json:"requiredDuringSchedulingIgnoredDuringExecution,omitempty"`
	// preferredDuringSchedulingIgnoredDuringExecution is satisfied if possible.
	//
	// +optional
	// +listType=atomic
	Preferred []string `json:"preferredDuringSchedulingIgnoredDuringExecution,omitempty"`
}

// QueueState says whether a Queue accepts jobs.
type QueueState string

const (
	// QueueStateOpen: it does.
	QueueStateOpen QueueState = "Open"
	// QueueStateClosed: it does not, and none of its jobs is running.
	QueueStateClosed QueueState = "Closed"
	// QueueStateClosing: it does not, and its running jobs continue.
	QueueStateClosing QueueState = "Closing"
	// QueueStateUnknown: it is not known, or the spec is contradictory.
	QueueStateUnknown QueueState = "Unknown"
)

// QueueStatus is the observed state of a Queue.
type QueueStatus struct {
	// state says whether it accepts jobs.
	//
	// +optional
	State QueueState `json:"state,omitempty"`

	// unknown counts jobs whose state is not known.
	//
	// +optional
	Unknown int32 `json:"unknown,omitempty"`
	// pending counts waiting jobs.
	//
	// +optional
	Pending int32 `json:"pending,omitempty"`
	// running counts running jobs.
	//
	// +optional
	Running int32 `json:"running,omitempty"`
	// inqueue counts jobs that hold quota and are not yet running.
	//
	// +optional
	Inqueue int32 `json:"inqueue,omitempty"`
	// completed counts finished jobs.
	//
	// +optional
	Completed int32 `json:"completed,omitempty"`

	// reservation is what is locked for the queue.
	//
	// +optional
	Reservation Reservation `json:"reservation,omitempty"`

	// allocated is what its jobs hold.
	//
	// +optional
	Allocated corev1.ResourceList `json:"allocated,omitempty"`
}

// Reservation is what is locked for a Queue.
type Reservation struct {
	// nodes are the nodes.
	//
	// +optional
	// +listType=atomic
	Nodes []string `json:"nodes,omitempty"`
	// resource is what they have.
	//
	// +optional
	Resource corev1.ResourceList `json:"resource,omitempty"`
}
