package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Command asks for one action on one object. Who carries it out deletes it first, so that nobody does it twice.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="Action",JSONPath=".action",type=string,description="What is to be done"
// +kubebuilder:printcolumn:name="Target",JSONPath=".target.name",type=string,description="To which object"
// +kubebuilder:printcolumn:name="Age",JSONPath=".metadata.creationTimestamp",type=date,description="Time since it was made"
type Command struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// action is what is to be done.
	//
	// +optional
	Action Action `json:"action,omitempty"`

	// target is the object, in the namespace of the command.
	//
	// +optional
	TargetObject *metav1.OwnerReference `json:"target,omitempty"`

	// reason is a word for why.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Reason string `json:"reason,omitempty"`

	// message tells people more.
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
