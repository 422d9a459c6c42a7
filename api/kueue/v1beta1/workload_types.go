package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Workload is the unit of admission: the pods of one job, which get quota and places together or wait together.
//
// What may be in its spec depends on its status, and vice versa. These rules are in
// charts/muster/policies/workload-*.yaml.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName={kwl,kueueworkload,kueueworkloads}
// +kubebuilder:selectablefield:JSONPath=".status.admission.clusterQueue"
// +kubebuilder:printcolumn:name="Queue",JSONPath=".spec.queueName",type=string,description="LocalQueue that the Workload was submitted to"
// +kubebuilder:printcolumn:name="Reserved in",JSONPath=".status.admission.clusterQueue",type=string,description="ClusterQueue that holds quota for it"
// +kubebuilder:printcolumn:name="Admitted",JSONPath=".status.conditions[?(@.type=='Admitted')].status",type=string,description="Whether it may run"
// +kubebuilder:printcolumn:name="Finished",JSONPath=".status.conditions[?(@.type=='Finished')].status",type=string,description="Whether its job has ended"
// +kubebuilder:printcolumn:name="Age",JSONPath=".metadata.creationTimestamp",type=date,description="Time since it was submitted"
type Workload struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says which pods are to run, their queue and their priority.
	//
	// +required
	Spec WorkloadSpec `json:"spec,omitempty"`
	// status is the observed state of the Workload, including its admission.
	Status WorkloadStatus `json:"status,omitempty"`
}

// WorkloadList is a list of Workloads.
//
// +kubebuilder:object:root=true
type WorkloadList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Workload `json:"items"`
}

// WorkloadSpec is the request of a Workload.
type WorkloadSpec struct {
	// podSets are the groups of equal pods of the workload. They are immutable while quota is reserved.
	//
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	PodSets []PodSet `json:"podSets"`

	// queueName is the LocalQueue, in the same namespace, of the workload. It is immutable while quota is reserved.
	//
	// +optional
	QueueName LocalQueueName `json:"queueName,omitempty"`

	// priorityClassName is the class that priority was taken from.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern="^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
	PriorityClassName string `json:"priorityClassName,omitempty"`

	// priority orders workloads in a queue and for preemption; higher goes first.
	//
	// +optional
	Priority *int32 `json:"priority,omitempty"`

	// priorityClassSource is the kind of priorityClassName: a WorkloadPriorityClass
	// (kueue.x-k8s.io/workloadpriorityclass) or a pod PriorityClass (scheduling.k8s.io/priorityclass).
	//
	// +optional
	// +kubebuilder:default=""
	// +kubebuilder:validation:Enum=kueue.x-k8s.io/workloadpriorityclass;scheduling.k8s.io/priorityclass;""
	PriorityClassSource string `json:"priorityClassSource,omitempty"`

	// active, if false, prevents admission, and evicts an admitted workload without requeueing it.
	//
	// +optional
	// +kubebuilder:default=true
	Active *bool `json:"active,omitempty"`

	// maximumExecutionTimeSeconds is how long the workload may be admitted, in total over all admissions, before it is
	// deactivated; no limit if absent.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	MaximumExecutionTimeSeconds *int32 `json:"maximumExecutionTimeSeconds,omitempty"`

	// preemptionGates are the gates that must be open, in the status, before the workload may preempt others.
	//
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	PreemptionGates []PreemptionGate `json:"preemptionGates,omitempty"`
}

// PreemptionGate is one gate before preemption.
type PreemptionGate struct {
	// name of the gate.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`
}

// WorkloadStatus is the observed state of a Workload, including its admission.
type WorkloadStatus struct {
	// admission is the quota and the places of the workload. Null if it has none. Once set, only its counts, usage and
	// places change, and only by the operator; for any other change it is first reset to null. For server-side apply it
	// is a single field.
	//
	// +optional
	// +structType=atomic
	Admission *Admission `json:"admission,omitempty"`

	// requeueState counts evictions because pods were not ready, and says when the workload may be retried.
	//
	// +optional
	RequeueState *RequeueState `json:"requeueState,omitempty"`

	// conditions of the workload.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	// +patchStrategy=merge
	// +patchMergeKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`

	// reclaimablePods are pods that have ended and whose quota is released.
	//
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	ReclaimablePods []ReclaimablePod `json:"reclaimablePods,omitempty"`

	// admissionChecks is the state of each check that must be ready before the workload is admitted.
	//
	// +optional
	// +listType=map
	// +listMapKey=name
	// +patchStrategy=merge
	// +patchMergeKey=name
	// +kubebuilder:validation:MaxItems=8
	AdmissionChecks []AdmissionCheckState `json:"admissionChecks,omitempty" patchStrategy:"merge" patchMergeKey:"name"`

	// resourceRequests is what the pods of an admitted workload that is being shrunk still use; otherwise empty. The
	// requests of a waiting workload follow from its spec, and muster explain shows them.
	//
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	ResourceRequests []PodSetRequest `json:"resourceRequests,omitempty"`

	// accumulatedPastExexcutionTimeSeconds is how long the workload was admitted in past admissions. The spelling is
	// the public API's.
	//
	// +optional
	AccumulatedPastExexcutionTimeSeconds *int32 `json:"accumulatedPastExexcutionTimeSeconds,omitempty"`

	// schedulingStats counts what has happened to the workload.
	//
	// +optional
	SchedulingStats *SchedulingStats `json:"schedulingStats,omitempty"`

	// nominatedClusterNames are the clusters to which the workload may be sent. Mutually exclusive with clusterName.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	// +kubebuilder:validation:items:MaxLength=256
	NominatedClusterNames []string `json:"nominatedClusterNames,omitempty"`

	// clusterName is the cluster to which the workload was sent.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=256
	ClusterName *string `json:"clusterName,omitempty"`

	// unhealthyNodes are nodes on which the workload has places but its pods cannot run any more.
	//
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	UnhealthyNodes []UnhealthyNode `json:"unhealthyNodes,omitempty"`

	// preemptionGates are the states of the spec's gates; one that is not listed is closed.
	//
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	PreemptionGates []PreemptionGateState `json:"preemptionGates,omitempty"`
}

// RequeueState is the requeue backoff of a workload.
type RequeueState struct {
	// count of requeues because pods were not ready in time. Reset to null after a deactivation.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	Count *int32 `json:"count,omitempty"`

	// requeueAt is when the workload may be retried.
	//
	// +optional
	RequeueAt *metav1.Time `json:"requeueAt,omitempty"`
}

// ReclaimablePod is the number of pods of a pod set that do not need their quota any more.
type ReclaimablePod struct {
	// name of the pod set.
	Name PodSetReference `json:"name"`

	// count of pods. It only increases while quota is reserved.
	//
	// +kubebuilder:validation:Minimum=0
	Count int32 `json:"count"`
}

// SchedulingStats counts scheduling events of a workload.
type SchedulingStats struct {
	// evictions, by reason and underlying cause.
	//
	// +optional
	// +listType=map
	// +listMapKey=reason
	// +listMapKey=underlyingCause
	// +kubebuilder:validation:MaxItems=256
	Evictions []WorkloadSchedulingStatsEviction `json:"evictions,omitempty"`
}

// WorkloadSchedulingStatsEviction counts the evictions of one reason and cause.
type WorkloadSchedulingStatsEviction struct {
	// reason of the condition Evicted.
	//
	// +kubebuilder:validation:MaxLength=316
	Reason string `json:"reason"`

	// underlyingCause refines the reason; may be empty.
	//
	// +kubebuilder:validation:MaxLength=316
	UnderlyingCause string `json:"underlyingCause"`

	// count of evictions.
	//
	// +kubebuilder:validation:Minimum=0
	Count int32 `json:"count"`
}

// UnhealthyNode is a node with places of the workload that cannot run its pods.
type UnhealthyNode struct {
	// name of the node.
	//
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// GatePosition is the position of a preemption gate.
//
// +kubebuilder:validation:Enum=Open;Closed
type GatePosition string

const (
	// GateOpen allows the workload to preempt.
	GateOpen GatePosition = "Open"
	// GateClosed prevents the workload from preempting.
	GateClosed GatePosition = "Closed"
)

// PreemptionGateState is the position of one gate.
type PreemptionGateState struct {
	// name of the gate.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// position of the gate.
	Position GatePosition `json:"position"`

	// lastTransitionTime is when the position last changed.
	LastTransitionTime metav1.Time `json:"lastTransitionTime"`
}
