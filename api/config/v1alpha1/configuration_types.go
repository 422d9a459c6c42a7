package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Kind of the one object of this group, and its apiVersion.
const (
	ConfigurationKind       = "Configuration"
	ConfigurationAPIVersion = "config.muster.dev/v1alpha1"
)

// Configuration is what an administrator may decide about the operator. Everything in it is optional; what is absent has
// the default given with the field. After internal/config has read one, no pointer in it is nil unless its doc says what
// nil means.
type Configuration struct {
	metav1.TypeMeta `json:",inline"`

	// waitForPodsReady takes quota back from workloads whose pods do not become ready.
	WaitForPodsReady *WaitForPodsReady `json:"waitForPodsReady,omitempty"`

	// objectRetentionPolicies delete what is over.
	ObjectRetentionPolicies *ObjectRetentionPolicies `json:"objectRetentionPolicies,omitempty"`

	// fairSharing, where it is set, orders and preempts across queues by their share of the cohort. Nil: off. The enable of
	// Kueue's configuration is taken too: false is nil.
	FairSharing *FairSharing `json:"fairSharing,omitempty"`

	// admissionFairSharing, where it is set, orders the workloads of a ClusterQueue whose admissionScope asks for it by
	// what their LocalQueues have used of late. Nil: off.
	AdmissionFairSharing *AdmissionFairSharing `json:"admissionFairSharing,omitempty"`

	// resources says how requests are counted.
	Resources *Resources `json:"resources,omitempty"`

	// queueStatus says how often the status of a queue is written.
	QueueStatus *QueueStatus `json:"queueStatus,omitempty"`

	// batchJob says how batch/v1 Jobs are held until they are admitted.
	BatchJob *BatchJob `json:"batchJob,omitempty"`

	// defaultQueue says how much the queue named default gives.
	DefaultQueue *DefaultQueue `json:"defaultQueue,omitempty"`

	// nodeFailure says when a node counts as lost.
	NodeFailure *NodeFailure `json:"nodeFailure,omitempty"`

	// gangs says whether kube-scheduler is to know gangs too.
	Gangs *Gangs `json:"gangs,omitempty"`

	// volcano: who runs the Jobs of batch.volcano.sh: auto (default): Volcano where it has brought their definition, else
	// Muster; native: Muster; external: Volcano.
	//
	// +optional
	Volcano *VolcanoMode `json:"volcano,omitempty"`

	// latticejob says what LatticeJobs are compiled to.
	LatticeJob *LatticeJob `json:"latticejob,omitempty"`

	// placement says how pods are given their places.
	Placement *Placement `json:"placement,omitempty"`

	// trainingJob says under which group TrainingJobs are served, and what becomes of those whose pods are stuck.
	TrainingJob *TrainingJob `json:"trainingJob,omitempty"`

	// elasticity says when jobs grow that can run at several sizes.
	Elasticity *Elasticity `json:"elasticity,omitempty"`
}

// Elasticity is about jobs that can run at several sizes. They shrink at once for those who need the room.
type Elasticity struct {
	// growAfter is how long a job that began or was resized does not grow. Default 30s.
	GrowAfter *metav1.Duration `json:"growAfter,omitempty"`

	// resizeCost is what a resize loses of a job's time. A job does not grow before it has run for so long that, would it
	// run as long again, more pods would do more in spite of it. Default 30s.
	ResizeCost *metav1.Duration `json:"resizeCost,omitempty"`
}

// TrainingJob is about the TrainingJob API.
type TrainingJob struct {
	// group of the API. Default breezeml.ai. With --install-apis it is installed under this name.
	Group *string `json:"group,omitempty"`

	// pendingTimeout is how long pods of a TrainingJob that runs may be pending before it gives up its place. Default 5m.
	PendingTimeout *metav1.Duration `json:"pendingTimeout,omitempty"`

	// cooldown is how much later it queues again. Default 3h.
	Cooldown *metav1.Duration `json:"cooldown,omitempty"`
}

// WaitForPodsReady is the part of all or nothing that quota alone cannot give: a workload whose pods are not all ready in
// time is evicted and tried again later.
type WaitForPodsReady struct {
	// enable, default true.
	Enable *bool `json:"enable,omitempty"`

	// timeout is how long after its admission all pods of a workload must be ready. Default 30m.
	Timeout *metav1.Duration `json:"timeout,omitempty"`

	// recoveryTimeout is how long a pod that failed after that may be missing. Default: as timeout.
	RecoveryTimeout *metav1.Duration `json:"recoveryTimeout,omitempty"`

	// blockAdmission holds back further admissions while an admitted workload is not ready: None, Queue (those of the same
	// ClusterQueue) or All. Default None. The booleans of Kueue's configuration are taken too: true is All, false None.
	BlockAdmission *BlockAdmission `json:"blockAdmission,omitempty"`

	// requeuingStrategy says when an evicted workload is tried again.
	RequeuingStrategy *RequeuingStrategy `json:"requeuingStrategy,omitempty"`
}

// BlockAdmission says whose admissions wait for ready pods.
type BlockAdmission string

const (
	// BlockNone holds nobody back.
	BlockNone BlockAdmission = "None"
	// BlockQueue holds back the ClusterQueue of the workload that is not ready.
	BlockQueue BlockAdmission = "Queue"
	// BlockAll holds back every ClusterQueue.
	BlockAll BlockAdmission = "All"
)

// RequeuingTimestamp says where a workload stands in its queue after an eviction for want of ready pods.
type RequeuingTimestamp string

const (
	// EvictionTimestamp puts it behind those that wait already.
	EvictionTimestamp RequeuingTimestamp = "Eviction"
	// CreationTimestamp puts it back where it was.
	CreationTimestamp RequeuingTimestamp = "Creation"
)

// RequeuingStrategy is the back-off after evictions for want of ready pods.
type RequeuingStrategy struct {
	// timestamp by which it is ordered: Eviction (default) or Creation.
	Timestamp *RequeuingTimestamp `json:"timestamp,omitempty"`

	// backoffLimitCount is how often it is tried again before it is deactivated. Nil: without end.
	BackoffLimitCount *int32 `json:"backoffLimitCount,omitempty"`

	// backoffBaseSeconds is the first wait; each one after it is twice as long. Default 60.
	BackoffBaseSeconds *int32 `json:"backoffBaseSeconds,omitempty"`

	// backoffMaxSeconds bounds the wait. Default 3600.
	BackoffMaxSeconds *int32 `json:"backoffMaxSeconds,omitempty"`
}

// ObjectRetentionPolicies say what is deleted once it is over.
type ObjectRetentionPolicies struct {
	// workloads that are over.
	Workloads *WorkloadRetentionPolicy `json:"workloads,omitempty"`
}

// WorkloadRetentionPolicy says when Workloads are deleted.
type WorkloadRetentionPolicy struct {
	// afterFinished is how long a finished Workload is kept. Nil: for as long as its job.
	AfterFinished *metav1.Duration `json:"afterFinished,omitempty"`

	// afterDeactivatedByMuster is how long a Workload is kept that was deactivated by the operator, not by a person; its
	// job is deleted with it. Nil: for ever. Kueue's name, afterDeactivatedByKueue, is taken too.
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

// FairSharing compares queues by dominant resource share.
type FairSharing struct {
	// preemptionStrategies in the order in which they are tried. Default: LessThanOrEqualToFinalShare, then
	// LessThanInitialShare. One of them alone is taken too, the other order is not.
	PreemptionStrategies []PreemptionStrategy `json:"preemptionStrategies,omitempty"`
}

// AdmissionFairSharing compares LocalQueues by their use of late.
type AdmissionFairSharing struct {
	// usageHalfLifeTime is after how long past use counts half. Default 0: only present use counts.
	UsageHalfLifeTime metav1.Duration `json:"usageHalfLifeTime"`

	// usageSamplingInterval is how often use is sampled. Default 5m.
	UsageSamplingInterval *metav1.Duration `json:"usageSamplingInterval,omitempty"`

	// resourceWeights say how much a unit of a resource counts, 0 for not at all. What is not listed counts 1.
	ResourceWeights map[corev1.ResourceName]float64 `json:"resourceWeights,omitempty"`
}

// QuotaCheckStrategy says what happens with a requested resource that a ClusterQueue does not cover.
type QuotaCheckStrategy string

const (
	// BlockUndeclared keeps the workload waiting, with the reason.
	BlockUndeclared QuotaCheckStrategy = "BlockUndeclared"
	// IgnoreUndeclared counts nothing for the resource.
	IgnoreUndeclared QuotaCheckStrategy = "IgnoreUndeclared"
)

// TransformationStrategy says whether the input of a transformation still counts.
type TransformationStrategy string

const (
	// Retain counts the input beside the outputs.
	Retain TransformationStrategy = "Retain"
	// Replace counts the outputs alone.
	Replace TransformationStrategy = "Replace"
)

// Resources says how requests are counted.
type Resources struct {
	// excludeResourcePrefixes are prefixes of resource names that are not counted.
	ExcludeResourcePrefixes []string `json:"excludeResourcePrefixes,omitempty"`

	// transformations count one resource as others. Each input at most once.
	Transformations []ResourceTransformation `json:"transformations,omitempty"`

	// quotaCheckStrategy: BlockUndeclared (default) or IgnoreUndeclared.
	QuotaCheckStrategy *QuotaCheckStrategy `json:"quotaCheckStrategy,omitempty"`
}

// ResourceTransformation counts one resource as others.
type ResourceTransformation struct {
	// input is the name of the requested resource.
	Input corev1.ResourceName `json:"input"`

	// strategy: Retain (default) or Replace.
	Strategy *TransformationStrategy `json:"strategy,omitempty"`

	// multiplyBy names a resource by whose requested amount the outputs are multiplied, "" for none.
	MultiplyBy corev1.ResourceName `json:"multiplyBy,omitempty"`

	// outputs are what one unit of the input counts as. With Replace they may be absent: then the input is not counted.
	Outputs corev1.ResourceList `json:"outputs,omitempty"`
}

// QueueStatus says how often the status of a queue is written.
type QueueStatus struct {
	// interval is how long the status of a queue is left alone after a write; a queue that was quiet for as long is written
	// at once. Default 5s.
	Interval *metav1.Duration `json:"interval,omitempty"`
}

// BatchJob says how batch/v1 Jobs are held until they are admitted, beside the MutatingAdmissionPolicy that does so where
// the cluster serves that kind.
type BatchJob struct {
	// webhook serves a mutating admission webhook that suspends Jobs with a queue when they are created. Default false.
	Webhook *bool `json:"webhook,omitempty"`
}

// DefaultQueueCapacity says where the quota of the queue named default comes from.
type DefaultQueueCapacity string

const (
	// CapacityNodes is what the nodes can give that pods without tolerations can use, as they come and go.
	CapacityNodes DefaultQueueCapacity = "nodes"
	// CapacityUnlimited leaves it to the nodes' free room alone what runs.
	CapacityUnlimited DefaultQueueCapacity = "unlimited"
	// CapacityQuantities is what quantities lists.
	CapacityQuantities DefaultQueueCapacity = "quantities"
)

// NodesOnDemand says whether nodes come when pods wait for them.
type NodesOnDemand string

const (
	// NodesOnDemandDetect looks for a node autoscaler in the cluster.
	NodesOnDemandDetect NodesOnDemand = "Detect"
	// NodesOnDemandAlways says that there is one, though none can be seen.
	NodesOnDemandAlways NodesOnDemand = "Always"
	// NodesOnDemandNever says that there is none for the pods of the queue.
	NodesOnDemandNever NodesOnDemand = "Never"
)

// DefaultQueue is how much the queue named default gives, as long as the operator keeps it.
type DefaultQueue struct {
	// capacity: nodes (default), unlimited or quantities.
	Capacity *DefaultQueueCapacity `json:"capacity,omitempty"`

	// quantities are the quota where capacity is quantities. What is not listed is not given.
	Quantities corev1.ResourceList `json:"quantities,omitempty"`

	// nodesOnDemand: Detect (default), Always or Never. Where nodes come on demand, a workload that no present node could
	// ever hold is admitted by quota alone, so that its pods make the autoscaler act.
	NodesOnDemand *NodesOnDemand `json:"nodesOnDemand,omitempty"`
}

// NodeFailure says when a node counts as lost, with the pods on it.
type NodeFailure struct {
	// notReadyGrace is for how long a node may be not ready before it counts as lost. Kubernetes has waited about 40 s by
	// then for a node that is silent. A node that is deleted is lost at once. Default 5s.
	NotReadyGrace *metav1.Duration `json:"notReadyGrace,omitempty"`
}

// Gangs says whether the pods that Muster makes, and those of the Jobs that it makes, belong to PodGroups of
// scheduling.k8s.io, so that kube-scheduler too binds all of a gang or none.
type Gangs struct {
	// native: Auto (default) where the cluster serves PodGroups and its pods keep them; Off.
	Native *NativeGangs `json:"native,omitempty"`
}

// ImmutableAction is what happens to a change of the spec of a LatticeJob that runs.
type ImmutableAction string

const (
	// ImmutableWarn takes the change with a warning, and ignores it.
	ImmutableWarn ImmutableAction = "warn"
	// ImmutableDeny refuses it.
	ImmutableDeny ImmutableAction = "deny"
)

// GPUResources says in which resources LatticeJobs ask for GPUs.
type GPUResources string

const (
	// GPUResourcesAuto takes volcano.sh/vgpu-* where nodes offer them, else nvidia.com/gpu.
	GPUResourcesAuto GPUResources = "auto"
	// GPUResourcesShared takes volcano.sh/vgpu-*.
	GPUResourcesShared GPUResources = "vgpu"
	// GPUResourcesWhole takes nvidia.com/gpu.
	GPUResourcesWhole GPUResources = "whole"
)

// LatticeJob says what LatticeJobs are compiled to.
type LatticeJob struct {
	// immutable: warn (default) or deny.
	Immutable *ImmutableAction `json:"immutable,omitempty"`

	// gpus: auto (default), vgpu or whole.
	GPUs *GPUResources `json:"gpus,omitempty"`

	// gpuModels are values of the node label nvidia.com/gpu.product by the name of a model, in any case of letters. They go
	// before those that are known.
	GPUModels map[string]string `json:"gpuModels,omitempty"`

	// requireMesh has jobs that need mesh members wait where the cluster does not serve them. Default false: they do without.
	RequireMesh *bool `json:"requireMesh,omitempty"`

	// requireTracing is the same for TracingPolicies. Default false.
	RequireTracing *bool `json:"requireTracing,omitempty"`

	// spreadBy is the node label by whose values the pods of a task are spread. Default kubernetes.io/hostname.
	SpreadBy *string `json:"spreadBy,omitempty"`

	// cluster are the values of ${cluster.NAME} in templates.
	Cluster map[string]string `json:"cluster,omitempty"`
}

// VolcanoMode says who runs Volcano Jobs.
type VolcanoMode string

const (
	// VolcanoAuto leaves them to Volcano where it has brought their definition, and runs them elsewhere.
	VolcanoAuto VolcanoMode = "auto"
	// VolcanoNative has Muster run them: Volcano must not be there, or must be off.
	VolcanoNative VolcanoMode = "native"
	// VolcanoExternal leaves them to Volcano, be it there yet or not.
	VolcanoExternal VolcanoMode = "external"
)

// NativeGangs says when PodGroups are made.
type NativeGangs string

const (
	// NativeGangsAuto makes them where the cluster has them.
	NativeGangsAuto NativeGangs = "Auto"
	// NativeGangsOff makes none.
	NativeGangsOff NativeGangs = "Off"
)

// Placement says how pods are given their places that wait for one by a scheduling gate.
type Placement struct {
	// webhook serves a mutating admission webhook that gives pods their places when they are created, which saves a write
	// for each. What it does not do is done a moment later all the same. Default false.
	Webhook *bool `json:"webhook,omitempty"`
}
