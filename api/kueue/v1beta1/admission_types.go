package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
)

// Admission is the quota and the places of a Workload. Once it is set, only the operator may change it, and only its
// counts, usage and places; for any other change it must first be reset to null.
type Admission struct {
	// clusterQueue whose quota the workload holds.
	ClusterQueue ClusterQueueReference `json:"clusterQueue"`

	// podSetAssignments is what each pod set holds.
	//
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	PodSetAssignments []PodSetAssignment `json:"podSetAssignments"`
}

// PodSetAssignment is the quota and the places of one pod set.
type PodSetAssignment struct {
	// name of the pod set.
	//
	// +kubebuilder:default=main
	Name PodSetReference `json:"name"`

	// flavors gives the flavor of each resource.
	//
	// +optional
	Flavors map[corev1.ResourceName]ResourceFlavorReference `json:"flavors,omitempty"`

	// resourceUsage is what all count pods together need, including defaults and overhead. Reclaimed pods do not change
	// it.
	//
	// +optional
	ResourceUsage corev1.ResourceList `json:"resourceUsage,omitempty"`

	// count of pods that were admitted; less than the pod set's count if the workload was partially admitted. Default:
	// the pod set's count.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	Count *int32 `json:"count,omitempty"`

	// topologyAssignment assigns the pods to domains. Null if the flavor has no topology.
	//
	// +optional
	TopologyAssignment *TopologyAssignment `json:"topologyAssignment,omitempty"`

	// delayedTopologyRequest is Pending until places are assigned, after admission checks have provisioned the nodes.
	//
	// +optional
	DelayedTopologyRequest *DelayedTopologyRequestState `json:"delayedTopologyRequest,omitempty"`
}

// DelayedTopologyRequestState is the state of places that are assigned after the admission checks.
//
// +kubebuilder:validation:Enum=Pending;Ready
type DelayedTopologyRequestState string

const (
	// DelayedTopologyRequestStatePending: the places are not assigned yet.
	DelayedTopologyRequestStatePending DelayedTopologyRequestState = "Pending"
	// DelayedTopologyRequestStateReady: the places are assigned.
	DelayedTopologyRequestStateReady DelayedTopologyRequestState = "Ready"
)

// TopologyAssignment says how many pods of a pod set go to which domain. If the lowest level of the topology is
// kubernetes.io/hostname, only that level is listed, because it identifies the node.
type TopologyAssignment struct {
	// levels are the node labels of the assigned topology, highest first.
	//
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=317
	Levels []string `json:"levels"`

	// domains that hold pods.
	//
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100000
	Domains []TopologyDomainAssignment `json:"domains"`
}

// TopologyDomainAssignment is how many pods go to one domain.
type TopologyDomainAssignment struct {
	// values of the levels' node labels, highest first, which identify the domain.
	//
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=253
	Values []string `json:"values"`

	// count of pods in the domain.
	//
	// +kubebuilder:validation:Minimum=1
	Count int32 `json:"count"`
}
