package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// FairSharing is the weight of a queue or cohort among its siblings.
type FairSharing struct {
	// weight divides the usage in comparisons: a queue with twice the weight may use twice as much. With weight 0 it
	// only gets what no other queue wants.
	//
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:XValidation:rule="string(self).matches('[eE][-+]?[0-9]{4}') || quantity(string(self)).compareTo(quantity('0')) >= 0",message="must be greater than or equal to 0"
	// +kubebuilder:validation:XValidation:rule="string(self).matches('[eE][-+]?[0-9]{4}') || quantity(string(self)).compareTo(quantity('0')) <= 0 || quantity(string(self)).isGreaterThan(quantity('1n'))",message="must be 0 or greater than 10^-9"
	Weight *resource.Quantity `json:"weight,omitempty"`
}

// FairSharingStatus is the weighted usage of a queue or cohort.
type FairSharingStatus struct {
	// weightedShare is the maximum over all resources of usage above nominal quota divided by what the parent can lend,
	// in thousandths, divided by the weight.
	WeightedShare int64 `json:"weightedShare"`
}

// LocalQueueFairSharingStatus is the weighted usage of a LocalQueue.
type LocalQueueFairSharingStatus struct {
	// weightedShare is the share in thousandths.
	WeightedShare int64 `json:"weightedShare"`

	// admissionFairSharingStatus is the past usage that orders the LocalQueues of a ClusterQueue.
	//
	// +optional
	AdmissionFairSharingStatus *AdmissionFairSharingStatus `json:"admissionFairSharingStatus,omitempty"`
}

// AdmissionFairSharingStatus is past usage, which decays over time.
type AdmissionFairSharingStatus struct {
	// consumedResources with decay applied.
	//
	// +optional
	ConsumedResources corev1.ResourceList `json:"consumedResources,omitempty"`

	// lastUpdate is when it was last computed.
	LastUpdate metav1.Time `json:"lastUpdate"`
}

// AdmissionScope determines how the LocalQueues of a ClusterQueue share it.
type AdmissionScope struct {
	// admissionMode selects whether past usage orders the LocalQueues.
	//
	// +kubebuilder:validation:Enum=UsageBasedAdmissionFairSharing;NoAdmissionFairSharing
	AdmissionMode AdmissionMode `json:"admissionMode"`
}

// AdmissionMode determines how the LocalQueues of a ClusterQueue share it.
type AdmissionMode string

const (
	// UsageBasedAdmissionFairSharing considers the LocalQueue with the least past usage first.
	UsageBasedAdmissionFairSharing AdmissionMode = "UsageBasedAdmissionFairSharing"
	// NoAdmissionFairSharing does not distinguish LocalQueues.
	NoAdmissionFairSharing AdmissionMode = "NoAdmissionFairSharing"
)
