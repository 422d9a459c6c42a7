package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// FairSharing is the weight of a queue or cohort among its siblings.
type FairSharing struct {
	// weight divides the share that is used: twice the weight may use twice as much. With 0 it only gets what nobody
	// else wants.
	//
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:XValidation:rule="string(self).matches('[eE][-+]?[0-9]{4}') || quantity(string(self)).compareTo(quantity('0')) >= 0",message="must be greater than or equal to 0"
	// +kubebuilder:validation:XValidation:rule="string(self).matches('[eE][-+]?[0-9]{4}') || quantity(string(self)).compareTo(quantity('0')) <= 0 || quantity(string(self)).isGreaterThan(quantity('1n'))",message="must be 0 or greater than 10^-9"
	Weight *resource.Quantity `json:"weight,omitempty"`
}

// FairSharingStatus is the share that a queue or cohort uses.
type FairSharingStatus struct {
	// weightedShare is the largest part, in thousandths, that what is used above nominal quota takes of what the parent
	// can lend, divided by the weight.
	WeightedShare int64 `json:"weightedShare"`
}

// LocalQueueFairSharingStatus is the share that a LocalQueue uses of its ClusterQueue.
type LocalQueueFairSharingStatus struct {
	// weightedShare is the share in thousandths.
	WeightedShare int64 `json:"weightedShare"`

	// admissionFairSharingStatus is the past usage that orders the LocalQueues of a ClusterQueue.
	//
	// +optional
	AdmissionFairSharingStatus *AdmissionFairSharingStatus `json:"admissionFairSharingStatus,omitempty"`
}

// AdmissionFairSharingStatus is usage in the past, old usage counting for less.
type AdmissionFairSharingStatus struct {
	// consumedResources, aged.
	//
	// +optional
	ConsumedResources corev1.ResourceList `json:"consumedResources,omitempty"`

	// lastUpdate is when it was last reckoned.
	LastUpdate metav1.Time `json:"lastUpdate"`
}

// AdmissionScope says how the LocalQueues of a ClusterQueue share it.
type AdmissionScope struct {
	// admissionMode: by past usage, or not at all.
	//
	// +kubebuilder:validation:Enum=UsageBasedAdmissionFairSharing;NoAdmissionFairSharing
	AdmissionMode AdmissionMode `json:"admissionMode"`
}

// AdmissionMode is how the LocalQueues of a ClusterQueue share it.
type AdmissionMode string

const (
	// UsageBasedAdmissionFairSharing tries the LocalQueue with the least past usage first.
	UsageBasedAdmissionFairSharing AdmissionMode = "UsageBasedAdmissionFairSharing"
	// NoAdmissionFairSharing makes no difference between LocalQueues.
	NoAdmissionFairSharing AdmissionMode = "NoAdmissionFairSharing"
)
