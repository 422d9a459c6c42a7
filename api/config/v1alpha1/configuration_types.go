package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Kind and apiVersion of the only object of this group.
const (
	ConfigurationKind       = "Configuration"
	ConfigurationAPIVersion = "config.muster.dev/v1alpha1"
)

// Configuration is the operator's configuration. All fields are optional; the default is given with each field. After
// internal/config has loaded a file, no pointer is nil unless the field's comment says what nil means.
type Configuration struct {
	metav1.TypeMeta `json:",inline"`

	// waitForPodsReady evicts workloads whose pods do not become ready.
	WaitForPodsReady *WaitForPodsReady `json:"waitForPodsReady,omitempty"`

	// objectRetentionPolicies delete finished objects.
	ObjectRetentionPolicies *ObjectRetentionPolicies `json:"objectRetentionPolicies,omitempty"`

	// fairSharing, if set, orders and preempts across queues by their share of the cohort. Nil: off. The field enable
	// of Kueue's configuration is accepted too: false means nil.
	FairSharing *FairSharing `json:"fairSharing,omitempty"`

	// admissionFairSharing, if set, orders the workloads of a ClusterQueue that has an admissionScope by the recent
	// usage of their LocalQueues. Nil: off.
	AdmissionFairSharing *AdmissionFairSharing `json:"admissionFairSharing,omitempty"`

	// resources configures how requests are counted.
	Resources *Resources `json:"resources,omitempty"`

	// queueStatus configures how often the status of a queue is written.
	QueueStatus *QueueStatus `json:"queueStatus,omitempty"`

	// batchJob configures how batch/v1 Jobs are suspended until they are admitted.
	BatchJob *BatchJob `json:"batchJob,omitempty"`

	// defaultQueue configures the quota of the queue named default.
	DefaultQueue *DefaultQueue `json:"defaultQueue,omitempty"`

	// nodeFailure configures when a node counts as lost.
	NodeFailure *NodeFailure `json:"nodeFailure,omitempty"`

	// gangs configures whether kube-scheduler is told about gangs too.
	Gangs *Gangs `json:"gangs,omitempty"`

	// volcano selects who runs the Jobs of batch.volcano.sh: auto (default): Volcano if it has installed their CRD,
	// otherwise Muster; native: Muster; external: Volcano.
	//
	// +optional
	Volcano *VolcanoMode `json:"volcano,omitempty"`

	// latticejob configures what LatticeJobs are compiled to.
	LatticeJob *LatticeJob `json:"latticejob,omitempty"`

	// placement configures how pods are assigned to nodes.
	Placement *Placement `json:"placement,omitempty"`

	// trainingJob configures the API group of TrainingJobs, and what happens to TrainingJobs with stuck pods.
	TrainingJob *TrainingJob `json:"trainingJob,omitempty"`

	// elasticity configures when elastic jobs grow.
	Elasticity *Elasticity `json:"elasticity,omitempty"`

	// backfill selects the queues that plan the start of the first jobs in order that do not fit, and let later jobs
	// pass only if they do not delay it: None (default): the queue default, and queues whose annotation
	// muster.dev/backfill says so; BestEffortFIFO: also the queues with that strategy whose annotation does not say
	// otherwise.
	Backfill *BackfillQueues `json:"backfill,omitempty"`

	// reservations is for how many jobs of a tree of queues, the first in order that do not fit, a start is planned: 1
	// to 16. Default 1.
	Reservations *int32 `json:"reservations,omitempty"`
}

// BackfillQueues selects the queues that plan starts.
type BackfillQueues string

const (
	// BackfillNone: only queues whose annotation says so, and default.
	BackfillNone BackfillQueues = "None"
	// BackfillBestEffortFIFO: also all queues with the strategy BestEffortFIFO whose annotation does not say otherwise.
	BackfillBestEffortFIFO BackfillQueues = "BestEffortFIFO"
)

// Elasticity configures elastic jobs, which can run at several sizes. They shrink at once when others need their
// resources.
type Elasticity struct {
	// growAfter is how long a job does not grow after its start or its last resize. Default 30s.
	GrowAfter *metav1.Duration `json:"growAfter,omitempty"`

	// resizeCost is the time that a job loses by a resize. A job grows only after it has run for so long that, if it
	// ran as long again, the larger size would achieve more work despite that loss. Default 30s.
	ResizeCost *metav1.Duration `json:"resizeCost,omitempty"`
}

// TrainingJob configures the TrainingJob API.
type TrainingJob struct {
	// group of the API. Default breezeml.ai. With --install-apis the CRD is installed in this group.
	Group *string `json:"group,omitempty"`

	// pendingTimeout is how long pods of a running TrainingJob may be pending before the job is stopped. Default 5m.
	PendingTimeout *metav1.Duration `json:"pendingTimeout,omitempty"`

	// cooldown is how long it then waits before it queues again. Default 3h.
	Cooldown *metav1.Duration `json:"cooldown,omitempty"`
}

// WaitForPodsReady completes all-or-nothing admission, which quota alone cannot guarantee: a workload whose pods are
// not all ready in time is evicted and requeued.
type WaitForPodsReady struct {
	// enable, default true.
	Enable *bool `json:"enable,omitempty"`

	// timeout is how long all pods of a workload may take to be ready after its admission. Default 30m.
	Timeout *metav1.Duration `json:"timeout,omitempty"`

	// recoveryTimeout is how long a pod that fails after that may be missing. Default: timeout.
	RecoveryTimeout *metav1.Duration `json:"recoveryTimeout,omitempty"`

	// blockAdmission blocks further admissions while an admitted workload is not ready: None, Queue (only in the same
	// ClusterQueue) or All. Default None. The booleans of Kueue's configuration are accepted too: true is All, false
	// None.
	BlockAdmission *BlockAdmission `json:"blockAdmission,omitempty"`

	// requeuingStrategy configures when an evicted workload is retried.
	RequeuingStrategy *RequeuingStrategy `json:"requeuingStrategy,omitempty"`
}

// BlockAdmission selects the queues whose admissions wait for ready pods.
type BlockAdmission string

const (
	// BlockNone blocks no queue.
	BlockNone BlockAdmission = "None"
	// BlockQueue blocks the ClusterQueue of the workload that is not ready.
	BlockQueue BlockAdmission = "Queue"
	// BlockAll blocks every ClusterQueue.
	BlockAll BlockAdmission = "All"
)

// RequeuingTimestamp determines the position in its queue of a workload evicted because its pods were not ready.
type RequeuingTimestamp string

const (
	// EvictionTimestamp orders it by its eviction, behind workloads that wait already.
	EvictionTimestamp RequeuingTimestamp = "Eviction"
	// CreationTimestamp orders it by its creation, at its previous position.
	CreationTimestamp RequeuingTimestamp = "Creation"
)

// RequeuingStrategy is the backoff after evictions because pods were not ready.
type RequeuingStrategy struct {
	// timestamp by which the workload is ordered: Eviction (default) or Creation.
	Timestamp *RequeuingTimestamp `json:"timestamp,omitempty"`

	// backoffLimitCount is how often it is retried before it is deactivated. Nil: no limit.
	BackoffLimitCount *int32 `json:"backoffLimitCount,omitempty"`

	// backoffBaseSeconds is the first backoff, which doubles each time. Default 60.
	BackoffBaseSeconds *int32 `json:"backoffBaseSeconds,omitempty"`

	// backoffMaxSeconds is the maximum backoff. Default 3600.
	BackoffMaxSeconds *int32 `json:"backoffMaxSeconds,omitempty"`
}

// ObjectRetentionPolicies configure when finished objects are deleted.
type ObjectRetentionPolicies struct {
	// workloads configures this for Workloads.
	Workloads *WorkloadRetentionPolicy `json:"workloads,omitempty"`
}

// WorkloadRetentionPolicy configures when Workloads are deleted.
type WorkloadRetentionPolicy struct {
	// afterFinished is how long a finished Workload is kept. Nil: as long as its job.
	AfterFinished *metav1.Duration `json:"afterFinished,omitempty"`

	// afterDeactivatedByMuster is how long a Workload that the operator, not a user, deactivated is kept; its job is
	// deleted with it. Nil: forever. Kueue's name, afterDeactivatedByKueue, is accepted too.
	AfterDeactivatedByMuster *metav1.Duration `json:"afterDeactivatedByMuster,omitempty"`
}

// PreemptionStrategy is a condition under which fair sharing may preempt.
type PreemptionStrategy string

const (
	// LessThanOrEqualToFinalShare: the share of the preemptor's queue, with the new workload, is at most that of the
	// victim's queue without the victim.
	LessThanOrEqualToFinalShare PreemptionStrategy = "LessThanOrEqualToFinalShare"
	// LessThanInitialShare: the share of the preemptor's queue, with the new workload, is less than that of the victim's
	// queue as it is.
	LessThanInitialShare PreemptionStrategy = "LessThanInitialShare"
)

// FairSharing compares queues by their dominant resource share.
type FairSharing struct {
	// preemptionStrategies in the order in which they are tried. Default: LessThanOrEqualToFinalShare, then
	// LessThanInitialShare. A list with only one of them is accepted too, the reverse order is not.
	PreemptionStrategies []PreemptionStrategy `json:"preemptionStrategies,omitempty"`
}

// AdmissionFairSharing compares LocalQueues by their recent usage.
type AdmissionFairSharing struct {
	// usageHalfLifeTime is the half-life of past usage. Default 0: only present usage counts.
	UsageHalfLifeTime metav1.Duration `json:"usageHalfLifeTime"`

	// usageSamplingInterval is how often usage is sampled. Default 5m.
	UsageSamplingInterval *metav1.Duration `json:"usageSamplingInterval,omitempty"`

	// resourceWeights are the weights of resources in usage; 0 excludes a resource. The default weight is 1.
	ResourceWeights map[corev1.ResourceName]float64 `json:"resourceWeights,omitempty"`
}

// QuotaCheckStrategy determines the handling of a requested resource that the ClusterQueue does not cover.
type QuotaCheckStrategy string

const (
	// BlockUndeclared keeps the workload pending, with the reason.
	BlockUndeclared QuotaCheckStrategy = "BlockUndeclared"
	// IgnoreUndeclared does not count the resource.
	IgnoreUndeclared QuotaCheckStrategy = "IgnoreUndeclared"
)

// TransformationStrategy determines whether the input of a transformation still counts.
type TransformationStrategy string

const (
	// Retain counts the input in addition to the outputs.
	Retain TransformationStrategy = "Retain"
	// Replace counts only the outputs.
	Replace TransformationStrategy = "Replace"
)

// Resources configures how requests are counted.
type Resources struct {
	// excludeResourcePrefixes are prefixes of names of resources that are not counted.
	ExcludeResourcePrefixes []string `json:"excludeResourcePrefixes,omitempty"`

	// transformations count a resource as other ones. Each input may occur only once.
	Transformations []ResourceTransformation `json:"transformations,omitempty"`

	// quotaCheckStrategy: BlockUndeclared (default) or IgnoreUndeclared.
	QuotaCheckStrategy *QuotaCheckStrategy `json:"quotaCheckStrategy,omitempty"`
}

// ResourceTransformation counts a resource as other ones.
type ResourceTransformation struct {
	// input is the name of the requested resource.
	Input corev1.ResourceName `json:"input"`

	// strategy: Retain (default) or Replace.
	Strategy *TransformationStrategy `json:"strategy,omitempty"`

	// multiplyBy is the resource whose requested amount multiplies the outputs, "" for none.
	MultiplyBy corev1.ResourceName `json:"multiplyBy,omitempty"`

	// outputs are what one unit of the input counts as. They may be empty with Replace: then the input is not counted.
	Outputs corev1.ResourceList `json:"outputs,omitempty"`
}

// QueueStatus configures how often the status of a queue is written.
type QueueStatus struct {
	// interval is the minimum time between writes of a queue's status; the first change after a longer pause is written
	// at once. Default 5s.
	Interval *metav1.Duration `json:"interval,omitempty"`
}

// BatchJob configures how batch/v1 Jobs are suspended until they are admitted, in addition to the
// MutatingAdmissionPolicy that does so in clusters that serve that kind.
type BatchJob struct {
	// webhook serves a mutating admission webhook that suspends Jobs with a queue at their creation. Default false.
	Webhook *bool `json:"webhook,omitempty"`
}

// DefaultQueueCapacity selects the source of the quota of the queue named default.
type DefaultQueueCapacity string

const (
	// CapacityNodes is the capacity of the present nodes that pods without tolerations can use.
	CapacityNodes DefaultQueueCapacity = "nodes"
	// CapacityUnlimited sets no limit: only the free capacity of nodes limits what runs.
	CapacityUnlimited DefaultQueueCapacity = "unlimited"
	// CapacityQuantities is the quota listed in quantities.
	CapacityQuantities DefaultQueueCapacity = "quantities"
)

// NodesOnDemand says whether nodes are provisioned for pending pods.
type NodesOnDemand string

const (
	// NodesOnDemandDetect detects a node autoscaler in the cluster.
	NodesOnDemandDetect NodesOnDemand = "Detect"
	// NodesOnDemandAlways assumes one, even if none is detected.
	NodesOnDemandAlways NodesOnDemand = "Always"
	// NodesOnDemandNever assumes none for the pods of the queue.
	NodesOnDemandNever NodesOnDemand = "Never"
)

// DefaultQueue configures the quota of the queue named default, as long as the operator manages that queue.
type DefaultQueue struct {
	// capacity: nodes (default), unlimited or quantities.
	Capacity *DefaultQueueCapacity `json:"capacity,omitempty"`

	// quantities is the quota if capacity is quantities. Resources that are not listed have none.
	Quantities corev1.ResourceList `json:"quantities,omitempty"`

	// nodesOnDemand: Detect (default), Always or Never. If nodes are provisioned on demand, a workload that no present
	// node could ever hold is admitted by quota alone, so that its pods trigger the autoscaler.
	NodesOnDemand *NodesOnDemand `json:"nodesOnDemand,omitempty"`
}

// NodeFailure configures when a node counts as lost, with the pods on it.
type NodeFailure struct {
	// notReadyGrace is how long a node may be not Ready before it counts as lost. For a silent node Kubernetes itself
	// has waited about 40 s before. A deleted node is lost at once. Default 5s.
	NotReadyGrace *metav1.Duration `json:"notReadyGrace,omitempty"`
}

// Gangs configures whether the pods that Muster creates, directly or through Jobs, belong to PodGroups of
// scheduling.k8s.io, so that kube-scheduler also binds all pods of a gang or none.
type Gangs struct {
	// native: Auto (default) if the cluster serves PodGroups and its pods have the field for them; Off.
	Native *NativeGangs `json:"native,omitempty"`
}

// ImmutableAction determines what happens to a change of the spec of a running LatticeJob.
type ImmutableAction string

const (
	// ImmutableWarn accepts the change with a warning and ignores it.
	ImmutableWarn ImmutableAction = "warn"
	// ImmutableDeny rejects it.
	ImmutableDeny ImmutableAction = "deny"
)

// GPUResources selects the resources by which LatticeJobs request GPUs.
type GPUResources string

const (
	// GPUResourcesAuto requests volcano.sh/vgpu-* if nodes offer them, otherwise nvidia.com/gpu.
	GPUResourcesAuto GPUResources = "auto"
	// GPUResourcesShared requests volcano.sh/vgpu-*.
	GPUResourcesShared GPUResources = "vgpu"
	// GPUResourcesWhole requests nvidia.com/gpu.
	GPUResourcesWhole GPUResources = "whole"
)

// LatticeJob configures what LatticeJobs are compiled to.
type LatticeJob struct {
	// immutable: warn (default) or deny.
	Immutable *ImmutableAction `json:"immutable,omitempty"`

	// gpus: auto (default), vgpu or whole.
	GPUs *GPUResources `json:"gpus,omitempty"`

	// gpuModels maps names of GPU models, in any case of letters, to values of the node label nvidia.com/gpu.product.
	// They take precedence over the built-in ones.
	GPUModels map[string]string `json:"gpuModels,omitempty"`

	// requireMesh makes jobs that need mesh members wait if the cluster does not serve those. Default false: they run
	// without.
	RequireMesh *bool `json:"requireMesh,omitempty"`

	// requireTracing does the same for TracingPolicies. Default false.
	RequireTracing *bool `json:"requireTracing,omitempty"`

	// spreadBy is the node label over whose values the pods of a task are spread. Default kubernetes.io/hostname.
	SpreadBy *string `json:"spreadBy,omitempty"`

	// cluster are the values of ${cluster.NAME} in templates.
	Cluster map[string]string `json:"cluster,omitempty"`
}

// VolcanoMode selects who runs Volcano Jobs.
type VolcanoMode string

const (
	// VolcanoAuto leaves them to Volcano if it has installed their CRD; otherwise Muster runs them.
	VolcanoAuto VolcanoMode = "auto"
	// VolcanoNative has Muster run them: Volcano must not be installed, or be switched off.
	VolcanoNative VolcanoMode = "native"
	// VolcanoExternal leaves them to Volcano, even if it is not installed yet.
	VolcanoExternal VolcanoMode = "external"
)

// NativeGangs selects when PodGroups are created.
type NativeGangs string

const (
	// NativeGangsAuto creates them if the cluster serves them.
	NativeGangsAuto NativeGangs = "Auto"
	// NativeGangsOff creates none.
	NativeGangsOff NativeGangs = "Off"
)

// Placement configures how pods that wait for a place by a scheduling gate are given one.
type Placement struct {
	// webhook serves a mutating admission webhook that gives pods their places at their creation, which saves a write
	// for each. Pods that it misses get their places shortly afterwards. Default false.
	Webhook *bool `json:"webhook,omitempty"`
}
