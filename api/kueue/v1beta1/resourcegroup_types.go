package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// ResourceGroup is a set of resources with the same flavors: a workload gets one flavor for all of them.
//
// +kubebuilder:validation:XValidation:rule="self.flavors.all(x, size(x.resources) == size(self.coveredResources))",message="flavors must have the same number of resources as the coveredResources"
// +kubebuilder:validation:XValidation:rule="self.flavors.all(f, size(f.resources) != size(self.coveredResources) || f.resources.map(r, r.name) == self.coveredResources)",message="resources of a flavor must be the coveredResources, in the same order",fieldPath=".flavors"
// +kubebuilder:validation:XValidation:rule="size(self.flavors) * size(self.coveredResources) <= 512",message="a resource group can have at most 512 pairs of flavor and resource"
type ResourceGroup struct {
	// coveredResources are the resources of the group.
	//
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	CoveredResources []corev1.ResourceName `json:"coveredResources"`

	// flavors of the group, in the order in which they are tried. Each lists all coveredResources, in their order.
	//
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Flavors []FlavorQuotas `json:"flavors"`
}

// FlavorQuotas is the quota of one flavor.
type FlavorQuotas struct {
	// name of the ResourceFlavor.
	Name ResourceFlavorReference `json:"name"`

	// resources and their quota.
	//
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Resources []ResourceQuota `json:"resources"`
}

// ResourceQuota is the quota of one resource of one flavor.
//
// +kubebuilder:validation:XValidation:rule="(type(self.nominalQuota) == int ? self.nominalQuota >= 0 : !self.nominalQuota.startsWith('-'))",message="must be greater than or equal to 0",fieldPath=".nominalQuota"
// +kubebuilder:validation:XValidation:rule="!has(self.borrowingLimit) || (type(self.borrowingLimit) == int ? self.borrowingLimit >= 0 : !self.borrowingLimit.startsWith('-'))",message="must be greater than or equal to 0",fieldPath=".borrowingLimit"
// +kubebuilder:validation:XValidation:rule="!has(self.lendingLimit) || (type(self.lendingLimit) == int ? self.lendingLimit >= 0 : !self.lendingLimit.startsWith('-'))",message="must be greater than or equal to 0",fieldPath=".lendingLimit"
type ResourceQuota struct {
	// name of the resource.
	Name corev1.ResourceName `json:"name"`

	// nominalQuota is the queue's or cohort's own quota.
	NominalQuota resource.Quantity `json:"nominalQuota"`

	// borrowingLimit is the most that may be borrowed; without it there is no limit.
	//
	// +optional
	BorrowingLimit *resource.Quantity `json:"borrowingLimit,omitempty"`

	// lendingLimit is the most that may be lent; without it, all of nominalQuota.
	//
	// +optional
	LendingLimit *resource.Quantity `json:"lendingLimit,omitempty"`
}

// FlavorUsage is the used quota of one flavor.
type FlavorUsage struct {
	// name of the flavor.
	Name ResourceFlavorReference `json:"name"`

	// resources and their usage.
	//
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Resources []ResourceUsage `json:"resources"`
}

// ResourceUsage is the used quota of one resource.
type ResourceUsage struct {
	// name of the resource.
	Name corev1.ResourceName `json:"name"`

	// total that is used, including what is borrowed.
	//
	// +optional
	Total resource.Quantity `json:"total,omitempty"`

	// borrowed from the cohort.
	//
	// +optional
	Borrowed resource.Quantity `json:"borrowed,omitempty"`
}
