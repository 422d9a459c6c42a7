package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Workload is the unit of admission: the pods of one job, which get quota and places together or wait together.
//
// What its spec may be depends on its status, and the other way round. The rules that say so are in
// tools/crdgen/workload.go: as markers, which are one line each, nobody could read them.
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

	// spec says which pods are to run, where to queue and how urgent they are.
	//
	// +required
	Spec WorkloadSpec `json:"spec,omitempty"`
	// status says what was decided about the Workload and how it fares.
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

// WorkloadSpec is what the submitter of a Workload asks for.
type WorkloadSpec struct {
	// podSets are the groups of like pods that make up the workload. They cannot be changed while quota is reserved.
	//
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	PodSets []PodSet `json:"podSets"`

	// queueName is the LocalQueue, of the same namespace, that the workload waits in. It cannot be changed while
	// quota is reserved.
	//
	// +optional
	QueueName LocalQueueName `json:"queueName,omitempty"`

	// priorityClassName names the class that priority was taken from.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern="^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
	PriorityClassName string `json:"priorityClassName,omitempty"`

	// priority orders workloads in a queue and decides who may preempt whom; higher goes first.
	//
	// +optional
	Priority *int32 `json:"priority,omitempty"`

	// priorityClassSource says which kind priorityClassName names: a WorkloadPriorityClass
	// (kueue.x-k8s.io/workloadpriorityclass) or a pod PriorityClass (scheduling.k8s.io/priorityclass).
	//
	// +optional
	// +kubebuilder:default=""
	// +kubebuilder:validation:Enum=kueue.x-k8s.io/workloadpriorityclass;scheduling.k8s.io/priorityclass;""
	PriorityClassSource string `json:"priorityClassSource,omitempty"`

	// active, when false, keeps the workload from being admitted, and evicts it, without a return to the queue, if
	// it runs.
	//
	// +optional
	// +kubebuilder:default=true
	Active *bool `json:"active,omitempty"`

	// maximumExecutionTimeSeconds is how long the workload may be admitted, all admissions together, before it is
	// deactivated. Without it there is no limit.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	MaximumExecutionTimeSeconds *int32 `json:"maximumExecutionTimeSeconds,omitempty"`

	// preemptionGates name what must be opened, in the status, before the workload may preempt others.
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

// WorkloadStatus is what was decided about a Workload and how it fares.
type WorkloadStatus struct {
	// admission is the quota and the places that the workload holds. Null when it holds none. Once set, only its
	// counts, usage and places change, and only by the operator; to change the rest it goes back to null first. To
	// server-side apply it is one field.
	//
	// +optional
	// +structType=atomic
	Admission *Admission `json:"admission,omitempty"`

	// requeueState counts evictions for want of ready pods and says when the workload may be tried again.
	//
	// +optional
	RequeueState *RequeueState `json:"requeueState,omitempty"`

	// conditions tell where the workload stands.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	// +patchStrategy=merge
	// +patchMergeKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`

	// reclaimablePods are pods that have ended and whose quota others may use.
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

	// resourceRequests is what a workload that is not admitted was counted as asking for.
	//
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	ResourceRequests []PodSetRequest `json:"resourceRequests,omitempty"`

	// accumulatedPastExexcutionTimeSeconds is how long the workload was admitted in admissions that have ended. The
	// spelling is the public API's.
	//
	// +optional
	AccumulatedPastExexcutionTimeSeconds *int32 `json:"accumulatedPastExexcutionTimeSeconds,omitempty"`

	// schedulingStats counts what has happened to the workload.
	//
	// +optional
	SchedulingStats *SchedulingStats `json:"schedulingStats,omitempty"`

	// nominatedClusterNames are the clusters that the workload may be sent to. Never set beside clusterName.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	// +kubebuilder:validation:items:MaxLength=256
	NominatedClusterNames []string `json:"nominatedClusterNames,omitempty"`

	// clusterName is the cluster that the workload was sent to.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=256
	ClusterName *string `json:"clusterName,omitempty"`

	// unhealthyNodes are nodes that hold a place of the workload and can no longer run its pods.
	//
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	UnhealthyNodes []UnhealthyNode `json:"unhealthyNodes,omitempty"`

	// preemptionGates is the position of each gate of the spec; one that is not listed is closed.
	//
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	PreemptionGates []PreemptionGateState `json:"preemptionGates,omitempty"`
}

// RequeueState is the back-off of a workload.
type RequeueState struct {
	// count of the times that the workload went back to the queue because its pods were not ready in time. Null again
	// after a deactivation.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	Count *int32 `json:"count,omitempty"`

	// requeueAt is when the workload may be tried again.
	//
	// +optional
	RequeueAt *metav1.Time `json:"requeueAt,omitempty"`
}

// ReclaimablePod is how many pods of a pod set no longer need their quota.
type ReclaimablePod struct {
	// name of the pod set.
	Name PodSetReference `json:"name"`

	// count of pods. It only grows while quota is reserved.
	//
	// +kubebuilder:validation:Minimum=0
	Count int32 `json:"count"`
}

// SchedulingStats counts what has happened to a workload.
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

	// underlyingCause says more than the reason; it may be empty.
	//
	// +kubebuilder:validation:MaxLength=316
	UnderlyingCause string `json:"underlyingCause"`

	// count of evictions.
	//
	// +kubebuilder:validation:Minimum=0
	Count int32 `json:"count"`
}

// UnhealthyNode is a node that holds a place and cannot run pods.
type UnhealthyNode struct {
	// name of the node.
	//
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// GatePosition says whether a gate lets a workload through.
//
// +kubebuilder:validation:Enum=Open;Closed
type GatePosition string

const (
	// GateOpen lets the workload preempt.
	GateOpen GatePosition = "Open"
	// GateClosed keeps the workload from preempting.
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
