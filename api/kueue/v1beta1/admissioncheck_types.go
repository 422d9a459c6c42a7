package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AdmissionCheck is a condition besides quota for the admission of a Workload, such as that the cluster is scaled up
// first. A controller of its own sets its state in each Workload.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName={ac}
// +kubebuilder:printcolumn:name="Controller",JSONPath=".spec.controllerName",type=string,description="Controller that decides the check"
// +kubebuilder:printcolumn:name="Active",JSONPath=".status.conditions[?(@.type=='Active')].status",type=string,description="Whether the check can be used"
// +kubebuilder:printcolumn:name="Age",JSONPath=".metadata.creationTimestamp",type=date,description="Time since creation"
type AdmissionCheck struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec names the controller and its parameters.
	//
	// +required
	Spec AdmissionCheckSpec `json:"spec,omitempty"`
	// status says whether the check can be used.
	Status AdmissionCheckStatus `json:"status,omitempty"`
}

// AdmissionCheckList is a list of AdmissionChecks.
//
// +kubebuilder:object:root=true
type AdmissionCheckList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []AdmissionCheck `json:"items"`
}

// AdmissionCheckSpec names the controller of a check and its parameters.
type AdmissionCheckSpec struct {
	// controllerName identifies the controller of the check. It is not the name of a pod or a Deployment, and is
	// immutable.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="field is immutable"
	ControllerName string `json:"controllerName"`

	// retryDelayMinutes was the delay after a failed check. It is no longer used.
	//
	// +optional
	// +kubebuilder:default=15
	RetryDelayMinutes *int64 `json:"retryDelayMinutes,omitempty"`

	// parameters names an object that configures the check.
	//
	// +optional
	Parameters *AdmissionCheckParametersReference `json:"parameters,omitempty"`
}

// AdmissionCheckParametersReference names a cluster-scoped object.
type AdmissionCheckParametersReference struct {
	// apiGroup of the object.
	//
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern="^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
	APIGroup string `json:"apiGroup"`

	// kind of the object.
	//
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern="^(?i)[a-z]([-a-z0-9]*[a-z0-9])?$"
	Kind string `json:"kind"`

	// name of the object.
	//
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern="^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
	Name string `json:"name"`
}

// AdmissionCheckStatus says whether a check can be used.
type AdmissionCheckStatus struct {
	// conditions of the check; Active says whether it can be used.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	// +patchStrategy=merge
	// +patchMergeKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`
}

// AdmissionCheckActive is the condition that says whether an AdmissionCheck can be used.
const AdmissionCheckActive = "Active"

// CheckState is the state of one check of one Workload.
//
// +kubebuilder:validation:Enum=Pending;Ready;Retry;Rejected
type CheckState string

const (
	// CheckStatePending: not decided yet.
	CheckStatePending CheckState = "Pending"
	// CheckStateReady: the check allows the admission.
	CheckStateReady CheckState = "Ready"
	// CheckStateRetry: not possible at present; the workload is evicted and retried.
	CheckStateRetry CheckState = "Retry"
	// CheckStateRejected: the check will never allow it; the workload is deactivated.
	CheckStateRejected CheckState = "Rejected"
)

// AdmissionCheckState is the state of one check of one Workload.
//
// +kubebuilder:validation:XValidation:rule="!(oldSelf.state == 'Ready' && self.state == 'Ready') || ((has(self.podSetUpdates) && size(self.podSetUpdates) > 0) ? (has(oldSelf.podSetUpdates) && self.podSetUpdates == oldSelf.podSetUpdates) : (!has(oldSelf.podSetUpdates) || size(oldSelf.podSetUpdates) == 0))",message="field is immutable",fieldPath=".podSetUpdates"
type AdmissionCheckState struct {
	// name of the AdmissionCheck.
	Name AdmissionCheckReference `json:"name"`

	// state of the check.
	State CheckState `json:"state"`

	// lastTransitionTime is when the state last changed.
	LastTransitionTime metav1.Time `json:"lastTransitionTime"`

	// message about the last change; may be empty.
	//
	// +kubebuilder:validation:MaxLength=32768
	Message string `json:"message"`

	// requeueAfterSeconds is the minimum delay before the workload is retried.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	RequeueAfterSeconds *int32 `json:"requeueAfterSeconds,omitempty"`

	// retryCount counts how often the check has requested a retry.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	RetryCount *int32 `json:"retryCount,omitempty"`

	// podSetUpdates are changes to the pods by the check, once it is ready.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	PodSetUpdates []PodSetUpdate `json:"podSetUpdates,omitempty"`
}

// PodSetUpdate has additions to the pods of one pod set by a check. If a key exists already with another value, the
// start of the job fails.
type PodSetUpdate struct {
	// name of the pod set.
	Name PodSetReference `json:"name"`

	// labels to add.
	//
	// +optional
	Labels map[string]string `json:"labels,omitempty"`

	// annotations to add.
	//
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`

	// nodeSelector entries to add.
	//
	// +optional
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`

	// tolerations to add.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:XValidation:rule="self.all(x, has(x.key) || (has(x.operator) && x.operator == 'Exists'))",message="operator must be Exists when 'key' is empty, which means 'match all values and all keys'"
	// +kubebuilder:validation:XValidation:rule="self.all(x, !has(x.tolerationSeconds) || (has(x.effect) && x.effect == 'NoExecute'))",message="effect must be 'NoExecute' when 'tolerationSeconds' is set"
	// +kubebuilder:validation:XValidation:rule="self.all(x, !has(x.operator) || x.operator in ['Equal', 'Exists'])",message="supported toleration values: 'Equal'(default), 'Exists'"
	// +kubebuilder:validation:XValidation:rule="self.all(x, !(has(x.operator) && x.operator == 'Exists') || !has(x.value))",message="a value must be empty when 'operator' is 'Exists'"
	// +kubebuilder:validation:XValidation:rule="self.all(x, !has(x.effect) || x.effect in ['NoSchedule', 'PreferNoSchedule', 'NoExecute'])",message="supported taint effect values: 'NoSchedule', 'PreferNoSchedule', 'NoExecute'"
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`
}
