package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PolicyEvent is an event of a pod or a task.
//
// +kubebuilder:validation:Enum=PodFailed;PodEvicted;PodPending;TaskCompleted;Unknown;Any;*
type PolicyEvent string

const (
	// OnTaskCompleted: all pods of the task have succeeded.
	OnTaskCompleted PolicyEvent = "TaskCompleted"
	// OnAny is any event; equivalent to "*".
	OnAny PolicyEvent = "Any"
)

// PolicyAction is the action on an event.
//
// +kubebuilder:validation:Enum=AbortJob;RestartJob;RestartTask;RestartPod;TerminateJob;CompleteJob
type PolicyAction string

// CompleteJob completes the job successfully.
const CompleteJob PolicyAction = "CompleteJob"

// JobPolicy is an action on an event.
type JobPolicy struct {
	// event that triggers the action.
	Event PolicyEvent `json:"event"`

	// action to take.
	Action PolicyAction `json:"action"`

	// timeout is how long the state of the event must last before the action is taken; zero if absent.
	//
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:Pattern=`^(0|([0-9]{1,6}(\.[0-9]{1,9})?h)?([0-9]{1,7}(\.[0-9]{1,9})?m)?([0-9]{1,9}(\.[0-9]{1,9})?s)?([0-9]{1,9}(\.[0-9]{1,9})?(ms|us|µs|ns))?)$`
	Timeout *metav1.Duration `json:"timeout,omitempty"`
}

// TopologyMode says whether the pods must or should be close to each other.
//
// +kubebuilder:validation:Enum=Hard;Soft
type TopologyMode string

const (
	// HardTopology: they must.
	HardTopology TopologyMode = "Hard"
	// SoftTopology: they should.
	SoftTopology TopologyMode = "Soft"
)

// NetworkTopology determines how close to each other pods are placed.
//
// +kubebuilder:validation:XValidation:rule="self.mode != 'Hard' || has(self.maxTier)",message="a topology of mode Hard needs maxTier"
type NetworkTopology struct {
	// mode says whether this is required or preferred.
	Mode TopologyMode `json:"mode"`

	// maxTier is the highest tier of a domain that may hold them all; 1 is the smallest.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	MaxTier *int32 `json:"maxTier,omitempty"`
}
