package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Cohort is a node in the tree of quota: the ClusterQueues and Cohorts below it lend quota to each other, and it may
// have quota of its own that they share.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName={co}
// +kubebuilder:printcolumn:name="Parent",JSONPath=".spec.parentName",type=string,description="Parent cohort"
// +kubebuilder:printcolumn:name="Age",JSONPath=".metadata.creationTimestamp",type=date,description="Time since creation"
type Cohort struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec has the position of the cohort in the tree, and its quota.
	Spec CohortSpec `json:"spec,omitempty"`
	// status has the usage of the cohort.
	Status CohortStatus `json:"status,omitempty"`
}

// CohortList is a list of Cohorts.
//
// +kubebuilder:object:root=true
type CohortList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Cohort `json:"items"`
}

// CohortSpec has the position of a cohort in the tree, and its quota.
type CohortSpec struct {
	// parentName is the parent cohort; without one this is a root. A cycle deactivates all its queues.
	//
	// +optional
	ParentName CohortReference `json:"parentName,omitempty"`

	// resourceGroups have quota that everything below the cohort shares.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.map(g, size(g.flavors)).sum() <= 256",message="at most 256 flavors"
	// +kubebuilder:validation:XValidation:rule="self.map(g, size(g.coveredResources)).sum() <= 256",message="at most 256 resources"
	ResourceGroups []ResourceGroup `json:"resourceGroups,omitempty"`

	// fairSharing is the weight of the cohort among its siblings.
	//
	// +optional
	FairSharing *FairSharing `json:"fairSharing,omitempty"`
}

// CohortStatus has the usage of a cohort.
type CohortStatus struct {
	// fairSharing is the cohort's usage of its parent.
	//
	// +optional
	FairSharing *FairSharingStatus `json:"fairSharing,omitempty"`
}
