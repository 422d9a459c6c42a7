package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Topology describes the proximity of nodes, by labels whose values nodes close to each other share.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:scope=Cluster,shortName={topo}
// +kubebuilder:printcolumn:name="Age",JSONPath=".metadata.creationTimestamp",type=date,description="Time since creation"
type Topology struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the list of levels.
	//
	// +required
	Spec TopologySpec `json:"spec,omitempty"`
}

// TopologyList is a list of Topologies.
//
// +kubebuilder:object:root=true
type TopologyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Topology `json:"items"`
}

// TopologySpec is the list of a topology's levels.
//
// +kubebuilder:validation:XValidation:rule="self.levels.all(x, self.levels.exists_one(y, y.nodeLabel == x.nodeLabel))",message="must be unique",fieldPath=".levels"
// +kubebuilder:validation:XValidation:rule="self.levels.filter(x, x.nodeLabel == 'kubernetes.io/hostname').size() == (self.levels[size(self.levels) - 1].nodeLabel == 'kubernetes.io/hostname' ? 1 : 0)",message="the kubernetes.io/hostname label can only be used at the lowest level of topology",fieldPath=".levels"
// +kubebuilder:validation:XValidation:rule="self.levels == oldSelf.levels || (self.levels[size(self.levels) - 1].nodeLabel == 'kubernetes.io/hostname' && oldSelf.levels[size(oldSelf.levels) - 1].nodeLabel == 'kubernetes.io/hostname')",message="field is immutable unless kubernetes.io/hostname is the lowest level before and after",fieldPath=".levels"
type TopologySpec struct {
	// levels, widest first.
	//
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.all(x, x.nodeLabel.indexOf('/') <= 253 && x.nodeLabel.matches('^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$'))",message="levels must be keys of node labels, qualified names such as example.com/rack"
	Levels []TopologyLevel `json:"levels"`
}

// TopologyLevel is one level of a topology.
type TopologyLevel struct {
	// nodeLabel whose value nodes of one domain share. kubernetes.io/hostname may only be the lowest level.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=316
	// +kubebuilder:validation:Pattern="^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$"
	NodeLabel string `json:"nodeLabel"`
}
