package v1beta1

// Types of the conditions of a Workload.
const (
	// WorkloadQuotaReserved: the workload holds quota of a ClusterQueue.
	WorkloadQuotaReserved = "QuotaReserved"
	// WorkloadAdmitted: the workload holds quota, all its checks are ready, and it may run.
	WorkloadAdmitted = "Admitted"
	// WorkloadPodsReady: all its pods are ready or have succeeded.
	WorkloadPodsReady = "PodsReady"
	// WorkloadEvicted: its admission is being withdrawn.
	WorkloadEvicted = "Evicted"
	// WorkloadPreempted: it was evicted for another workload.
	WorkloadPreempted = "Preempted"
	// WorkloadRequeued: it was requeued after an eviction, or waits to be.
	WorkloadRequeued = "Requeued"
	// WorkloadFinished: its job has ended.
	WorkloadFinished = "Finished"
	// WorkloadDeactivationTarget: it is about to be deactivated. The condition is removed after that.
	WorkloadDeactivationTarget = "DeactivationTarget"
	// WorkloadBlockedOnPreemptionGates: it would have to preempt, and a gate is closed.
	WorkloadBlockedOnPreemptionGates = "BlockedOnPreemptionGates"
	// WorkloadWaitingForReplacementPods: a pod group waits for pods that replace failed ones.
	WorkloadWaitingForReplacementPods = "WaitingForReplacementPods"
)

// Reasons of QuotaReserved. The first is also the reason with which Evicted and Preempted turn False when quota is
// reserved again.
const (
	// WorkloadQuotaReservedReason: quota is reserved.
	WorkloadQuotaReservedReason = "QuotaReserved"
	// WorkloadInadmissible: the object, its queue or its namespace is invalid, so that waiting does not help.
	WorkloadInadmissible = "Inadmissible"
	// WorkloadPending is the older reason for any wait.
	WorkloadPending = "Pending"
	// WorkloadWaiting is the older reason for waiting until other workloads' pods are ready.
	WorkloadWaiting = "Waiting"
	// WorkloadNoMatchingFlavor: no flavor of the queue can take the pods.
	WorkloadNoMatchingFlavor = "NoMatchingFlavor"
	// WorkloadWaitingForQuota: quota that could hold the workload is in use.
	WorkloadWaitingForQuota = "WaitingForQuota"
	// WorkloadExceedsMaxQuota: the request exceeds the maximum quota of the queue.
	WorkloadExceedsMaxQuota = "ExceedsMaxQuota"
	// WorkloadTopologyPlacementFailed: no domain of the topology has enough free capacity.
	WorkloadTopologyPlacementFailed = "TopologyPlacementFailed"
	// WorkloadWaitingForPreemptedWorkloads: workloads preempted for it have not terminated yet.
	WorkloadWaitingForPreemptedWorkloads = "WaitingForPreemptedWorkloads"
	// WorkloadMisconfigured is a more specific form of Inadmissible: a queue or flavor is missing.
	WorkloadMisconfigured = "Misconfigured"
	// WorkloadSuspended is a more specific form of Inadmissible: a queue is inactive.
	WorkloadSuspended = "Suspended"
	// WorkloadPendingEvaluation: it has not been considered yet, or not since it was evicted.
	WorkloadPendingEvaluation = "PendingEvaluation"
	// WorkloadWaitingForPodsReady: admitted workloads must be ready first.
	WorkloadWaitingForPodsReady = "WaitingForPodsReady"
	// WorkloadAdmissionGated: an annotation blocks its admission.
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
	// WorkloadPendingDelayedTopologyRequests: places are not assigned yet.
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
	// WorkloadDeactivatedDueTo is the prefix of the reason if Muster itself set spec.active to false; it is followed by
	// a reason of DeactivationTarget, as in DeactivatedDueToRequeuingLimitExceeded.
	WorkloadDeactivatedDueTo = "DeactivatedDueTo"
	// WorkloadEvictedDueToNodeFailures: nodes failed, and their pods do not fit elsewhere.
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
	// WorkloadFinishedReasonOutOfSync: a prebuilt Workload does not match its job.
	WorkloadFinishedReasonOutOfSync = "OutOfSync"
	// WorkloadFinishedReasonOwnerNotFound: the job does not exist any more.
	WorkloadFinishedReasonOwnerNotFound = "OwnerNotFound"
	// WorkloadSliceReplaced: a larger slice has replaced it.
	WorkloadSliceReplaced = "WorkloadSliceReplaced"
	// WorkloadFinishedReasonFailedToStart: the additions of the checks conflict with the pods.
	WorkloadFinishedReasonFailedToStart = "FailedToStart"
)

// Reasons of DeactivationTarget, beside AdmissionCheck.
const (
	// WorkloadRequeuingLimitExceeded: it was requeued too often.
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
	// ClusterQueueActiveReasonMultipleMultiKueueAdmissionChecks: more than one check dispatches workloads to clusters.
	ClusterQueueActiveReasonMultipleMultiKueueAdmissionChecks = "MultipleMultiKueueAdmissionChecks"
	// ClusterQueueActiveReasonMultiKueueAdmissionCheckAppliedPerFlavor: such a check applies to some flavors only.
	ClusterQueueActiveReasonMultiKueueAdmissionCheckAppliedPerFlavor = "MultiKueueAdmissionCheckAppliedPerFlavor"
	// ClusterQueueActiveReasonMultiKueueWithProvisioningRequest: such a check is combined with one that provisions
	// nodes.
	ClusterQueueActiveReasonMultiKueueWithProvisioningRequest = "MultiKueueWithProvisioningRequest"
	// ClusterQueueActiveReasonCohortCycleDetected: the cohorts above it form a cycle.
	ClusterQueueActiveReasonCohortCycleDetected = "CohortCycleDetected"
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
