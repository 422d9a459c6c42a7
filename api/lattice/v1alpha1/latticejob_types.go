package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// LatticeJob is tasks, each a number of equal pods, that are scheduled together.
//
// Rules over names, and over several parts of it at once, are in charts/muster/policies/latticejob-rules.yaml.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:path=latticejobs,shortName=lj
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Phase",JSONPath=".status.phase",type=string,description="Where the job stands"
// +kubebuilder:printcolumn:name="Queue",JSONPath=".spec.queue",type=string,priority=1,description="Queue that the job names"
// +kubebuilder:printcolumn:name="Schedule",JSONPath=".spec.schedule",type=string,priority=1,description="When it runs again"
// +kubebuilder:printcolumn:name="Message",JSONPath=".status.message",type=string,priority=1,description="Why it stands there"
// +kubebuilder:printcolumn:name="Age",JSONPath=".metadata.creationTimestamp",type=date,description="Time since it was made"
type LatticeJob struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what is to run. Changes are ignored once the job runs.
	Spec LatticeJobSpec `json:"spec"`
	// status is how it fares.
	//
	// +optional
	Status LatticeJobStatus `json:"status,omitempty"`
}

// LatticeJobList is a list of LatticeJobs.
//
// +kubebuilder:object:root=true
type LatticeJobList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []LatticeJob `json:"items"`
}

// LatticeJobSpec is what a LatticeJob is to run.
//
// +kubebuilder:validation:XValidation:rule="has(self.schedule) == has(oldSelf.schedule)",message="a schedule can be changed, but not given to a job or taken from it: make another LatticeJob"
// +kubebuilder:validation:XValidation:rule="has(self.schedule) || !has(self.concurrencyPolicy) && !has(self.suspend) && !has(self.successfulJobsHistoryLimit) && !has(self.failedJobsHistoryLimit) && !has(self.startingDeadlineSeconds)",message="concurrencyPolicy, suspend, startingDeadlineSeconds and history limits need a schedule"
type LatticeJobSpec struct {
	CronSpec `json:",inline"`

	// schedulerName is that of the pods.
	//
	// +optional
	// +kubebuilder:default=volcano
	// +kubebuilder:validation:MaxLength=253
	SchedulerName string `json:"schedulerName,omitempty"`

	// minAvailable is how many pods must be able to run together before any is started; all of them where it is absent.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	MinAvailable *int32 `json:"minAvailable,omitempty"`

	// maxRetry is how often all pods are restarted before the job has failed. Only with it does a failed pod restart them.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	MaxRetry *int32 `json:"maxRetry,omitempty"`

	// queue is the name of the queue; default where it is empty.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)?$`
	Queue string `json:"queue,omitempty"`

	// priorityClassName says how urgent the job is.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	PriorityClassName string `json:"priorityClassName,omitempty"`

	// topology says how near to each other the pods must be.
	//
	// +optional
	Topology *NetworkTopology `json:"topology,omitempty"`

	// policies say what is done when something happens to a pod whose task does not say it. They go in the place of those
	// that every job has.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:XValidation:rule="size(self) < 2 || !self.exists(p, p.event in ['Any', '*'])",message="where a policy is for Any there must be no other"
	Policies []JobPolicy `json:"policies,omitempty"`

	// defaults are merged into every task, which goes before them: maps by their keys, lists as a whole.
	//
	// +optional
	Defaults *JobTaskSpec `json:"defaults,omitempty"`

	// training has the pods be told how to find each other, as the framework wants it.
	//
	// +optional
	Training *TrainingConfig `json:"training,omitempty"`

	// tasks are the pods, by the name of their task.
	//
	// +optional
	// +kubebuilder:default={}
	// +kubebuilder:validation:MaxProperties=64
	Tasks map[string]JobTaskSpec `json:"tasks,omitempty"`
}

// RestartPolicy is what happens to a container that ends.
//
// +kubebuilder:validation:Enum=Never;OnFailure;Always
type RestartPolicy string

const (
	// RestartNever leaves it ended.
	RestartNever RestartPolicy = "Never"
	// RestartOnFailure runs it again in its pod if it has failed.
	RestartOnFailure RestartPolicy = "OnFailure"
	// RestartAlways runs it again in its pod.
	RestartAlways RestartPolicy = "Always"
)

// JobTaskSpec is a number of equal pods.
type JobTaskSpec struct {
	// replicas is how many pods there are; 1 where nothing is said.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000
	Replicas *int32 `json:"replicas,omitempty"`

	// workload is what runs in each of them.
	//
	// +optional
	Workload WorkloadSpec `json:"workload,omitempty"`

	// restartPolicy is what happens to a container that ends; Never where nothing is said.
	//
	// +optional
	RestartPolicy RestartPolicy `json:"restartPolicy,omitempty"`

	// policies say what is done when something happens to a pod of the task. They go before those of the job.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:XValidation:rule="size(self) < 2 || !self.exists(p, p.event in ['Any', '*'])",message="where a policy is for Any there must be no other"
	Policies []JobPolicy `json:"policies,omitempty"`

	RuntimeSpec `json:",inline"`
}

// RuntimeSpec is what the pods of a task have in common beside their workload.
type RuntimeSpec struct {
	// sidecars run beside the containers, or before them, by their names.
	//
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	Sidecars map[string]SidecarSpec `json:"sidecars,omitempty"`

	// sysctls are parameters of the kernel.
	//
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	Sysctls map[string]string `json:"sysctls,omitempty"`

	// hostNetwork has pods use the network of their node.
	//
	// +optional
	HostNetwork *bool `json:"hostNetwork,omitempty"`

	// shareProcessNamespace has the containers of a pod see each other's processes.
	//
	// +optional
	ShareProcessNamespace *bool `json:"shareProcessNamespace,omitempty"`

	// imagePullSecrets are names of the workload's resources of type secret, with which images are pulled.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	ImagePullSecrets []string `json:"imagePullSecrets,omitempty"`
}

// JobPhase is where a LatticeJob stands.
//
// +kubebuilder:validation:Enum=Pending;Running;Succeeded;Failed
type JobPhase string

const (
	// Pending: the job is compiled, or waits for what it needs.
	Pending JobPhase = "Pending"
	// Running: all that it needs was made, and its VCJob too.
	Running JobPhase = "Running"
	// Succeeded: all its tasks have.
	Succeeded JobPhase = "Succeeded"
	// Failed: it cannot be compiled, or has failed.
	Failed JobPhase = "Failed"
)

// LatticeJobStatus is how a LatticeJob fares.
type LatticeJobStatus struct {
	// phase is where it stands.
	//
	// +optional
	// +kubebuilder:default=Pending
	Phase JobPhase `json:"phase,omitempty"`

	// message tells people why.
	//
	// +optional
	// +nullable
	Message string `json:"message,omitempty"`

	// observedGeneration is the generation of the spec that the job runs with.
	//
	// +optional
	// +nullable
	ObservedGeneration *int64 `json:"observedGeneration,omitempty"`

	// lastScheduleTime is the last time of the schedule at which a run was begun.
	//
	// +optional
	// +nullable
	LastScheduleTime *metav1.Time `json:"lastScheduleTime,omitempty"`
}
