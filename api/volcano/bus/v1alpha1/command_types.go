package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Command requests one action on one object. The controller deletes it before it executes it, so that it is not
// executed twice.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:validation:XValidation:rule="!has(self.action) || !(self.action in ['OpenQueue', 'CloseQueue'])",message="Commands do not open or close a Queue: set spec.stopPolicy of the ClusterQueue of its name to None or Hold"
// +kubebuilder:printcolumn:name="Action",JSONPath=".action",type=string,description="Action to take"
// +kubebuilder:printcolumn:name="Target",JSONPath=".target.name",type=string,description="Object of the action"
// +kubebuilder:printcolumn:name="Age",JSONPath=".metadata.creationTimestamp",type=date,description="Time since creation"
type Command struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// action to take.
	//
	// +optional
	Action Action `json:"action,omitempty"`

	// target is the object, in the namespace of the command.
	//
	// +optional
	TargetObject *metav1.OwnerReference `json:"target,omitempty"`

	// reason as one word in CamelCase.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Reason string `json:"reason,omitempty"`

	// message in human-readable form.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=32768
	Message string `json:"message,omitempty"`
}

// CommandList is a list of Commands.
//
// +kubebuilder:object:root=true
type CommandList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Command `json:"items"`
}
