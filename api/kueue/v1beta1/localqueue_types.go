package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// LocalQueue is the queue of one namespace's jobs, and points to a ClusterQueue.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName={queue,queues,lq},categories={queue,queues}
// +kubebuilder:printcolumn:name="ClusterQueue",JSONPath=".spec.clusterQueue",type=string,description="ClusterQueue that it points to"
// +kubebuilder:printcolumn:name="Pending Workloads",JSONPath=".status.pendingWorkloads",type=integer,description="Pending workloads"
// +kubebuilder:printcolumn:name="Admitted Workloads",JSONPath=".status.admittedWorkloads",type=integer,description="Admitted workloads"
// +kubebuilder:printcolumn:name="Age",JSONPath=".metadata.creationTimestamp",type=date,priority=1,description="Time since creation"
type LocalQueue struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec names the ClusterQueue.
	Spec LocalQueueSpec `json:"spec,omitempty"`
	// status is the observed state of the queue.
	Status LocalQueueStatus `json:"status,omitempty"`
}

// LocalQueueList is a list of LocalQueues.
//
// +kubebuilder:object:root=true
type LocalQueueList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []LocalQueue `json:"items"`
}

// LocalQueueSpec names the ClusterQueue of a LocalQueue.
//
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.clusterQueue) || (has(self.clusterQueue) && self.clusterQueue == oldSelf.clusterQueue)",message="field is immutable"
type LocalQueueSpec struct {
	// clusterQueue in which the workloads wait. Immutable.
	//
	// +optional
	ClusterQueue ClusterQueueReference `json:"clusterQueue,omitempty"`

	// stopPolicy stops the queue: with Hold admitted workloads may finish, with HoldAndDrain they are evicted.
	//
	// +optional
	// +kubebuilder:default=None
	StopPolicy *StopPolicy `json:"stopPolicy,omitempty"`

	// fairSharing is the weight of this queue among those of its ClusterQueue.
	//
	// +optional
	FairSharing *FairSharing `json:"fairSharing,omitempty"`
}

// LocalQueueStatus is the observed state of a LocalQueue.
type LocalQueueStatus struct {
	// conditions of the queue; Active says whether it admits.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	// +patchStrategy=merge
	// +patchMergeKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`

	// pendingWorkloads is the number of workloads that wait for quota.
	//
	// +optional
	// +kubebuilder:default=0
	PendingWorkloads int32 `json:"pendingWorkloads"`

	// reservingWorkloads is the number of workloads that have reserved quota.
	//
	// +optional
	// +kubebuilder:default=0
	ReservingWorkloads int32 `json:"reservingWorkloads"`

	// admittedWorkloads is the number of admitted workloads that have not finished.
	//
	// +optional
	// +kubebuilder:default=0
	AdmittedWorkloads int32 `json:"admittedWorkloads"`

	// flavorsReservation is the reserved quota.
	//
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=256
	FlavorsReservation []LocalQueueFlavorUsage `json:"flavorsReservation,omitempty"`

	// flavorUsage is the quota used by admitted workloads.
	//
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=256
	FlavorUsage []LocalQueueFlavorUsage `json:"flavorUsage,omitempty"`

	// flavors of the ClusterQueue, for users who may not read ClusterQueues.
	//
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=256
	Flavors []LocalQueueFlavorStatus `json:"flavors,omitempty"`

	// fairSharing is the queue's usage of the ClusterQueue.
	//
	// +optional
	FairSharing *LocalQueueFairSharingStatus `json:"fairSharing,omitempty"`
}

// LocalQueueFlavorUsage is the used quota of one flavor.
type LocalQueueFlavorUsage struct {
	// name of the flavor.
	Name ResourceFlavorReference `json:"name"`

	// resources and their usage.
	//
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Resources []LocalQueueResourceUsage `json:"resources"`
}

// LocalQueueResourceUsage is the used quota of one resource.
type LocalQueueResourceUsage struct {
	// name of the resource.
	Name corev1.ResourceName `json:"name"`

	// total that is used.
	//
	// +optional
	Total resource.Quantity `json:"total,omitempty"`
}

// LocalQueueFlavorStatus describes a flavor that the queue offers.
type LocalQueueFlavorStatus struct {
	// name of the flavor.
	Name ResourceFlavorReference `json:"name"`

	// resources that it covers.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	Resources []corev1.ResourceName `json:"resources,omitempty"`

	// nodeLabels of its nodes.
	//
	// +optional
	// +mapType=atomic
	// +kubebuilder:validation:MaxProperties=8
	NodeLabels map[string]string `json:"nodeLabels,omitempty"`

	// nodeTaints of its nodes.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	NodeTaints []corev1.Taint `json:"nodeTaints,omitempty"`

	// topology of its nodes.
	//
	// +optional
	Topology *TopologyInfo `json:"topology,omitempty"`
}

// TopologyInfo describes the topology of a flavor.
type TopologyInfo struct {
	// name of the Topology.
	Name TopologyReference `json:"name"`

	// levels are its node labels, highest first.
	//
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Levels []string `json:"levels"`
}
