package v1alpha2

// Network says how pods of a JobSet find each other.
type Network struct {
	// enableDNSHostnames gives each pod the host name <jobset>-<replicated job>-<job index>-<pod index>.<subdomain>.
	//
	// +optional
	// +kubebuilder:default=true
	EnableDNSHostnames *bool `json:"enableDNSHostnames,omitempty"`

	// subdomain of those host names, and name of the headless Service. The name of the JobSet unless set.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="size(self) <= 63",message=".spec.network.subdomain is too long, must be less than 63 characters"
	// +kubebuilder:validation:XValidation:rule=`self == "" || self.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')`,message="a DNS-1035 label must consist of lower case letters, digits or '-', start with a letter, and end with a letter or digit"
	Subdomain string `json:"subdomain,omitempty"`

	// publishNotReadyAddresses lets host names be looked up before pods are ready.
	//
	// +optional
	// +kubebuilder:default=true
	PublishNotReadyAddresses *bool `json:"publishNotReadyAddresses,omitempty"`
}

// Operator says how many of the Jobs must succeed.
//
// +kubebuilder:validation:Enum=All;Any
type Operator string

const (
	// OperatorAll wants every Job.
	OperatorAll Operator = "All"
	// OperatorAny wants one Job.
	OperatorAny Operator = "Any"
)

// SuccessPolicy says when a JobSet has succeeded.
type SuccessPolicy struct {
	// operator: All or Any of the Jobs.
	Operator Operator `json:"operator"`

	// targetReplicatedJobs whose Jobs count; all where it is empty.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=128
	// +kubebuilder:validation:items:MaxLength=63
	TargetReplicatedJobs []string `json:"targetReplicatedJobs,omitempty"`
}

// StartupPolicyOptions is an order of start.
//
// +kubebuilder:validation:Enum=AnyOrder;InOrder
type StartupPolicyOptions string

const (
	// AnyOrder starts all Jobs at once.
	AnyOrder StartupPolicyOptions = "AnyOrder"
	// InOrder starts the Jobs of a replicated job once those of the one before are ready.
	InOrder StartupPolicyOptions = "InOrder"
)

// StartupPolicy says in which order Jobs start.
type StartupPolicy struct {
	// startupPolicyOrder: AnyOrder or InOrder.
	StartupPolicyOrder StartupPolicyOptions `json:"startupPolicyOrder"`
}

// FailurePolicy says what to do when a Job fails.
type FailurePolicy struct {
	// maxRestarts is how often the set may restart; the failure after that fails it. With the strategy InPlaceRestart
	// it also bounds the restarts of each container.
	//
	// +optional
	MaxRestarts int32 `json:"maxRestarts,omitempty"`

	// restartStrategy says how Jobs are made anew.
	//
	// +optional
	// +kubebuilder:default=Recreate
	RestartStrategy JobSetRestartStrategy `json:"restartStrategy,omitempty"`

	// rules are tried in order; the first that matches a failed Job is followed. Where none matches, the set restarts.
	//
	// +optional
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:XValidation:rule=`self.all(r, !has(r.name) || r.name == "" || self.exists_one(s, has(s.name) && s.name == r.name))`,message="rule names are not unique"
	Rules []FailurePolicyRule `json:"rules,omitempty"`
}

// JobSetRestartStrategy says how the Jobs of a set are made anew.
//
// +kubebuilder:validation:Enum=Recreate;BlockingRecreate;InPlaceRestart
type JobSetRestartStrategy string

const (
	// Recreate makes each Job anew as soon as its old one is gone.
	Recreate JobSetRestartStrategy = "Recreate"
	// BlockingRecreate makes none anew before all old ones are gone.
	BlockingRecreate JobSetRestartStrategy = "BlockingRecreate"
	// InPlaceRestart restarts containers where they are, through an agent in each pod.
	InPlaceRestart JobSetRestartStrategy = "InPlaceRestart"
)

// FailurePolicyRule is what to do about failures of one sort. A failure matches if its reason, its message and its
// replicated job all match; an empty list matches all.
type FailurePolicyRule struct {
	// name of the rule; failurePolicyRule<index> unless set.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern="^([A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?)?$"
	Name string `json:"name,omitempty"`

	// action to take.
	Action FailurePolicyAction `json:"action"`

	// onJobFailureReasons are reasons of the condition Failed of the Job.
	//
	// +optional
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:Enum=BackoffLimitExceeded;DeadlineExceeded;FailedIndexes;MaxFailedIndexesExceeded;PodFailurePolicy
	OnJobFailureReasons []string `json:"onJobFailureReasons,omitempty"`

	// onJobFailureMessagePatterns are regular expressions, in RE2 syntax, one of which must be found in the message of
	// that condition.
	//
	// +optional
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=1024
	// +kubebuilder:validation:items:XValidation:rule=`"".matches(self) || !"".matches(self)`,message="must be a regular expression in RE2 syntax"
	OnJobFailureMessagePatterns []string `json:"onJobFailureMessagePatterns,omitempty"`

	// targetReplicatedJobs are the replicated jobs that the rule is for.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=128
	// +kubebuilder:validation:items:MaxLength=63
	TargetReplicatedJobs []string `json:"targetReplicatedJobs,omitempty"`
}

// FailurePolicyAction is what to do about a failed Job.
//
// +kubebuilder:validation:Enum=FailJobSet;RestartJobSet;RestartJobSetAndIgnoreMaxRestarts;RestartJob;RestartJobAndIgnoreMaxRestarts
type FailurePolicyAction string

const (
	// FailJobSet fails the set at once.
	FailJobSet FailurePolicyAction = "FailJobSet"
	// RestartJobSet makes all Jobs anew while maxRestarts allows it, and fails the set after that.
	RestartJobSet FailurePolicyAction = "RestartJobSet"
	// RestartJobSetAndIgnoreMaxRestarts makes all Jobs anew and uses nothing of maxRestarts.
	RestartJobSetAndIgnoreMaxRestarts FailurePolicyAction = "RestartJobSetAndIgnoreMaxRestarts"
	// RestartJob makes the failed Job anew while maxRestarts allows it, and fails the set after that.
	RestartJob FailurePolicyAction = "RestartJob"
	// RestartJobAndIgnoreMaxRestarts makes the failed Job anew and uses nothing of maxRestarts.
	RestartJobAndIgnoreMaxRestarts FailurePolicyAction = "RestartJobAndIgnoreMaxRestarts"
)
