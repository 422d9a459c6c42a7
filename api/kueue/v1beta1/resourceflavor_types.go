package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ResourceFlavor is a kind of node that quota can be given on.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:scope=Cluster,shortName={rf}
// +kubebuilder:printcolumn:name="Topology",JSONPath=".spec.topologyName",type=string,description="Topology that places are found by"
// +kubebuilder:printcolumn:name="Age",JSONPath=".metadata.creationTimestamp",type=date,description="Time since it was made"
type ResourceFlavor struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says which nodes are meant.
	Spec ResourceFlavorSpec `json:"spec,omitempty"`
}

// ResourceFlavorList is a list of ResourceFlavors.
//
// +kubebuilder:object:root=true
type ResourceFlavorList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ResourceFlavor `json:"items"`
}

// ResourceFlavorSpec says which nodes a flavor means.
type ResourceFlavorSpec struct {
	// nodeLabels that the nodes have. Pods that get the flavor are kept to such nodes.
	//
	// +optional
	// +mapType=atomic
	// +kubebuilder:validation:MaxProperties=8
	NodeLabels map[string]string `json:"nodeLabels,omitempty"`

	// nodeTaints that the nodes have: only workloads that tolerate those with the effects NoSchedule and NoExecute get
	// the flavor.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	NodeTaints []corev1.Taint `json:"nodeTaints,omitempty"`

	// tolerations that pods get with the flavor.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`

	// topologyName is the Topology by which pods of this flavor are given places. It needs at least one node label,
	// and with it the spec cannot be changed.
	//
	// +optional
	TopologyName *TopologyReference `json:"topologyName,omitempty"`
}
