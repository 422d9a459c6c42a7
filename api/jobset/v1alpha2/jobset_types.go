package v1alpha2

import (
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// JobSet is a set of Jobs that start, restart and end together.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="TerminalState",JSONPath=".status.terminalState",type=string,description="How the JobSet ended"
// +kubebuilder:printcolumn:name="Restarts",JSONPath=".status.restarts",type=string,description="Times that all Jobs were made anew"
// +kubebuilder:printcolumn:name="Completed",JSONPath=".status.conditions[?(@.type==\"Completed\")].status",type=string,description="Whether it succeeded"
// +kubebuilder:printcolumn:name="Suspended",JSONPath=".spec.suspend",type=string,description="Whether it is suspended"
// +kubebuilder:printcolumn:name="Age",JSONPath=".metadata.creationTimestamp",type=date,description="Time since it was made"
type JobSet struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what is to run.
	Spec JobSetSpec `json:"spec,omitempty"`
	// status is how it fares.
	Status JobSetStatus `json:"status,omitempty"`
}

// JobSetList is a list of JobSets.
//
// +kubebuilder:object:root=true
type JobSetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []JobSet `json:"items"`
}

// JobSetSpec is what a JobSet is to run. But for suspend, coordinator and ttlSecondsAfterFinished it is fixed at
// creation; while the JobSet is suspended, parts of the pod templates may change too.
type JobSetSpec struct {
	// replicatedJobs are the kinds of Jobs in the set. Their order counts: it gives the Jobs their index, and it is the
	// order of start where startupPolicy asks for one.
	//
	// +optional
	// +listType=map
	// +listMapKey=name
	// +patchStrategy=merge
	// +patchMergeKey=name
	ReplicatedJobs []ReplicatedJob `json:"replicatedJobs,omitempty" patchStrategy:"merge" patchMergeKey:"name"`

	// network says how pods of the set find each other.
	//
	// +optional
	Network *Network `json:"network,omitempty"`

	// successPolicy says when the set has succeeded.
	//
	// +optional
	SuccessPolicy *SuccessPolicy `json:"successPolicy,omitempty"`

	// failurePolicy says what to do when a Job fails. Without one, the first failed Job fails the set.
	//
	// +optional
	FailurePolicy *FailurePolicy `json:"failurePolicy,omitempty"`

	// startupPolicy says in which order Jobs start. dependsOn says it better; the two cannot be mixed.
	//
	// +optional
	StartupPolicy *StartupPolicy `json:"startupPolicy,omitempty"`

	// suspend stops all Jobs while it is true.
	//
	// +optional
	Suspend *bool `json:"suspend,omitempty"`

	// coordinator is the pod whose host name every Job and pod of the set is told.
	//
	// +optional
	Coordinator *Coordinator `json:"coordinator,omitempty"`

	// managedBy names the controller that runs the set, where that is not Muster.
	//
	// +optional
	ManagedBy *string `json:"managedBy,omitempty"`

	// ttlSecondsAfterFinished is how long the set is kept after it ended. Without it, the set is kept.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished,omitempty"`

	// volumeClaimPolicies are volume claims that Jobs of the set share.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=50
	VolumeClaimPolicies []VolumeClaimPolicy `json:"volumeClaimPolicies,omitempty"`
}

// ReplicatedJob is a number of Jobs made from one template, named <jobset>-<name>-<index>.
type ReplicatedJob struct {
	// name of the replicated job, part of the names of its Jobs.
	Name string `json:"name"`

	// groupName is the group that its Jobs are counted in, beside those of other replicated jobs with the same group.
	//
	// +optional
	// +kubebuilder:default=default
	GroupName string `json:"groupName,omitempty"`

	// template of the Jobs. completionMode is Indexed, and the pods' restartPolicy OnFailure, unless set.
	Template batchv1.JobTemplateSpec `json:"template"`

	// replicas is the number of Jobs.
	//
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	Replicas int32 `json:"replicas,omitempty"`

	// dependsOn are earlier replicated jobs that must be ready or complete before these Jobs are made. All of them.
	//
	// +optional
	// +listType=map
	// +listMapKey=name
	// +patchStrategy=merge
	// +patchMergeKey=name
	// +kubebuilder:validation:MaxItems=5
	DependsOn []DependsOn `json:"dependsOn,omitempty" patchStrategy:"merge" patchMergeKey:"name"`
}

// DependsOn is an earlier replicated job and the state that it must reach.
type DependsOn struct {
	// name of the earlier replicated job.
	Name string `json:"name"`

	// status that all its Jobs must reach.
	Status DependsOnStatus `json:"status"`
}

// DependsOnStatus is a state that a replicated job can be waited for.
//
// +kubebuilder:validation:Enum=Ready;Complete
type DependsOnStatus string

const (
	// DependencyReady: every Job is ready or has ended.
	DependencyReady DependsOnStatus = "Ready"
	// DependencyComplete: every Job has succeeded.
	DependencyComplete DependsOnStatus = "Complete"
)

// Coordinator picks one pod of a JobSet.
type Coordinator struct {
	// replicatedJob is the replicated job of the pod.
	ReplicatedJob string `json:"replicatedJob"`

	// jobIndex is the index of the pod's Job within the replicated job.
	//
	// +optional
	JobIndex int `json:"jobIndex,omitempty"`

	// podIndex is the completion index of the pod within its Job.
	//
	// +optional
	PodIndex int `json:"podIndex,omitempty"`
}

// JobSetStatus is how a JobSet fares.
type JobSetStatus struct {
	// conditions tell where the set stands.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	// +patchStrategy=merge
	// +patchMergeKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`

	// restarts counts how often all Jobs were made anew.
	//
	// +optional
	Restarts int32 `json:"restarts"`

	// restartsCountTowardsMax counts those of them that use up maxRestarts.
	//
	// +optional
	RestartsCountTowardsMax int32 `json:"restartsCountTowardsMax,omitempty"`

	// terminalState is Completed or Failed once the set has ended.
	//
	// +optional
	TerminalState string `json:"terminalState,omitempty"`

	// replicatedJobsStatus counts the Jobs of each replicated job by state.
	//
	// +optional
	// +listType=map
	// +listMapKey=name
	// +patchStrategy=merge
	// +patchMergeKey=name
	ReplicatedJobsStatus []ReplicatedJobStatus `json:"replicatedJobsStatus,omitempty" patchStrategy:"merge" patchMergeKey:"name"`

	// previousInPlaceRestartAttempt is the last attempt that is over: pods in it or before it restart.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	PreviousInPlaceRestartAttempt *int32 `json:"previousInPlaceRestartAttempt,omitempty"`

	// currentInPlaceRestartAttempt is the attempt that pods may run in.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	CurrentInPlaceRestartAttempt *int32 `json:"currentInPlaceRestartAttempt,omitempty"`
}

// ReplicatedJobStatus counts the Jobs of one replicated job, of the current attempt, by state.
type ReplicatedJobStatus struct {
	// name of the replicated job.
	Name string `json:"name"`

	// ready counts unfinished Jobs whose pods are all ready or have succeeded.
	Ready int32 `json:"ready"`

	// succeeded counts Jobs that have succeeded.
	Succeeded int32 `json:"succeeded"`

	// failed counts Jobs that have failed.
	Failed int32 `json:"failed"`

	// active counts unfinished Jobs that have a pod that is pending or running.
	Active int32 `json:"active"`

	// suspended counts Jobs that are suspended.
	Suspended int32 `json:"suspended"`

	// jobRestarts counts, for each Job, how often it alone was made anew.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1024
	JobRestarts []int32 `json:"jobRestarts,omitempty"`

	// jobRestartsCountTowardsMax counts those of them that use up maxRestarts.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1024
	JobRestartsCountTowardsMax []int32 `json:"jobRestartsCountTowardsMax,omitempty"`
}
