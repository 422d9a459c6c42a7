package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// LatticeJob is a set of tasks, each a number of equal pods, that are scheduled together.
//
// Validation rules for names, and rules that involve several parts of it, are in
// charts/muster/policies/latticejob-rules.yaml.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:path=latticejobs,shortName=lj
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Phase",JSONPath=".status.phase",type=string,description="State of the job"
// +kubebuilder:printcolumn:name="Queue",JSONPath=".spec.queue",type=string,priority=1,description="Queue that the job names"
// +kubebuilder:printcolumn:name="Schedule",JSONPath=".spec.schedule",type=string,priority=1,description="Schedule of its runs"
// +kubebuilder:printcolumn:name="Message",JSONPath=".status.message",type=string,priority=1,description="Reason of the state"
// +kubebuilder:printcolumn:name="Age",JSONPath=".metadata.creationTimestamp",type=date,description="Time since creation"
type LatticeJob struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state of the job. Changes are ignored once the job runs.
	Spec LatticeJobSpec `json:"spec"`
	// status is the observed state of the job.
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

// LatticeJobSpec describes a LatticeJob.
//
// +kubebuilder:validation:XValidation:rule="has(self.schedule) == has(oldSelf.schedule)",message="a schedule can be changed, but not given to a job or taken from it: create a new LatticeJob"
// +kubebuilder:validation:XValidation:rule="has(self.schedule) || !has(self.concurrencyPolicy) && !has(self.suspend) && !has(self.successfulJobsHistoryLimit) && !has(self.failedJobsHistoryLimit) && !has(self.startingDeadlineSeconds)",message="concurrencyPolicy, suspend, startingDeadlineSeconds and history limits need a schedule"
type LatticeJobSpec struct {
	CronSpec `json:",inline"`

	// schedulerName is the scheduler of the pods.
	//
	// +optional
	// +kubebuilder:default=volcano
	// +kubebuilder:validation:MaxLength=253
	SchedulerName string `json:"schedulerName,omitempty"`

	// minAvailable is how many pods must be able to run together before any is started; default all.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	MinAvailable *int32 `json:"minAvailable,omitempty"`

	// maxRetry is the number of restarts of all pods at which the job fails: with 2 they are restarted once. Without it,
	// a failed pod does not restart them, and evictions count as with 3.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	MaxRetry *int32 `json:"maxRetry,omitempty"`

	// queue is the name of the queue; if empty, default.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)?$`
	Queue string `json:"queue,omitempty"`

	// priorityClassName is the name of the job's priority class.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	PriorityClassName string `json:"priorityClassName,omitempty"`

	// topology determines how close to each other the pods are placed.
	//
	// +optional
	Topology *NetworkTopology `json:"topology,omitempty"`

	// policies determine the actions on events of pods whose task has no policy for them. They replace the default
	// policies of jobs.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:XValidation:rule="size(self) < 2 || !self.exists(p, p.event in ['Any', '*'])",message="where a policy is for Any there must be no other"
	Policies []JobPolicy `json:"policies,omitempty"`

	// defaults are merged into every task, whose own fields take precedence: maps are merged by key, lists are
	// replaced.
	//
	// +optional
	Defaults *JobTaskSpec `json:"defaults,omitempty"`

	// training configures the pods to find each other as the framework requires.
	//
	// +optional
	Training *TrainingConfig `json:"training,omitempty"`

	// tasks are the pods, keyed by the name of their task.
	//
	// +optional
	// +kubebuilder:default={}
	// +kubebuilder:validation:MaxProperties=64
	Tasks map[string]JobTaskSpec `json:"tasks,omitempty"`
}

// RestartPolicy determines what happens when a container ends.
//
// +kubebuilder:validation:Enum=Never;OnFailure;Always
type RestartPolicy string

const (
	// RestartNever does not restart it.
	RestartNever RestartPolicy = "Never"
	// RestartOnFailure restarts it in its pod if it has failed.
	RestartOnFailure RestartPolicy = "OnFailure"
	// RestartAlways restarts it in its pod.
	RestartAlways RestartPolicy = "Always"
)

// JobTaskSpec is a number of equal pods.
type JobTaskSpec struct {
	// replicas is the number of pods; default 1.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000
	Replicas *int32 `json:"replicas,omitempty"`

	// workload describes the containers of each pod.
	//
	// +optional
	Workload WorkloadSpec `json:"workload,omitempty"`

	// restartPolicy determines what happens when a container ends; default Never.
	//
	// +optional
	RestartPolicy RestartPolicy `json:"restartPolicy,omitempty"`

	// policies determine the actions on events of the task's pods. They take precedence over those of the job.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:XValidation:rule="size(self) < 2 || !self.exists(p, p.event in ['Any', '*'])",message="where a policy is for Any there must be no other"
	Policies []JobPolicy `json:"policies,omitempty"`

	RuntimeSpec `json:",inline"`
}

// RuntimeSpec configures the pods of a task apart from their workload.
type RuntimeSpec struct {
	// sidecars run beside the containers, or before them, keyed by name.
	//
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	Sidecars map[string]SidecarSpec `json:"sidecars,omitempty"`

	// sysctls are kernel parameters.
	//
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	Sysctls map[string]string `json:"sysctls,omitempty"`

	// hostNetwork makes pods use the network of their node.
	//
	// +optional
	HostNetwork *bool `json:"hostNetwork,omitempty"`

	// shareProcessNamespace lets the containers of a pod see each other's processes.
	//
	// +optional
	ShareProcessNamespace *bool `json:"shareProcessNamespace,omitempty"`

	// imagePullSecrets are names of resources of type secret in the workload, with which images are pulled.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	ImagePullSecrets []string `json:"imagePullSecrets,omitempty"`
}

// JobPhase is the phase of a LatticeJob.
//
// +kubebuilder:validation:Enum=Pending;Running;Succeeded;Failed
type JobPhase string

const (
	// Pending: the job is being compiled, or waits for what it needs.
	Pending JobPhase = "Pending"
	// Running: its VCJob and everything that it needs has been created.
	Running JobPhase = "Running"
	// Succeeded: all its tasks have succeeded.
	Succeeded JobPhase = "Succeeded"
	// Failed: it could not be compiled, or has failed.
	Failed JobPhase = "Failed"
)

// LatticeJobStatus is the observed state of a LatticeJob.
type LatticeJobStatus struct {
	// phase of the job.
	//
	// +optional
	// +kubebuilder:default=Pending
	Phase JobPhase `json:"phase,omitempty"`

	// message explains the phase.
	//
	// +optional
	// +nullable
	Message string `json:"message,omitempty"`

	// observedGeneration is the generation of the spec that the job runs with.
	//
	// +optional
	// +nullable
	ObservedGeneration *int64 `json:"observedGeneration,omitempty"`

	// startTime is when the job became Running.
	//
	// +optional
	// +nullable
	StartTime *metav1.Time `json:"startTime,omitempty"`

	// completionTime is when the job succeeded or failed.
	//
	// +optional
	// +nullable
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`

	// lastScheduleTime is the last scheduled time at which a run was started.
	//
	// +optional
	// +nullable
	LastScheduleTime *metav1.Time `json:"lastScheduleTime,omitempty"`
}
