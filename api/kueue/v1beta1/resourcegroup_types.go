package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// ResourceGroup is a set of resources with the same flavors: a workload gets one flavor for all of them.
//
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
