package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ClusterQueue is a share of the cluster's resources, and the queue of workloads that wait for it.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName={cq}
// +kubebuilder:printcolumn:name="Cohort",JSONPath=".spec.cohort",type=string,description="Cohort that it shares quota with"
// +kubebuilder:printcolumn:name="Strategy",JSONPath=".spec.queueingStrategy",type=string,priority=1,description="Order of its workloads"
// +kubebuilder:printcolumn:name="Pending Workloads",JSONPath=".status.pendingWorkloads",type=integer,description="Pending workloads"
// +kubebuilder:printcolumn:name="Admitted Workloads",JSONPath=".status.admittedWorkloads",type=integer,priority=1,description="Admitted workloads"
// +kubebuilder:printcolumn:name="Active",JSONPath=".status.conditions[?(@.type=='Active')].status",type=string,priority=1,description="Whether it admits"
// +kubebuilder:printcolumn:name="Age",JSONPath=".metadata.creationTimestamp",type=date,priority=1,description="Time since creation"
type ClusterQueue struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec has the quota and the rules of the queue.
	Spec ClusterQueueSpec `json:"spec,omitempty"`
	// status is the observed state of the queue.
	Status ClusterQueueStatus `json:"status,omitempty"`
}

// ClusterQueueList is a list of ClusterQueues.
//
// +kubebuilder:object:root=true
type ClusterQueueList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterQueue `json:"items"`
}

// ClusterQueueSpec has the quota and the rules of a ClusterQueue.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.admissionChecks) && size(self.admissionChecks) > 0 && has(self.admissionChecksStrategy))",message="Either AdmissionChecks or AdmissionCheckStrategy can be set, but not both"
type ClusterQueueSpec struct {
	// resourceGroups are the resources of the queue and their flavors. A resource, and a flavor, may be in only one
	// group.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.map(g, size(g.flavors)).sum() <= 256",message="at most 256 flavors"
	// +kubebuilder:validation:XValidation:rule="self.map(g, size(g.coveredResources)).sum() <= 256",message="at most 256 resources"
	ResourceGroups []ResourceGroup `json:"resourceGroups,omitempty"`

	// cohort in which the queue lends and borrows quota. Without one it does neither.
	//
	// +optional
	Cohort CohortReference `json:"cohort,omitempty"`

	// queueingStrategy is the order of workloads of the same priority: with StrictFIFO one that does not fit blocks
	// those behind it, with BestEffortFIFO it does not.
	//
	// +optional
	// +kubebuilder:default=BestEffortFIFO
	QueueingStrategy QueueingStrategy `json:"queueingStrategy,omitempty"`

	// namespaceSelector selects the namespaces that may submit to the queue. Null selects none, {} selects all.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="!has(self.matchExpressions) || self.matchExpressions.all(e, e.operator in ['In', 'NotIn'] ? (has(e.values) && size(e.values) > 0) : (e.operator in ['Exists', 'DoesNotExist'] && (!has(e.values) || size(e.values) == 0)))",message="operator must be In or NotIn with values, or Exists or DoesNotExist without"
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`

	// flavorFungibility determines whether the next flavor is tried before borrowing or preemption in the present one.
	//
	// +optional
	// +kubebuilder:default={}
	FlavorFungibility *FlavorFungibility `json:"flavorFungibility,omitempty"`

	// preemption determines which workloads a workload of this queue may preempt.
	//
	// +optional
	// +kubebuilder:default={}
	Preemption *ClusterQueuePreemption `json:"preemption,omitempty"`

	// admissionChecks that every workload of the queue must pass. Mutually exclusive with admissionChecksStrategy.
	//
	// +optional
	// +kubebuilder:validation:MaxItems=64
	AdmissionChecks []AdmissionCheckReference `json:"admissionChecks,omitempty"`

	// admissionChecksStrategy has checks that apply to some flavors only. Mutually exclusive with admissionChecks.
	//
	// +optional
	AdmissionChecksStrategy *AdmissionChecksStrategy `json:"admissionChecksStrategy,omitempty"`

	// stopPolicy stops the queue: with Hold admitted workloads may finish, with HoldAndDrain they are evicted.
	//
	// +optional
	// +kubebuilder:default=None
	StopPolicy *StopPolicy `json:"stopPolicy,omitempty"`

	// fairSharing is the weight of the queue within its cohort.
	//
	// +optional
	FairSharing *FairSharing `json:"fairSharing,omitempty"`

	// admissionScope determines whether the LocalQueues of this queue are ordered by their past usage.
	//
	// +optional
	AdmissionScope *AdmissionScope `json:"admissionScope,omitempty"`
}

// QueueingStrategy is the order in which a ClusterQueue considers workloads of the same priority.
//
// +kubebuilder:validation:Enum=StrictFIFO;BestEffortFIFO
type QueueingStrategy string

const (
	// StrictFIFO considers workloads in order of age; one that does not fit blocks those behind it.
	StrictFIFO QueueingStrategy = "StrictFIFO"
	// BestEffortFIFO considers workloads in order of age and skips those that do not fit.
	BestEffortFIFO QueueingStrategy = "BestEffortFIFO"
)

// AdmissionChecksStrategy has the checks of a ClusterQueue and the flavors to which they apply.
type AdmissionChecksStrategy struct {
	// admissionChecks and their flavors.
	//
	// +optional
	// +kubebuilder:validation:MaxItems=64
	AdmissionChecks []AdmissionCheckStrategyRule `json:"admissionChecks,omitempty"`
}

// AdmissionCheckStrategyRule is a check and the flavors to which it applies.
type AdmissionCheckStrategyRule struct {
	// name of the AdmissionCheck.
	Name AdmissionCheckReference `json:"name"`

	// onFlavors are the flavors to which it applies; empty means all.
	//
	// +optional
	// +kubebuilder:validation:MaxItems=256
	OnFlavors []ResourceFlavorReference `json:"onFlavors,omitempty"`
}

// FlavorFungibility determines when the next flavor is tried.
//
// +kubebuilder:validation:XValidation:rule="!has(self.preference) || self.preference != 'PreemptionOverBorrowing' || (self.whenCanBorrow == 'TryNextFlavor' && self.whenCanPreempt == 'TryNextFlavor')",message="preference PreemptionOverBorrowing needs whenCanBorrow and whenCanPreempt to be TryNextFlavor"
type FlavorFungibility struct {
	// whenCanBorrow: Borrow uses a flavor in which the workload fits by borrowing, TryNextFlavor tries the next one
	// first. MayStopSearch is a newer name for Borrow.
	//
	// +optional
	// +kubebuilder:default=Borrow
	// +kubebuilder:validation:Enum=Borrow;TryNextFlavor;MayStopSearch
	WhenCanBorrow FlavorFungibilityPolicy `json:"whenCanBorrow,omitempty"`

	// whenCanPreempt: Preempt uses a flavor in which the workload fits by preemption, TryNextFlavor tries the next one
	// first. MayStopSearch is a newer name for Preempt.
	//
	// +optional
	// +kubebuilder:default=TryNextFlavor
	// +kubebuilder:validation:Enum=Preempt;TryNextFlavor;MayStopSearch
	WhenCanPreempt FlavorFungibilityPolicy `json:"whenCanPreempt,omitempty"`

	// preference between a flavor that requires preemption and one that requires borrowing, if both were tried.
	// Default: BorrowingOverPreemption.
	//
	// +optional
	// +kubebuilder:validation:Enum=BorrowingOverPreemption;PreemptionOverBorrowing
	Preference *FlavorFungibilityPreference `json:"preference,omitempty"`
}

// FlavorFungibilityPolicy is one choice of FlavorFungibility.
type FlavorFungibilityPolicy string

const (
	// Borrow uses a flavor that fits by borrowing.
	Borrow FlavorFungibilityPolicy = "Borrow"
	// Preempt uses a flavor that fits by preemption.
	Preempt FlavorFungibilityPolicy = "Preempt"
	// MayStopSearch means Borrow in whenCanBorrow and Preempt in whenCanPreempt.
	MayStopSearch FlavorFungibilityPolicy = "MayStopSearch"
	// TryNextFlavor tries the next flavor first.
	TryNextFlavor FlavorFungibilityPolicy = "TryNextFlavor"
)

// FlavorFungibilityPreference is the choice between borrowing and preemption.
type FlavorFungibilityPreference string

const (
	// BorrowingOverPreemption uses the flavor that requires borrowing.
	BorrowingOverPreemption FlavorFungibilityPreference = "BorrowingOverPreemption"
	// PreemptionOverBorrowing uses the flavor that requires preemption.
	PreemptionOverBorrowing FlavorFungibilityPreference = "PreemptionOverBorrowing"
)

// ClusterQueuePreemption determines which workloads a workload of a ClusterQueue may preempt.
//
// +kubebuilder:validation:XValidation:rule="!(self.reclaimWithinCohort == 'Never' && has(self.borrowWithinCohort) && self.borrowWithinCohort.policy != 'Never')",message="reclaimWithinCohort=Never and borrowWithinCohort.Policy!=Never"
type ClusterQueuePreemption struct {
	// reclaimWithinCohort: whether a workload that fits the queue's own quota may preempt workloads of other queues in
	// the cohort that borrow that quota.
	//
	// +optional
	// +kubebuilder:default=Never
	// +kubebuilder:validation:Enum=Never;LowerPriority;Any
	ReclaimWithinCohort PreemptionPolicy `json:"reclaimWithinCohort,omitempty"`

	// borrowWithinCohort: whether a workload that must borrow may preempt.
	//
	// +optional
	// +kubebuilder:default={}
	BorrowWithinCohort *BorrowWithinCohort `json:"borrowWithinCohort,omitempty"`

	// withinClusterQueue: whether a workload may preempt others of its own queue.
	//
	// +optional
	// +kubebuilder:default=Never
	// +kubebuilder:validation:Enum=Never;LowerPriority;LowerOrNewerEqualPriority
	WithinClusterQueue PreemptionPolicy `json:"withinClusterQueue,omitempty"`
}

// PreemptionPolicy says which workloads may be preempted.
type PreemptionPolicy string

const (
	// PreemptionPolicyNever preempts none.
	PreemptionPolicyNever PreemptionPolicy = "Never"
	// PreemptionPolicyAny preempts workloads of any priority.
	PreemptionPolicyAny PreemptionPolicy = "Any"
	// PreemptionPolicyLowerPriority preempts workloads of lower priority.
	PreemptionPolicyLowerPriority PreemptionPolicy = "LowerPriority"
	// PreemptionPolicyLowerOrNewerEqualPriority also preempts newer workloads of the same priority.
	PreemptionPolicyLowerOrNewerEqualPriority PreemptionPolicy = "LowerOrNewerEqualPriority"
)

// BorrowWithinCohort determines whether a workload that must borrow may preempt.
type BorrowWithinCohort struct {
	// policy: Never, or LowerPriority.
	//
	// +optional
	// +kubebuilder:default=Never
	Policy BorrowWithinCohortPolicy `json:"policy,omitempty"`

	// maxPriorityThreshold is the highest priority that may be preempted; if not set, only the preemptor's own priority
	// is a bound.
	//
	// +optional
	MaxPriorityThreshold *int32 `json:"maxPriorityThreshold,omitempty"`
}

// BorrowWithinCohortPolicy determines which workloads a borrowing workload may preempt.
//
// +kubebuilder:validation:Enum=Never;LowerPriority
type BorrowWithinCohortPolicy string

const (
	// BorrowWithinCohortPolicyNever preempts none.
	BorrowWithinCohortPolicyNever BorrowWithinCohortPolicy = "Never"
	// BorrowWithinCohortPolicyLowerPriority preempts workloads of lower priority.
	BorrowWithinCohortPolicyLowerPriority BorrowWithinCohortPolicy = "LowerPriority"
)

// ClusterQueueStatus is the observed state of a ClusterQueue.
type ClusterQueueStatus struct {
	// conditions of the queue; Active says whether it admits.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	// +patchStrategy=merge
	// +patchMergeKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`

	// flavorsReservation is the quota reserved by admitted workloads and by those that wait for checks.
	//
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=256
	FlavorsReservation []FlavorUsage `json:"flavorsReservation,omitempty"`

	// flavorsUsage is the quota used by admitted workloads.
	//
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=256
	FlavorsUsage []FlavorUsage `json:"flavorsUsage,omitempty"`

	// pendingWorkloads is the number of workloads that wait for quota.
	//
	// +optional
	// +kubebuilder:default=0
	PendingWorkloads int32 `json:"pendingWorkloads"`

	// reservingWorkloads is the number of workloads that have reserved quota.
	//
	// +optional
	// +kubebuilder:default=0
	ReservingWorkloads int32 `json:"reservingWorkloads"`

	// admittedWorkloads is the number of admitted workloads that have not finished.
	//
	// +optional
	// +kubebuilder:default=0
	AdmittedWorkloads int32 `json:"admittedWorkloads"`

	// pendingWorkloadsStatus listed the workloads at the head of the queue. It is no longer written.
	//
	// +optional
	PendingWorkloadsStatus *ClusterQueuePendingWorkloadsStatus `json:"pendingWorkloadsStatus,omitempty"`

	// fairSharing is the queue's usage of the cohort.
	//
	// +optional
	FairSharing *FairSharingStatus `json:"fairSharing,omitempty"`
}

// ClusterQueuePendingWorkloadsStatus lists workloads at the head of a queue.
type ClusterQueuePendingWorkloadsStatus struct {
	// clusterQueuePendingWorkload are the first workloads.
	//
	// +optional
	// +listType=atomic
	Head []ClusterQueuePendingWorkload `json:"clusterQueuePendingWorkload,omitempty"`

	// lastChangeTime is when the list last changed.
	LastChangeTime metav1.Time `json:"lastChangeTime"`
}

// ClusterQueuePendingWorkload identifies a pending workload.
type ClusterQueuePendingWorkload struct {
	// name of the Workload.
	Name string `json:"name"`

	// namespace of the Workload.
	Namespace string `json:"namespace"`
}
