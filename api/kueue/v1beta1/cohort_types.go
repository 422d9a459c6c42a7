package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Cohort is a node in the tree of quota: ClusterQueues and Cohorts under it lend to each other, and it may have quota
// of its own that they share.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName={co}
// +kubebuilder:printcolumn:name="Parent",JSONPath=".spec.parentName",type=string,description="Cohort above it"
// +kubebuilder:printcolumn:name="Age",JSONPath=".metadata.creationTimestamp",type=date,description="Time since it was made"
type Cohort struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the place of the cohort in the tree and its quota.
	Spec CohortSpec `json:"spec,omitempty"`
	// status is the share that the cohort uses.
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

// CohortSpec is the place of a cohort in the tree and its quota.
//
// +kubebuilder:validation:XValidation:rule="has(self.parentName) || !has(self.resourceGroups) || self.resourceGroups.all(g, g.flavors.all(f, f.resources.all(r, !has(r.borrowingLimit))))",message="borrowingLimit must be nil when parent is empty"
// +kubebuilder:validation:XValidation:rule="has(self.parentName) || !has(self.resourceGroups) || self.resourceGroups.all(g, g.flavors.all(f, f.resources.all(r, !has(r.lendingLimit))))",message="lendingLimit must be nil when parent is empty"
type CohortSpec struct {
	// parentName is the cohort above; without one this is a root. A cycle makes all its queues inactive.
	//
	// +optional
	ParentName CohortReference `json:"parentName,omitempty"`

	// resourceGroups are quota that all below the cohort share.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.all(g, self.exists_one(h, sets.intersects(g.coveredResources, h.coveredResources)))",message="a resource can be in one resource group only"
	// +kubebuilder:validation:XValidation:rule="self.all(g, self.exists_one(h, sets.intersects(g.flavors.map(f, f.name), h.flavors.map(f, f.name))))",message="a flavor can be in one resource group only"
	// +kubebuilder:validation:XValidation:rule="self.map(g, size(g.flavors)).sum() <= 256",message="at most 256 flavors"
	// +kubebuilder:validation:XValidation:rule="self.map(g, size(g.coveredResources)).sum() <= 256",message="at most 256 resources"
	ResourceGroups []ResourceGroup `json:"resourceGroups,omitempty"`

	// fairSharing is the weight of the cohort among its siblings.
	//
	// +optional
	FairSharing *FairSharing `json:"fairSharing,omitempty"`
}

// CohortStatus is the share that a cohort uses.
type CohortStatus struct {
	// fairSharing is the share of the parent that the cohort uses.
	//
	// +optional
	FairSharing *FairSharingStatus `json:"fairSharing,omitempty"`
}
