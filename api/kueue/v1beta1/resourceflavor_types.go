package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ResourceFlavor is a kind of node for which queues have quota.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:scope=Cluster,shortName={flavor,flavors,rf}
// +kubebuilder:printcolumn:name="Topology",JSONPath=".spec.topologyName",type=string,description="Topology by which pods are placed"
// +kubebuilder:printcolumn:name="Age",JSONPath=".metadata.creationTimestamp",type=date,description="Time since creation"
type ResourceFlavor struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec selects the nodes.
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

// ResourceFlavorSpec selects the nodes of a flavor.
//
// +kubebuilder:validation:XValidation:rule="!has(self.topologyName) || (has(self.nodeLabels) && size(self.nodeLabels) > 0)",message="at least one nodeLabel is required when topology is set"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.topologyName) || self == oldSelf",message="resourceFlavorSpec are immutable when topologyName is set"
type ResourceFlavorSpec struct {
	// nodeLabels of the nodes. Pods that get the flavor are restricted to such nodes.
	//
	// +optional
	// +mapType=atomic
	// +kubebuilder:validation:MaxProperties=8
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.indexOf('/') <= 253 && k.matches('^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$'))",message="keys must be qualified names, such as example.com/name"
	// +kubebuilder:validation:XValidation:rule="self.all(k, self[k].matches('^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$'))",message="values must be label values: at most 63 letters, digits, '-', '_' or '.', a letter or digit at both ends"
	NodeLabels map[string]string `json:"nodeLabels,omitempty"`

	// nodeTaints of the nodes: only workloads that tolerate those with the effects NoSchedule and NoExecute get the
	// flavor.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:XValidation:rule="self.all(x, x.effect in ['NoSchedule', 'PreferNoSchedule', 'NoExecute'])",message="supported taint effect values: 'NoSchedule', 'PreferNoSchedule', 'NoExecute'"
	// +kubebuilder:validation:XValidation:rule="self.all(x, x.key.indexOf('/') <= 253 && x.key.matches('^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$'))",message="keys must be qualified names, such as example.com/name"
	// +kubebuilder:validation:XValidation:rule="self.all(x, !has(x.value) || x.value.matches('^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$'))",message="values must be label values: at most 63 letters, digits, '-', '_' or '.', a letter or digit at both ends"
	NodeTaints []corev1.Taint `json:"nodeTaints,omitempty"`

	// tolerations that are added to pods with the flavor.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:XValidation:rule="self.all(x, has(x.key) || (has(x.operator) && x.operator == 'Exists'))",message="operator must be Exists when 'key' is empty, which means 'match all values and all keys'"
	// +kubebuilder:validation:XValidation:rule="self.all(x, !has(x.tolerationSeconds) || (has(x.effect) && x.effect == 'NoExecute'))",message="effect must be 'NoExecute' when 'tolerationSeconds' is set"
	// +kubebuilder:validation:XValidation:rule="self.all(x, !has(x.operator) || x.operator in ['Equal', 'Exists'])",message="supported toleration values: 'Equal'(default), 'Exists'"
	// +kubebuilder:validation:XValidation:rule="self.all(x, !(has(x.operator) && x.operator == 'Exists') || !has(x.value))",message="a value must be empty when 'operator' is 'Exists'"
	// +kubebuilder:validation:XValidation:rule="self.all(x, !has(x.effect) || x.effect in ['NoSchedule', 'PreferNoSchedule', 'NoExecute'])",message="supported taint effect values: 'NoSchedule', 'PreferNoSchedule', 'NoExecute'"
	// +kubebuilder:validation:XValidation:rule="self.all(x, !has(x.key) || x.key == '' || (x.key.indexOf('/') <= 253 && x.key.matches('^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$')))",message="keys must be qualified names, such as example.com/name"
	// +kubebuilder:validation:XValidation:rule="self.all(x, !has(x.value) || x.value.matches('^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$'))",message="values must be label values: at most 63 letters, digits, '-', '_' or '.', a letter or digit at both ends"
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`

	// topologyName is the Topology by which pods of this flavor are placed. It requires at least one node label, and
	// makes the spec immutable.
	//
	// +optional
	TopologyName *TopologyReference `json:"topologyName,omitempty"`
}
