package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// LocalQueue is the door to a ClusterQueue for the jobs of one namespace.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName={queue,queues,lq}
// +kubebuilder:printcolumn:name="ClusterQueue",JSONPath=".spec.clusterQueue",type=string,description="ClusterQueue behind it"
// +kubebuilder:printcolumn:name="Pending Workloads",JSONPath=".status.pendingWorkloads",type=integer,description="Workloads that wait"
// +kubebuilder:printcolumn:name="Admitted Workloads",JSONPath=".status.admittedWorkloads",type=integer,description="Workloads that run"
// +kubebuilder:printcolumn:name="Age",JSONPath=".metadata.creationTimestamp",type=date,priority=1,description="Time since it was made"
type LocalQueue struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec names the ClusterQueue.
	Spec LocalQueueSpec `json:"spec,omitempty"`
	// status is what the queue holds now.
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
	// clusterQueue that workloads wait in. It cannot be changed.
	//
	// +optional
	ClusterQueue ClusterQueueReference `json:"clusterQueue,omitempty"`

	// stopPolicy stops the queue: Hold lets what is admitted finish, HoldAndDrain evicts it.
	//
	// +optional
	// +kubebuilder:default=None
	StopPolicy *StopPolicy `json:"stopPolicy,omitempty"`

	// fairSharing is the weight of this queue among those of its ClusterQueue.
	//
	// +optional
	FairSharing *FairSharing `json:"fairSharing,omitempty"`
}

// LocalQueueStatus is what a LocalQueue holds now.
type LocalQueueStatus struct {
	// conditions; Active is the one that counts.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	// +patchStrategy=merge
	// +patchMergeKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`

	// pendingWorkloads wait for quota.
	//
	// +optional
	// +kubebuilder:default=0
	PendingWorkloads int32 `json:"pendingWorkloads"`

	// reservingWorkloads have reserved quota.
	//
	// +optional
	// +kubebuilder:default=0
	ReservingWorkloads int32 `json:"reservingWorkloads"`

	// admittedWorkloads may run and have not finished.
	//
	// +optional
	// +kubebuilder:default=0
	AdmittedWorkloads int32 `json:"admittedWorkloads"`

	// flavorsReservation is the quota that is reserved.
	//
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=256
	FlavorsReservation []LocalQueueFlavorUsage `json:"flavorsReservation,omitempty"`

	// flavorUsage is the quota that admitted workloads use.
	//
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=256
	FlavorUsage []LocalQueueFlavorUsage `json:"flavorUsage,omitempty"`

	// flavors that the ClusterQueue offers, for people who may not read ClusterQueues.
	//
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=256
	Flavors []LocalQueueFlavorStatus `json:"flavors,omitempty"`

	// fairSharing is the share of the ClusterQueue that the queue uses.
	//
	// +optional
	FairSharing *LocalQueueFairSharingStatus `json:"fairSharing,omitempty"`
}

// LocalQueueFlavorUsage is the quota that is used of one flavor.
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

// LocalQueueResourceUsage is the quota that is used of one resource.
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
