package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Queue is a share of the cluster that jobs ask for by its name.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:path=queues,scope=Cluster,shortName=q;queue-v1beta1
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="STATE",type=string,JSONPath=`.status.state`,description="Whether it takes in jobs"
// +kubebuilder:printcolumn:name="PARENT",type=string,JSONPath=`.spec.parent`,description="Queue above it"
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=`.metadata.creationTimestamp`,description="Time since it was made"
type Queue struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what it is to hold.
	//
	// +optional
	Spec QueueSpec `json:"spec,omitempty"`
	// status is what it holds.
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

// QueueSpec is what a Queue is to hold.
type QueueSpec struct {
	// weight is its share of what nobody is entitled to, beside the others'.
	//
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Weight int32 `json:"weight,omitempty"`

	// capability is what it may hold at most.
	//
	// +optional
	Capability corev1.ResourceList `json:"capability,omitempty"`

	// reclaimable is whether others may take back what it holds beyond what it deserves; true where it is absent.
	//
	// +optional
	Reclaimable *bool `json:"reclaimable,omitempty"`

	// extendClusters are other clusters that jobs may be sent to. Nobody does.
	//
	// +optional
	// +listType=atomic
	ExtendClusters []Cluster `json:"extendClusters,omitempty"`

	// guarantee is what is kept for it, though it does not use it.
	//
	// +optional
	Guarantee Guarantee `json:"guarantee,omitempty"`

	// affinity is on which groups of nodes its pods may run. Volcano's scheduler alone heeds it.
	//
	// +optional
	Affinity *Affinity `json:"affinity,omitempty"`

	// type is the vendor's word for where the queue comes from.
	//
	// +optional
	Type string `json:"type,omitempty"`

	// parent is the queue above it; root where it is absent.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Parent string `json:"parent,omitempty"`

	// deserved is what it may take back from others.
	//
	// +optional
	Deserved corev1.ResourceList `json:"deserved,omitempty"`

	// priority goes before weight: the higher is served first.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	Priority int32 `json:"priority,omitempty"`

	// dequeueStrategy is which job is tried next when the first finds no room: all in turn, or none before it.
	//
	// +optional
	// +kubebuilder:default=traverse
	DequeueStrategy DequeueStrategy `json:"dequeueStrategy,omitempty"`
}

// DequeueStrategy is whether jobs may overtake one that finds no room.
//
// +kubebuilder:validation:Enum=fifo;traverse
type DequeueStrategy string

const (
	// DequeueStrategyFIFO: none may.
	DequeueStrategyFIFO DequeueStrategy = "fifo"
	// DequeueStrategyTraverse: they may.
	DequeueStrategyTraverse DequeueStrategy = "traverse"
)

// Guarantee is what is kept for a Queue.
type Guarantee struct {
	// resource has how much of each resource.
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
	// weight is its share.
	//
	// +optional
	Weight int32 `json:"weight,omitempty"`
	// capacity is what it has.
	//
	// +optional
	Capacity corev1.ResourceList `json:"capacity,omitempty"`
}

// Affinity is on which groups of nodes pods may run.
type Affinity struct {
	// nodeGroupAffinity are groups that they should be on.
	//
	// +optional
	NodeGroupAffinity *NodeGroups `json:"nodeGroupAffinity,omitempty"`
	// nodeGroupAntiAffinity are groups that they should not be on.
	//
	// +optional
	NodeGroupAntiAffinity *NodeGroups `json:"nodeGroupAntiAffinity,omitempty"`
}

// NodeGroups are names of groups of nodes.
type NodeGroups struct {
	// requiredDuringSchedulingIgnoredDuringExecution is without exception.
	//
	// +optional
	// +listType=atomic
	Required []string `json:"requiredDuringSchedulingIgnoredDuringExecution,omitempty"`
	// preferredDuringSchedulingIgnoredDuringExecution is if it can be.
	//
	// +optional
	// +listType=atomic
	Preferred []string `json:"preferredDuringSchedulingIgnoredDuringExecution,omitempty"`
}

// QueueState is whether a Queue takes in jobs.
type QueueState string

const (
	// QueueStateOpen: it does.
	QueueStateOpen QueueState = "Open"
	// QueueStateClosed: it does not, and nothing runs in it.
	QueueStateClosed QueueState = "Closed"
	// QueueStateClosing: it does not, and what runs in it runs on.
	QueueStateClosing QueueState = "Closing"
	// QueueStateUnknown: it is not known, or the queue cannot be as it says.
	QueueStateUnknown QueueState = "Unknown"
)

// QueueStatus is what a Queue holds.
type QueueStatus struct {
	// state is whether it takes in jobs.
	//
	// +optional
	State QueueState `json:"state,omitempty"`

	// unknown counts jobs of whose state nothing is known.
	//
	// +optional
	Unknown int32 `json:"unknown,omitempty"`
	// pending counts jobs that wait.
	//
	// +optional
	Pending int32 `json:"pending,omitempty"`
	// running counts jobs that run.
	//
	// +optional
	Running int32 `json:"running,omitempty"`
	// inqueue counts jobs that hold room and do not run yet.
	//
	// +optional
	Inqueue int32 `json:"inqueue,omitempty"`
	// completed counts jobs that have ended.
	//
	// +optional
	Completed int32 `json:"completed,omitempty"`

	// reservation is what is locked for it.
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
