package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
)

// Admission is the quota and the places that a Workload holds. Only the operator changes one that is set, and only the
// counts, usage and places in it; anything else takes it back to null first.
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

	// resourceUsage is what all count pods together need, defaults and overhead included. Pods that are reclaimed do
	// not change it.
	//
	// +optional
	ResourceUsage corev1.ResourceList `json:"resourceUsage,omitempty"`

	// count of pods that were admitted; less than the pod set's count where the workload was admitted in part.
	// Without it, the pod set's count.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	Count *int32 `json:"count,omitempty"`

	// topologyAssignment gives places to the pods. Null where the flavor has no topology.
	//
	// +optional
	TopologyAssignment *TopologyAssignment `json:"topologyAssignment,omitempty"`

	// delayedTopologyRequest is Pending while places are still to be given, after admission checks have made the
	// nodes.
	//
	// +optional
	DelayedTopologyRequest *DelayedTopologyRequestState `json:"delayedTopologyRequest,omitempty"`
}

// DelayedTopologyRequestState says whether places that are given after the admission checks have been given.
//
// +kubebuilder:validation:Enum=Pending;Ready
type DelayedTopologyRequestState string

const (
	// DelayedTopologyRequestStatePending waits for places.
	DelayedTopologyRequestStatePending DelayedTopologyRequestState = "Pending"
	// DelayedTopologyRequestStateReady has its places.
	DelayedTopologyRequestStateReady DelayedTopologyRequestState = "Ready"
)

// TopologyAssignment says how many pods of a pod set go to which domain. For a topology whose lowest level is
// kubernetes.io/hostname only that level is listed, for it alone names the node.
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
	// values of the levels' node labels, highest first: together they name the domain.
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
