// Package muster has the names that Muster adds to the public APIs: labels,
// annotations and objects of its own making. All of them begin with muster.dev/
// or are listed here.
package muster

const (
	// DefaultQueue is the ClusterQueue that needs no set-up, its ResourceFlavor, and
	// the LocalQueue that takes in jobs without a queue once a person made one.
	DefaultQueue = "default"

	// MadeForLabel is on LocalQueues that Muster made, so that a job reaches a
	// ClusterQueue by its name; the value is that name. A job that names a queue
	// asked for it, so it never takes in those that name none.
	MadeForLabel = "muster.dev/made-for"

	// FollowsNodesLabel is on a ClusterQueue whose quota is kept at what the nodes
	// can give, and on the flavor and the topology that were made for it. Who removes it
	// has the queue to himself.
	FollowsNodesLabel = "muster.dev/follows-nodes"

	// NodesOnDemandAnnotation, "true" on a ClusterQueue, says that nodes come when pods
	// wait for them: what no present node could ever hold is admitted by quota alone.
	NodesOnDemandAnnotation = "muster.dev/nodes-on-demand"

	// UnlimitedAnnotation, "true" on a ClusterQueue, says that quota holds nobody back:
	// resources that it does not cover count nothing.
	UnlimitedAnnotation = "muster.dev/unlimited"

	// QueuePriorityAnnotation on a ClusterQueue, from 0 to 100, has those of higher ones
	// served first in their cohort, and lets them evict what those of lower ones borrow.
	QueuePriorityAnnotation = "muster.dev/queue-priority"

	// PreemptibleAnnotation, "false" on a ClusterQueue, has its workloads evicted for none
	// of another queue.
	PreemptibleAnnotation = "muster.dev/preemptible"

	// ClosedAnnotation, "true" on a ClusterQueue, has it admit nobody, as its stopPolicy
	// Hold would.
	ClosedAnnotation = "muster.dev/closed"

	// MaxDurationAnnotation on a ClusterQueue is how long a job may run at a time, as in
	// 1d12h. One that runs longer is paused, or its Workload is deactivated where its kind
	// knows no pause.
	MaxDurationAnnotation = "muster.dev/max-duration"

	// BeforeAdmissionAnnotation is on a batch Job that was started with what its
	// admission added, and holds what that replaced, as JSON. It goes when the Job is
	// as it was again.
	BeforeAdmissionAnnotation = "muster.dev/before-admission"

	// ServicePerReplicatedJobAnnotation, "true" on a JobSet, has a headless Service made
	// for each of its replicated jobs, named <jobset>-<replicated job>, beside the one of
	// its subdomain.
	ServicePerReplicatedJobAnnotation = "muster.dev/service-per-replicated-job"
	// SubdomainLabel is on the pods of a JobSet that have host names, and holds the
	// subdomain of these: what a Service selects that several JobSets share.
	SubdomainLabel = "muster.dev/subdomain"

	// ServedLabel, "true", is on definitions that are Muster's, among those of the same
	// names that others bring: it runs their objects itself.
	ServedLabel = "muster.dev/served"

	// InjectAgentAnnotation, "true" on a JobSet or on the template of one of its replicated
	// jobs, has muster-agent put round the command of the first container of the pods.
	InjectAgentAnnotation = "muster.dev/inject-agent"
	// AgentFrameworkAnnotation is on the pod set of a TrainingJob whose workers have muster-agent
	// round their command, from its admission on, and holds its framework. It is not on their pods.
	AgentFrameworkAnnotation = "muster.dev/agent-framework"
	// RendezvousLabel is on pods with an agent round their command, and holds the ID of
	// their job's rounds.
	RendezvousLabel = "muster.dev/rendezvous"
	// RendezvousSizeAnnotation is on those pods and says how many may be in a round, as 2:4.
	RendezvousSizeAnnotation = "muster.dev/rendezvous-size"
	// RendezvousIndexAnnotation is on those of them that no Job counts, and orders them.
	RendezvousIndexAnnotation = "muster.dev/rendezvous-index"
	// RendezvousJoinAnnotation is on pods of JobSets that restart in place, and says for
	// which wait of its agent the pod was given its attempt.
	RendezvousJoinAnnotation = "muster.dev/rendezvous-join"

	// RanksAnnotation is on pods with places whose Job has other ranks in the pod set than its
	// index says, since some that come before it had ended: the first and the last of them, as 4-7.
	RanksAnnotation = "muster.dev/ranks"

	// JobUIDLabel is on the pods and Services that Muster makes itself, and on the pods that Volcano makes for a LatticeJob, and
	// holds the UID of their job.
	JobUIDLabel = "muster.dev/job-uid"

	// RestartsAnnotation is on those pods and holds how often their replica had been
	// restarted when they were made.
	RestartsAnnotation = "muster.dev/restarts"

	// MinReplicasAnnotation and MaxReplicasAnnotation, on the pod template of a pod set,
	// are between how many pods it may run: as many as the queue can give, more or fewer
	// as others come and go. MaxReplicasAnnotation on a Workload that holds quota is how many
	// its job wants at most since it was made smaller: its pod sets stay as they were admitted.
	MinReplicasAnnotation = "muster.dev/min-replicas"
	MaxReplicasAnnotation = "muster.dev/max-replicas"
	// QueuedTimeAnnotation on a Workload is since when its job queues, in RFC 3339, where
	// that is not its creation.
	QueuedTimeAnnotation = "muster.dev/queued-time"
	// AskedAnnotation on the Workload of a job that queues anew where its pods are made to need
	// something else is a digest of what they needed when it was asked for, whatever policies of the
	// cluster have the Workload ask for.
	AskedAnnotation = "muster.dev/asked"

	// SpeedExponentAnnotation, beside MinReplicasAnnotation, says how much faster the job is
	// the more pods it has: n of them do n to the power of it of the work of one. Above 0, at
	// most 2; 0.85 without it.
	SpeedExponentAnnotation = "muster.dev/speed-exponent"

	// ResizedCondition is True on a Workload whose number of pods was changed while it ran.
	// Its transition time is that of the last change.
	ResizedCondition = "muster.dev/Resized"
	// GrownReason and ShrunkReason are its reasons.
	GrownReason  = "Grown"
	ShrunkReason = "Shrunk"

	// QuotaDiffersCondition is True on a ClusterQueue of which more or less is counted as held than its Workloads hold,
	// found twice a minute apart: a bug, and the message says of what.
	QuotaDiffersCondition = "muster.dev/QuotaDiffers"
	// QuotaDiffersReason is its reason.
	QuotaDiffersReason = "AuditFoundDifference"

	// UnheldCondition is True on a Workload that has no quota and whose job may have pods
	// all the same, because nobody held it when it was created. They are being stopped,
	// and count until they are gone.
	UnheldCondition = "muster.dev/Unheld"
	// UnheldReason is its reason.
	UnheldReason = "StartedUnheld"

	// CannotStartCondition is True on a JobSet of which no pods can be started as it is, and
	// says what has to change.
	CannotStartCondition = "muster.dev/CannotStart"
	// MayStartReason is its reason once that has changed.
	MayStartReason = "MayStart"
)

// Their messages.
const (
	MayStartMessage = "what kept pods from being started has changed"
	UnheldMessage   = "Pods were started before the job was held; they are being stopped, and count against the queue until then"
)
