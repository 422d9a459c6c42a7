package v1alpha2

import (
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// JobSet is a set of Jobs that start, restart and end together.
//
// Validation rules that involve several parts of it are in tools/crdgen/jobset.go: markers have a single line, in which
// such rules would be illegible.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="TerminalState",JSONPath=".status.terminalState",type=string,description="How the JobSet ended"
// +kubebuilder:printcolumn:name="Restarts",JSONPath=".status.restarts",type=string,description="How often all Jobs were recreated"
// +kubebuilder:printcolumn:name="Completed",JSONPath=".status.conditions[?(@.type==\"Completed\")].status",type=string,description="Whether it succeeded"
// +kubebuilder:printcolumn:name="Suspended",JSONPath=".spec.suspend",type=string,description="Whether it is suspended"
// +kubebuilder:printcolumn:name="Age",JSONPath=".metadata.creationTimestamp",type=date,description="Time since creation"
type JobSet struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state of the JobSet.
	Spec JobSetSpec `json:"spec,omitempty"`
	// status is the observed state of the JobSet.
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

// JobSetSpec describes a JobSet. It is immutable except for suspend, coordinator and ttlSecondsAfterFinished; while the
// JobSet is suspended, parts of the pod templates may change too. tools/crdgen/jobtemplate.go generates the rules for
// templates, one for each field of a Job and its pods.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.startupPolicy) && self.startupPolicy.startupPolicyOrder == 'InOrder' && has(self.replicatedJobs) && self.replicatedJobs.exists(x, has(x.dependsOn)))",message="StartupPolicy and DependsOn APIs are mutually exclusive"
// +kubebuilder:validation:XValidation:rule="!has(self.replicatedJobs) || size(self.replicatedJobs) == 0 || !has(self.replicatedJobs[0].dependsOn)",message="DependsOn can't be set for the first ReplicatedJob"
// +kubebuilder:validation:XValidation:rule="!has(self.failurePolicy) || !has(self.failurePolicy.rules) || !has(self.replicatedJobs) || !self.failurePolicy.rules.exists(r, r.action in ['RestartJob', 'RestartJobAndIgnoreMaxRestarts']) || self.replicatedJobs.all(r, r.replicas <= 1024)",message="JobSet cannot have a failure policy rule with RestartJob or RestartJobAndIgnoreMaxRestarts action and a replicated job with replicas > 1024"
// +kubebuilder:validation:XValidation:rule="(has(self.replicatedJobs) && size(self.replicatedJobs) > 0) ? (has(oldSelf.replicatedJobs) && self.replicatedJobs.map(r, r.name) == oldSelf.replicatedJobs.map(r, r.name)) : (!has(oldSelf.replicatedJobs) || size(oldSelf.replicatedJobs) == 0)",message="field is immutable"
// +kubebuilder:validation:XValidation:rule="has(self.network) == has(oldSelf.network) && (!has(self.network) || self.network == oldSelf.network)",message="Value is immutable",fieldPath=".network"
// +kubebuilder:validation:XValidation:rule="has(self.successPolicy) == has(oldSelf.successPolicy) && (!has(self.successPolicy) || self.successPolicy == oldSelf.successPolicy)",message="Value is immutable",fieldPath=".successPolicy"
// +kubebuilder:validation:XValidation:rule="has(self.failurePolicy) == has(oldSelf.failurePolicy) && (!has(self.failurePolicy) || self.failurePolicy == oldSelf.failurePolicy)",message="Value is immutable",fieldPath=".failurePolicy"
// +kubebuilder:validation:XValidation:rule="has(self.startupPolicy) == has(oldSelf.startupPolicy) && (!has(self.startupPolicy) || self.startupPolicy == oldSelf.startupPolicy)",message="Value is immutable",fieldPath=".startupPolicy"
// +kubebuilder:validation:XValidation:rule="(has(self.volumeClaimPolicies) && size(self.volumeClaimPolicies) > 0) ? (has(oldSelf.volumeClaimPolicies) && self.volumeClaimPolicies == oldSelf.volumeClaimPolicies) : (!has(oldSelf.volumeClaimPolicies) || size(oldSelf.volumeClaimPolicies) == 0)",message="Value is immutable",fieldPath=".volumeClaimPolicies"
// +kubebuilder:validation:XValidation:rule="has(self.managedBy) == has(oldSelf.managedBy) && (!has(self.managedBy) || self.managedBy == oldSelf.managedBy)",message="field is immutable",fieldPath=".managedBy"
type JobSetSpec struct {
	// replicatedJobs are the groups of equal Jobs. Their order matters: it determines the global index of Jobs and, if
	// startupPolicy asks for one, the order of start.
	//
	// +optional
	// +listType=map
	// +listMapKey=name
	// +patchStrategy=merge
	// +patchMergeKey=name
	// +kubebuilder:validation:MaxItems=128
	ReplicatedJobs []ReplicatedJob `json:"replicatedJobs,omitempty" patchStrategy:"merge" patchMergeKey:"name"`

	// network configures how pods of the JobSet find each other.
	//
	// +optional
	// +kubebuilder:default={}
	Network *Network `json:"network,omitempty"`

	// successPolicy determines when the JobSet has succeeded.
	//
	// +optional
	// +kubebuilder:default={operator: All}
	SuccessPolicy *SuccessPolicy `json:"successPolicy,omitempty"`

	// failurePolicy determines what happens when a Job fails. Without one, the first failed Job fails the JobSet.
	//
	// +optional
	FailurePolicy *FailurePolicy `json:"failurePolicy,omitempty"`

	// startupPolicy determines the order in which Jobs start. dependsOn is preferred; the two cannot be combined.
	//
	// +optional
	// +kubebuilder:default={startupPolicyOrder: AnyOrder}
	StartupPolicy *StartupPolicy `json:"startupPolicy,omitempty"`

	// suspend stops all Jobs while true.
	//
	// +optional
	Suspend *bool `json:"suspend,omitempty"`

	// coordinator selects the pod whose host name is set as a label and annotation on all Jobs and pods of the JobSet.
	//
	// +optional
	Coordinator *Coordinator `json:"coordinator,omitempty"`

	// managedBy names the controller that runs the JobSet, if that is not Muster.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/[A-Za-z0-9/._~%!$&()*+,;=:-]+$')",message="must be a domain-prefixed path (such as acme.io/foo)"
	ManagedBy *string `json:"managedBy,omitempty"`

	// ttlSecondsAfterFinished is how long the JobSet is kept after its end; forever if absent.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished,omitempty"`

	// volumeClaimPolicies are volume claims that Jobs of the JobSet share.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=50
	VolumeClaimPolicies []VolumeClaimPolicy `json:"volumeClaimPolicies,omitempty"`
}

// ReplicatedJob is a number of Jobs created from one template, named <jobset>-<name>-<index>.
//
// +kubebuilder:validation:XValidation:rule="self.replicas * (has(self.template.spec.parallelism) ? self.template.spec.parallelism : 1) <= 2147483647",message="the product of replicas and parallelism must not exceed 2147483647 for a replicatedJob",messageExpression=`"the product of replicas and parallelism must not exceed 2147483647 for replicatedJob '" + self.name + "'"`
// +kubebuilder:validation:XValidation:rule="self.groupName == oldSelf.groupName",message="field is immutable",fieldPath=".groupName"
// +kubebuilder:validation:XValidation:rule="self.replicas == oldSelf.replicas",message="field is immutable",fieldPath=".replicas"
// +kubebuilder:validation:XValidation:rule="(has(self.dependsOn) && size(self.dependsOn) > 0) ? (has(oldSelf.dependsOn) && self.dependsOn == oldSelf.dependsOn) : (!has(oldSelf.dependsOn) || size(oldSelf.dependsOn) == 0)",message="Value is immutable",fieldPath=".dependsOn"
type ReplicatedJob struct {
	// name of the replicated job, part of the names of its Jobs.
	//
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern="^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
	Name string `json:"name"`

	// groupName is the group in which its Jobs are counted, together with those of other replicated jobs of the same
	// group.
	//
	// +optional
	// +kubebuilder:default=default
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="size(self) <= 63",message=".spec.replicatedJob[].groupName is too long, must be less than 63 characters"
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="a DNS-1035 label must consist of lower case letters, digits or '-', start with a letter, and end with a letter or digit"
	GroupName string `json:"groupName,omitempty"`

	// template of the Jobs. Its completionMode defaults to Indexed, and the pods' restartPolicy to OnFailure.
	Template batchv1.JobTemplateSpec `json:"template"`

	// replicas is the number of Jobs.
	//
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	Replicas int32 `json:"replicas,omitempty"`

	// dependsOn are earlier replicated jobs, all of which must be ready or complete before these Jobs are created.
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
	//
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// status that all its Jobs must reach.
	Status DependsOnStatus `json:"status"`
}

// DependsOnStatus is a state of a replicated job that others can wait for.
//
// +kubebuilder:validation:Enum=Ready;Complete
type DependsOnStatus string

const (
	// DependencyReady: every Job is ready or has ended.
	DependencyReady DependsOnStatus = "Ready"
	// DependencyComplete: every Job has succeeded.
	DependencyComplete DependsOnStatus = "Complete"
)

// Coordinator selects one pod of a JobSet.
type Coordinator struct {
	// replicatedJob is the replicated job of the pod.
	//
	// +kubebuilder:validation:MaxLength=63
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

// JobSetStatus is the observed state of a JobSet.
type JobSetStatus struct {
	// conditions of the JobSet.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	// +patchStrategy=merge
	// +patchMergeKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`

	// restarts counts how often all Jobs were recreated.
	//
	// +optional
	// +kubebuilder:default=0
	Restarts int32 `json:"restarts"`

	// restartsCountTowardsMax counts those restarts that count against maxRestarts.
	//
	// +optional
	RestartsCountTowardsMax int32 `json:"restartsCountTowardsMax,omitempty"`

	// terminalState is Completed or Failed once the JobSet has ended.
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
	// +kubebuilder:validation:MaxItems=128
	ReplicatedJobsStatus []ReplicatedJobStatus `json:"replicatedJobsStatus,omitempty" patchStrategy:"merge" patchMergeKey:"name"`

	// previousInPlaceRestartAttempt is the last attempt that is over: pods in it or before it restart.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	PreviousInPlaceRestartAttempt *int32 `json:"previousInPlaceRestartAttempt,omitempty"`

	// currentInPlaceRestartAttempt is the attempt in which pods may run.
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

	// jobRestarts counts, for each Job, how often it alone was recreated.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1024
	JobRestarts []int32 `json:"jobRestarts,omitempty"`

	// jobRestartsCountTowardsMax counts those restarts that count against maxRestarts.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1024
	JobRestartsCountTowardsMax []int32 `json:"jobRestartsCountTowardsMax,omitempty"`
}
