package v1beta1

// Types of the conditions of a Workload.
const (
	// WorkloadQuotaReserved: the workload holds quota of a ClusterQueue.
	WorkloadQuotaReserved = "QuotaReserved"
	// WorkloadAdmitted: the workload holds quota, all its checks are ready, and it may run.
	WorkloadAdmitted = "Admitted"
	// WorkloadPodsReady: all its pods are ready or have succeeded.
	WorkloadPodsReady = "PodsReady"
	// WorkloadEvicted: its admission is being taken back.
	WorkloadEvicted = "Evicted"
	// WorkloadPreempted: it was evicted for another workload.
	WorkloadPreempted = "Preempted"
	// WorkloadRequeued: it went back to the queue after an eviction, or waits to.
	WorkloadRequeued = "Requeued"
	// WorkloadFinished: its job has ended.
	WorkloadFinished = "Finished"
	// WorkloadDeactivationTarget: it is about to be deactivated. It goes once that is done.
	WorkloadDeactivationTarget = "DeactivationTarget"
	// WorkloadBlockedOnPreemptionGates: it would have to preempt and a gate is closed.
	WorkloadBlockedOnPreemptionGates = "BlockedOnPreemptionGates"
	// WorkloadWaitingForReplacementPods: a pod group waits for pods that replace failed ones.
	WorkloadWaitingForReplacementPods = "WaitingForReplacementPods"
)

// Reasons of QuotaReserved. The first is also the reason with which Evicted and Preempted turn False when quota is
// reserved again.
const (
	// WorkloadQuotaReservedReason: quota is reserved.
	WorkloadQuotaReservedReason = "QuotaReserved"
	// WorkloadInadmissible: the object, its queue or its namespace is at fault, and waiting will not help.
	WorkloadInadmissible = "Inadmissible"
	// WorkloadPending is the older word for any wait.
	WorkloadPending = "Pending"
	// WorkloadWaiting is the older word for the wait for ready pods of others.
	WorkloadWaiting = "Waiting"
	// WorkloadNoMatchingFlavor: no flavor of the queue can take the pods.
	WorkloadNoMatchingFlavor = "NoMatchingFlavor"
	// WorkloadWaitingForQuota: quota that could hold the workload is in use.
	WorkloadWaitingForQuota = "WaitingForQuota"
	// WorkloadExceedsMaxQuota: more is asked than the queue could ever give.
	WorkloadExceedsMaxQuota = "ExceedsMaxQuota"
	// WorkloadTopologyPlacementFailed: no domain of the topology has room.
	WorkloadTopologyPlacementFailed = "TopologyPlacementFailed"
	// WorkloadWaitingForPreemptedWorkloads: others were preempted for it and have not yet gone.
	WorkloadWaitingForPreemptedWorkloads = "WaitingForPreemptedWorkloads"
	// WorkloadMisconfigured is the public API's finer word for Inadmissible: a queue or flavor is missing.
	WorkloadMisconfigured = "Misconfigured"
	// WorkloadSuspended is the public API's finer word for Inadmissible: a queue is inactive.
	WorkloadSuspended = "Suspended"
	// WorkloadPendingEvaluation: it has not been tried yet, or not since it was evicted.
	WorkloadPendingEvaluation = "PendingEvaluation"
	// WorkloadWaitingForPodsReady: admitted workloads must be ready first.
	WorkloadWaitingForPodsReady = "WaitingForPodsReady"
	// WorkloadAdmissionGated: an annotation holds it back.
	WorkloadAdmissionGated = "AdmissionGated"
	// WorkloadOnHold: its queue is stopped.
	WorkloadOnHold = "OnHold"
)

// Reasons of Admitted.
const (
	// WorkloadAdmittedReason: the workload may run.
	WorkloadAdmittedReason = "Admitted"
	// WorkloadNoReservation: it holds no quota.
	WorkloadNoReservation = "NoReservation"
	// WorkloadUnsatisfiedAdmissionChecks: a check is not ready.
	WorkloadUnsatisfiedAdmissionChecks = "UnsatisfiedAdmissionChecks"
	// WorkloadPendingDelayedTopologyRequests: places are still to be given.
	WorkloadPendingDelayedTopologyRequests = "PendingDelayedTopologyRequests"
)

// Reasons of PodsReady.
const (
	// WorkloadWaitForStart: not all pods have been ready since the admission.
	WorkloadWaitForStart = "WaitForStart"
	// WorkloadWaitForRecovery: all were ready, and one has failed.
	WorkloadWaitForRecovery = "WaitForRecovery"
	// WorkloadStarted: all are ready.
	WorkloadStarted = "Started"
	// WorkloadRecovered: all are ready again.
	WorkloadRecovered = "Recovered"
)

// Reasons of Evicted. Those of a queue that was stopped, of a check and of a deactivation are reasons of Requeued too.
const (
	// WorkloadEvictedByPreemption: another workload needs the quota.
	WorkloadEvictedByPreemption = "Preempted"
	// WorkloadEvictedByPodsReadyTimeout: pods were not ready in time.
	WorkloadEvictedByPodsReadyTimeout = "PodsReadyTimeout"
	// WorkloadEvictedByAdmissionCheck: a check is no longer ready.
	WorkloadEvictedByAdmissionCheck = "AdmissionCheck"
	// WorkloadEvictedByClusterQueueStopped: its ClusterQueue was stopped.
	WorkloadEvictedByClusterQueueStopped = "ClusterQueueStopped"
	// WorkloadEvictedByLocalQueueStopped: its LocalQueue was stopped.
	WorkloadEvictedByLocalQueueStopped = "LocalQueueStopped"
	// WorkloadDeactivated: spec.active was set to false.
	WorkloadDeactivated = "Deactivated"
	// WorkloadDeactivatedDueTo begins the reason where Muster itself set spec.active to false; a reason of
	// DeactivationTarget ends it, as in DeactivatedDueToRequeuingLimitExceeded.
	WorkloadDeactivatedDueTo = "DeactivatedDueTo"
	// WorkloadEvictedDueToNodeFailures: nodes failed and no others could take their pods.
	WorkloadEvictedDueToNodeFailures = "NodeFailures"
	// WorkloadEvictedOnManagerCluster: the cluster that sent it here evicted it.
	WorkloadEvictedOnManagerCluster = "EvictedOnManagerCluster"
	// WorkloadEvictedDueToFlavorMigration: it moves to a better flavor.
	WorkloadEvictedDueToFlavorMigration = "FlavorMigration"
)

// Reasons of Preempted.
const (
	// InClusterQueueReason: for a workload of the same ClusterQueue.
	InClusterQueueReason = "InClusterQueue"
	// InCohortReclamationReason: to give back borrowed quota.
	InCohortReclamationReason = "InCohortReclamation"
	// InCohortFairSharingReason: for a fairer share within the cohort.
	InCohortFairSharingReason = "InCohortFairSharing"
	// InCohortReclaimWhileBorrowingReason: for a workload of higher priority that itself borrows.
	InCohortReclaimWhileBorrowingReason = "InCohortReclaimWhileBorrowing"
)

// Reasons of Requeued, beside those of the eviction.
const (
	// WorkloadReactivated: spec.active is true again.
	WorkloadReactivated = "Reactivated"
	// WorkloadBackoffFinished: the back-off is over.
	WorkloadBackoffFinished = "BackoffFinished"
	// WorkloadClusterQueueRestarted: its ClusterQueue admits again.
	WorkloadClusterQueueRestarted = "ClusterQueueRestarted"
	// WorkloadLocalQueueRestarted: its LocalQueue admits again.
	WorkloadLocalQueueRestarted = "LocalQueueRestarted"
)

// Reasons of Finished.
const (
	// WorkloadFinishedReasonSucceeded: the job succeeded.
	WorkloadFinishedReasonSucceeded = "Succeeded"
	// WorkloadFinishedReasonFailed: the job failed.
	WorkloadFinishedReasonFailed = "Failed"
	// WorkloadFinishedReasonOutOfSync: a Workload that somebody made for a job does not describe it.
	WorkloadFinishedReasonOutOfSync = "OutOfSync"
	// WorkloadFinishedReasonOwnerNotFound: the job is gone.
	WorkloadFinishedReasonOwnerNotFound = "OwnerNotFound"
	// WorkloadSliceReplaced: a larger slice has taken over.
	WorkloadSliceReplaced = "WorkloadSliceReplaced"
	// WorkloadFinishedReasonFailedToStart: what the checks added cannot be put into the pods.
	WorkloadFinishedReasonFailedToStart = "FailedToStart"
)

// Reasons of DeactivationTarget, beside AdmissionCheck.
const (
	// WorkloadRequeuingLimitExceeded: it went back to the queue too often.
	WorkloadRequeuingLimitExceeded = "RequeuingLimitExceeded"
	// WorkloadMaximumExecutionTimeExceeded: it ran longer than it may.
	WorkloadMaximumExecutionTimeExceeded = "MaximumExecutionTimeExceeded"
)

// PreemptionGatedReason is the reason of BlockedOnPreemptionGates.
const PreemptionGatedReason = "PreemptionGated"

// Conditions of queues, and the reasons of ClusterQueueActive.
const (
	// ClusterQueueActive: the ClusterQueue admits.
	ClusterQueueActive = "Active"
	// LocalQueueActive: the LocalQueue and the ClusterQueue behind it admit.
	LocalQueueActive = "Active"

	// ClusterQueueActiveReasonReady: it can admit.
	ClusterQueueActiveReasonReady = "Ready"
	// ClusterQueueActiveReasonStopped: its stop policy is not None.
	ClusterQueueActiveReasonStopped = "Stopped"
	// ClusterQueueActiveReasonTerminating: it is being deleted.
	ClusterQueueActiveReasonTerminating = "Terminating"
	// ClusterQueueActiveReasonFlavorNotFound: a flavor does not exist.
	ClusterQueueActiveReasonFlavorNotFound = "FlavorNotFound"
	// ClusterQueueActiveReasonTopologyNotFound: the topology of a flavor does not exist.
	ClusterQueueActiveReasonTopologyNotFound = "TopologyNotFound"
	// ClusterQueueActiveReasonAdmissionCheckNotFound: a check does not exist.
	ClusterQueueActiveReasonAdmissionCheckNotFound = "AdmissionCheckNotFound"
	// ClusterQueueActiveReasonAdmissionCheckInactive: a check cannot be used.
	ClusterQueueActiveReasonAdmissionCheckInactive = "AdmissionCheckInactive"
	// ClusterQueueActiveReasonMultipleMultiKueueAdmissionChecks: more than one check sends workloads to clusters.
	ClusterQueueActiveReasonMultipleMultiKueueAdmissionChecks = "MultipleMultiKueueAdmissionChecks"
	// ClusterQueueActiveReasonMultiKueueAdmissionCheckAppliedPerFlavor: such a check applies to some flavors only.
	ClusterQueueActiveReasonMultiKueueAdmissionCheckAppliedPerFlavor = "MultiKueueAdmissionCheckAppliedPerFlavor"
	// ClusterQueueActiveReasonMultiKueueWithProvisioningRequest: such a check stands beside one that makes nodes.
	ClusterQueueActiveReasonMultiKueueWithProvisioningRequest = "MultiKueueWithProvisioningRequest"
	// ClusterQueueActiveReasonUnknown: none of the above.
	ClusterQueueActiveReasonUnknown = "Unknown"
)

// Reasons of LocalQueueActive, beside Ready and Stopped.
const (
	// LocalQueueActiveReasonClusterQueueDoesNotExist: there is no such ClusterQueue.
	LocalQueueActiveReasonClusterQueueDoesNotExist = "ClusterQueueDoesNotExist"
	// LocalQueueActiveReasonClusterQueueIsInactive: the ClusterQueue does not admit.
	LocalQueueActiveReasonClusterQueueIsInactive = "ClusterQueueIsInactive"
)
