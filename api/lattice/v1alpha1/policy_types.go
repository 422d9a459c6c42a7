package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PolicyEvent is something that happens to a pod or a task.
//
// +kubebuilder:validation:Enum=PodFailed;PodEvicted;PodPending;TaskCompleted;Unknown;Any;*
type PolicyEvent string

const (
	// OnTaskCompleted: all pods of the task have succeeded.
	OnTaskCompleted PolicyEvent = "TaskCompleted"
	// OnAny is any event; "*" means the same.
	OnAny PolicyEvent = "Any"
)

// PolicyAction is what is done about it.
//
// +kubebuilder:validation:Enum=AbortJob;RestartJob;RestartTask;RestartPod;TerminateJob;CompleteJob
type PolicyAction string

// CompleteJob has the job succeed.
const CompleteJob PolicyAction = "CompleteJob"

// JobPolicy says what is done when something happens.
type JobPolicy struct {
	// event is what happens.
	Event PolicyEvent `json:"event"`

	// action is what is done.
	Action PolicyAction `json:"action"`

	// timeout is for how long it must be so before anything is done; not at all where it is absent.
	//
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:Pattern=`^(0|([0-9]{1,6}(\.[0-9]{1,9})?h)?([0-9]{1,7}(\.[0-9]{1,9})?m)?([0-9]{1,9}(\.[0-9]{1,9})?s)?([0-9]{1,9}(\.[0-9]{1,9})?(ms|us|µs|ns))?)$`
	Timeout *metav1.Duration `json:"timeout,omitempty"`
}

// TopologyMode is whether pods must be near to each other, or should.
//
// +kubebuilder:validation:Enum=Hard;Soft
type TopologyMode string

const (
	// HardTopology: they must.
	HardTopology TopologyMode = "Hard"
	// SoftTopology: they should.
	SoftTopology TopologyMode = "Soft"
)

// NetworkTopology says how near to each other pods must be.
//
// +kubebuilder:validation:XValidation:rule="self.mode != 'Hard' || has(self.maxTier)",message="a topology of mode Hard needs maxTier"
type NetworkTopology struct {
	// mode is whether they must or should.
	Mode TopologyMode `json:"mode"`

	// maxTier is the tier of the largest domain that may hold them all; 1 is the smallest.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	MaxTier *int32 `json:"maxTier,omitempty"`
}
