package v1beta1

// ClusterQueueReference is the name of a ClusterQueue.
//
// +kubebuilder:validation:MaxLength=253
// +kubebuilder:validation:Pattern="^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
type ClusterQueueReference string

// CohortReference is the name of a Cohort. The Cohort need not exist as an object: it suffices that ClusterQueues share
// the name.
//
// +kubebuilder:validation:MaxLength=253
// +kubebuilder:validation:Pattern="^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
type CohortReference string

// LocalQueueName is the name of a LocalQueue in the namespace of the object that refers to it.
//
// +kubebuilder:validation:MaxLength=253
// +kubebuilder:validation:Pattern="^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
type LocalQueueName string

// ResourceFlavorReference is the name of a ResourceFlavor.
//
// +kubebuilder:validation:MaxLength=253
// +kubebuilder:validation:Pattern="^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
type ResourceFlavorReference string

// TopologyReference is the name of a Topology.
//
// +kubebuilder:validation:MaxLength=253
// +kubebuilder:validation:Pattern="^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
type TopologyReference string

// AdmissionCheckReference is the name of an AdmissionCheck.
//
// +kubebuilder:validation:MaxLength=316
type AdmissionCheckReference string

// PodSetReference is the name of a pod set within a Workload.
//
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:Pattern="^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
type PodSetReference string

// StopPolicy determines whether a queue admits workloads, and what happens to admitted ones.
//
// +kubebuilder:validation:Enum=None;Hold;HoldAndDrain
type StopPolicy string

const (
	// None is the policy of a queue that admits.
	None StopPolicy = "None"
	// Hold admits nothing, withdraws reservations, and lets admitted workloads finish.
	Hold StopPolicy = "Hold"
	// HoldAndDrain admits nothing, withdraws reservations, and evicts admitted workloads.
	HoldAndDrain StopPolicy = "HoldAndDrain"
)
