package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
)

// PodSet is a group of pods made from one template.
type PodSet struct {
	// name of the pod set, unique within the Workload: the role of its pods, such as leader or workers.
	//
	// +optional
	// +kubebuilder:default=main
	Name PodSetReference `json:"name,omitempty"`

	// template of the pods. Of its metadata only labels and annotations are used. Requests that a container omits
	// default to its limits, and then to the namespace's LimitRanges.
	//
	// For server-side apply it is a single field, so that the API server need not track the owner of each field of a
	// template.
	//
	// +structType=atomic
	Template corev1.PodTemplateSpec `json:"template"`

	// count of pods.
	//
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	Count int32 `json:"count"`

	// minCount is the minimum number of pods with which the workload can run; default count.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	MinCount *int32 `json:"minCount,omitempty"`

	// topologyRequest requests nodes close to each other.
	//
	// +optional
	TopologyRequest *PodSetTopologyRequest `json:"topologyRequest,omitempty"`
}

// PodSetTopologyRequest requests that the pods of a pod set are placed close to each other. At most one of required,
// preferred and unconstrained is set.
//
// +kubebuilder:validation:XValidation:rule="[has(self.required), has(self.preferred), has(self.unconstrained) && self.unconstrained].filter(x, x).size() <= 1",message="at most one of required, preferred and unconstrained can be set"
// +kubebuilder:validation:XValidation:rule="!has(self.podsetSliceRequiredTopologyConstraints) || !(has(self.podSetSliceRequiredTopology) || has(self.podSetSliceSize))",message="podsetSliceRequiredTopologyConstraints cannot be set together with podSetSliceRequiredTopology or podSetSliceSize"
type PodSetTopologyRequest struct {
	// required is the node label of the level of which one domain must hold all pods.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Required *string `json:"required,omitempty"`

	// preferred is the node label of the level of which one domain should hold all pods; if none can, a wider domain is
	// used.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Preferred *string `json:"preferred,omitempty"`

	// unconstrained requests placement on any nodes.
	//
	// +optional
	Unconstrained *bool `json:"unconstrained,omitempty"`

	// podIndexLabel is the pod label that holds a pod's index; for batch Jobs batch.kubernetes.io/job-completion-index.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=317
	PodIndexLabel *string `json:"podIndexLabel,omitempty"`

	// subGroupIndexLabel is the pod label that holds the index of the group within the pod set that a pod belongs to;
	// for JobSets jobset.sigs.k8s.io/job-index.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=317
	SubGroupIndexLabel *string `json:"subGroupIndexLabel,omitempty"`

	// subGroupCount is the number of such groups.
	//
	// +optional
	SubGroupCount *int32 `json:"subGroupCount,omitempty"`

	// podSetGroupName groups pod sets that get the same flavor and the same domain.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=63
	PodSetGroupName *string `json:"podSetGroupName,omitempty"`

	// podSetSliceRequiredTopology is the node label of the level of which one domain must hold each slice.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	PodSetSliceRequiredTopology *string `json:"podSetSliceRequiredTopology,omitempty"`

	// podSetSliceSize is the number of pods of a slice.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	PodSetSliceSize *int32 `json:"podSetSliceSize,omitempty"`

	// podsetSliceRequiredTopologyConstraints are several layers of slices, the coarsest first. Mutually exclusive with
	// podSetSliceRequiredTopology and podSetSliceSize.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=3
	PodsetSliceRequiredTopologyConstraints []PodsetSliceRequiredTopologyConstraint `json:"podsetSliceRequiredTopologyConstraints,omitempty"`
}

// PodsetSliceRequiredTopologyConstraint is one layer of slices.
type PodsetSliceRequiredTopologyConstraint struct {
	// topology is the node label of the level of which one domain must hold each slice of this layer.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Topology string `json:"topology"`

	// size is the number of pods of a slice of this layer.
	//
	// +kubebuilder:validation:Minimum=1
	Size int32 `json:"size"`
}

// PodSetRequest is the sum of the requests of all pods of a pod set.
type PodSetRequest struct {
	// name of the pod set.
	//
	// +kubebuilder:default=main
	Name PodSetReference `json:"name"`

	// resources of all pods, after defaults and overhead.
	//
	// +optional
	Resources corev1.ResourceList `json:"resources,omitempty"`
}
