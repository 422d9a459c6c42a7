package v1alpha2

// Network configures how pods of a JobSet find each other.
type Network struct {
	// enableDNSHostnames gives each pod the host name <jobset>-<replicated job>-<job index>-<pod index>.<subdomain>.
	//
	// +optional
	// +kubebuilder:default=true
	EnableDNSHostnames *bool `json:"enableDNSHostnames,omitempty"`

	// subdomain of those host names, and name of the headless Service. Default: the name of the JobSet.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="size(self) <= 63",message=".spec.network.subdomain is too long, must be less than 63 characters"
	// +kubebuilder:validation:XValidation:rule=`self == "" || self.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')`,message="a DNS-1035 label must consist of lower case letters, digits or '-', start with a letter, and end with a letter or digit"
	Subdomain string `json:"subdomain,omitempty"`

	// publishNotReadyAddresses publishes host names before pods are ready.
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
	// OperatorAll requires every Job.
	OperatorAll Operator = "All"
	// OperatorAny requires one Job.
	OperatorAny Operator = "Any"
)

// SuccessPolicy determines when a JobSet has succeeded.
type SuccessPolicy struct {
	// operator: All or Any of the Jobs.
	Operator Operator `json:"operator"`

	// targetReplicatedJobs are the replicated jobs whose Jobs count; all if empty.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=128
	// +kubebuilder:validation:items:MaxLength=63
	TargetReplicatedJobs []string `json:"targetReplicatedJobs,omitempty"`
}

// StartupPolicyOptions is an order in which Jobs start.
//
// +kubebuilder:validation:Enum=AnyOrder;InOrder
type StartupPolicyOptions string

const (
	// AnyOrder starts all Jobs at once.
	AnyOrder StartupPolicyOptions = "AnyOrder"
	// InOrder starts the Jobs of a replicated job once those of the previous one are ready.
	InOrder StartupPolicyOptions = "InOrder"
)

// StartupPolicy determines the order in which Jobs start.
type StartupPolicy struct {
	// startupPolicyOrder: AnyOrder or InOrder.
	StartupPolicyOrder StartupPolicyOptions `json:"startupPolicyOrder"`
}

// FailurePolicy determines what happens when a Job fails.
type FailurePolicy struct {
	// maxRestarts is how often the JobSet may restart; the next failure fails it. With the strategy InPlaceRestart it
	// also limits the restarts of each container.
	//
	// +optional
	MaxRestarts int32 `json:"maxRestarts,omitempty"`

	// restartStrategy determines how Jobs are recreated.
	//
	// +optional
	// +kubebuilder:default=Recreate
	RestartStrategy JobSetRestartStrategy `json:"restartStrategy,omitempty"`

	// rules are evaluated in order; the first one that matches a failed Job applies. If none matches, the JobSet
	// restarts.
	//
	// +optional
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:XValidation:rule=`self.all(r, !has(r.name) || r.name == "" || self.exists_one(s, has(s.name) && s.name == r.name))`,message="rule names are not unique"
	Rules []FailurePolicyRule `json:"rules,omitempty"`
}

// JobSetRestartStrategy determines how the Jobs of a JobSet are recreated.
//
// +kubebuilder:validation:Enum=Recreate;BlockingRecreate;InPlaceRestart
type JobSetRestartStrategy string

const (
	// Recreate recreates each Job as soon as its previous one is deleted.
	Recreate JobSetRestartStrategy = "Recreate"
	// BlockingRecreate recreates Jobs only after all previous ones are deleted.
	BlockingRecreate JobSetRestartStrategy = "BlockingRecreate"
	// InPlaceRestart restarts containers in place, by an agent in each pod.
	InPlaceRestart JobSetRestartStrategy = "InPlaceRestart"
)

// FailurePolicyRule is an action for some failures. A failure matches if its reason, its message and its replicated job
// all match; an empty list matches everything.
type FailurePolicyRule struct {
	// name of the rule; default failurePolicyRule<index>.
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

	// onJobFailureMessagePatterns are regular expressions, in RE2 syntax, one of which must match a part of the message
	// of that condition. The patterns of all rules have at most 4,096 characters together. A count of repetitions, such
	// as {3}, has at most two digits and follows a character or a class, not a group; all counts are at most 512
	// together.
	//
	// +optional
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=256
	OnJobFailureMessagePatterns []string `json:"onJobFailureMessagePatterns,omitempty"`

	// targetReplicatedJobs are the replicated jobs to which the rule applies.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=128
	// +kubebuilder:validation:items:MaxLength=63
	TargetReplicatedJobs []string `json:"targetReplicatedJobs,omitempty"`
}

// FailurePolicyAction is the action for a failed Job.
//
// +kubebuilder:validation:Enum=FailJobSet;RestartJobSet;RestartJobSetAndIgnoreMaxRestarts;RestartJob;RestartJobAndIgnoreMaxRestarts
type FailurePolicyAction string

const (
	// FailJobSet fails the JobSet at once.
	FailJobSet FailurePolicyAction = "FailJobSet"
	// RestartJobSet recreates all Jobs as long as maxRestarts allows, and then fails the JobSet.
	RestartJobSet FailurePolicyAction = "RestartJobSet"
	// RestartJobSetAndIgnoreMaxRestarts recreates all Jobs without counting against maxRestarts.
	RestartJobSetAndIgnoreMaxRestarts FailurePolicyAction = "RestartJobSetAndIgnoreMaxRestarts"
	// RestartJob recreates the failed Job as long as maxRestarts allows, and then fails the JobSet.
	RestartJob FailurePolicyAction = "RestartJob"
	// RestartJobAndIgnoreMaxRestarts recreates the failed Job without counting against maxRestarts.
	RestartJobAndIgnoreMaxRestarts FailurePolicyAction = "RestartJobAndIgnoreMaxRestarts"
)
