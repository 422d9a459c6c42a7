// Package muster has the names that Muster adds to the public APIs: labels, annotations, conditions, and names of
// objects that it creates. All of them begin with muster.dev/ or are listed here.
package muster

const (
	// DefaultQueue is the name of the ClusterQueue that needs no set-up, and of its ResourceFlavor. It is also the name
	// of the LocalQueue that, once a user has created it, queues the jobs of its namespace that name no queue.
	DefaultQueue = "default"

	// DefaultTopology is the name of the Topology of the ResourceFlavor default. It is not default: Kueue's own examples
	// give that name to a topology of blocks and racks, and few nodes have their labels.
	DefaultTopology = "muster-nodes"

	// MadeForLabel is on LocalQueues that Muster created so that a job can name a ClusterQueue directly; the value is
	// that ClusterQueue's name. Unlike the LocalQueue default of a user, such a LocalQueue never queues jobs that name
	// no queue.
	MadeForLabel = "muster.dev/made-for"

	// FollowsNodesLabel is on a ClusterQueue whose quota Muster keeps equal to what the nodes can give, and on the
	// flavor and topology made for it. A user who removes the label takes over the object.
	FollowsNodesLabel = "muster.dev/follows-nodes"

	// NodesOnDemandAnnotation, "true" on a ClusterQueue, says that nodes are provisioned for pending pods: a workload
	// that no existing node could ever hold is admitted by quota alone.
	NodesOnDemandAnnotation = "muster.dev/nodes-on-demand"

	// UnlimitedAnnotation, "true" on a ClusterQueue, says that its quota limits nothing: resources that it does not
	// cover are not counted.
	UnlimitedAnnotation = "muster.dev/unlimited"

	// QueuePriorityAnnotation on a ClusterQueue, from 0 to 100: in a cohort, workloads of queues with higher values are
	// served first, and may preempt what workloads of queues with lower values borrow.
	QueuePriorityAnnotation = "muster.dev/queue-priority"

	// PreemptibleAnnotation, "false" on a ClusterQueue, protects its workloads from preemption by workloads of other
	// queues.
	PreemptibleAnnotation = "muster.dev/preemptible"

	// ClosedAnnotation, "true" on a ClusterQueue, stops admission, as the stopPolicy Hold would.
	ClosedAnnotation = "muster.dev/closed"

	// MaxDurationAnnotation on a ClusterQueue or a LocalQueue limits how long a job may run, such as 1d12h; the smaller
	// of the two counts. A job that reaches it is paused, or its Workload is deactivated if jobs of its kind cannot be
	// paused.
	MaxDurationAnnotation = "muster.dev/max-duration"
	// DefaultDurationAnnotation on a ClusterQueue or a LocalQueue is how long a job takes of which nothing else is known,
	// such as 2h. It plans starts, and stops no job.
	DefaultDurationAnnotation = "muster.dev/default-duration"
	// BackfillAnnotation on a ClusterQueue with the strategy BestEffortFIFO, "true" or "false", says whether the start of
	// its first job that does not fit is planned, and jobs after it pass only if they do not delay that start.
	BackfillAnnotation = "muster.dev/backfill"
	// ExpectedDurationAnnotation on a job, or on a Workload that is made by hand, is how long the job expects to take, a
	// Go duration such as 1h30m. It plans starts, and stops no job.
	ExpectedDurationAnnotation = "muster.dev/expected-duration"
	// ExpectedEndAnnotation is on the Workload of a running job that reports its progress, and says when the job expects
	// to end, as in RFC 3339. Only the operator may set it.
	ExpectedEndAnnotation = "muster.dev/expected-end"
	// ReportedProgressAnnotation is beside it if the job reports a percentage, and says how much is done, and when that
	// was, such as "40% at 2026-11-30T14:00:00Z". Only the operator may set it.
	ReportedProgressAnnotation = "muster.dev/reported-progress"
	// JobLimitAnnotation is on the Workload of a job whose own API stops it after some time, such as a batch Job with
	// activeDeadlineSeconds, and says after how long, a Go duration. Only the operator may set it.
	JobLimitAnnotation = "muster.dev/job-limit"
	// ProgressAnnotation, "true" on a pod template, lets the pods report the progress of their job to Muster. Pods with an
	// agent may report without it, unless it is "false".
	ProgressAnnotation = "muster.dev/progress"
	// ProgressAuthorityAnnotation is on pods that may report, and holds the certificates that they must trust, as PEM. A
	// volume of the pod shows it as a file.
	ProgressAuthorityAnnotation = "muster.dev/progress-authority"
	// ProgressURLAnnotation is on pods of batch Jobs that may report, and holds where they report.
	ProgressURLAnnotation = "muster.dev/progress-url"

	// BeforeAdmissionAnnotation is on a batch Job that was started with changes from its admission, and holds, as JSON,
	// what they replaced, and of an elastic Job the size that its queue chose. It is removed when the Job is restored.
	BeforeAdmissionAnnotation = "muster.dev/before-admission"
	// AskedPodsAnnotation is on a batch Job that was started, and says how many pods it asked for at a time when it was
	// given its quota.
	AskedPodsAnnotation = "muster.dev/asked-pods"
	// GrantedPodsAnnotation is on a batch Job that was started, and says for how many pods it has quota now. While it
	// runs, users cannot give it more.
	GrantedPodsAnnotation = "muster.dev/granted-pods"
	// WantedPodsAnnotation is on an elastic batch Job that was started, and says how many pods its user wants. The
	// admission policy muster-job-size-limit writes it when it puts a larger size back.
	WantedPodsAnnotation = "muster.dev/wanted-pods"

	// QueuedAnnotation is on a batch Job and says whether it is queued, by one of the values below. Users cannot change
	// it: labels, owner references and the LocalQueue default, which they can change, decide only once.
	QueuedAnnotation = "muster.dev/queued"
	// QueuedItself marks a Job that queues for itself, whatever owners it names. Its queue alone starts it.
	QueuedItself = "true"
	// QueuedByOwner marks a Job that the operator created for a queued job, which queues for it.
	QueuedByOwner = "by-owner"
	// NotQueued marks a Job that does not queue, and is none of the jobs of the owner that it names.
	NotQueued = "false"

	// RestartWholeAnnotation, "true" on a batch Job or a JobSet, says that the job is of no use in part: if it was partly
	// done when it lost its quota, all of it is run again.
	RestartWholeAnnotation = "muster.dev/restart-whole"

	// ServicePerReplicatedJobAnnotation, "true" on a JobSet, creates a headless Service for each of its replicated
	// jobs, named <jobset>-<replicated job>, in addition to that of its subdomain.
	ServicePerReplicatedJobAnnotation = "muster.dev/service-per-replicated-job"
	// SubdomainLabel is on the pods of a JobSet that have host names, and holds their subdomain: a Service that several
	// JobSets share selects by it.
	SubdomainLabel = "muster.dev/subdomain"

	// ServedLabel, "true", marks the CRDs installed by Muster, since other products install CRDs of the same names:
	// Muster runs the objects of these kinds itself.
	ServedLabel = "muster.dev/served"

	// InjectAgentAnnotation, "true" on a JobSet or on the template of one of its replicated jobs, wraps the command of
	// the first container of the pods in muster-agent.
	InjectAgentAnnotation = "muster.dev/inject-agent"
	// AgentFrameworkAnnotation is set, from its admission on, on the pod set of a TrainingJob whose workers' command is
	// wrapped in muster-agent, and holds the job's framework. It is not on the pods.
	AgentFrameworkAnnotation = "muster.dev/agent-framework"
	// RendezvousLabel is on pods whose command is wrapped in an agent, and holds the ID of their job's rounds.
	RendezvousLabel = "muster.dev/rendezvous"
	// RendezvousSizeAnnotation is on those pods and holds the range of the size of a round, as 2:4.
	RendezvousSizeAnnotation = "muster.dev/rendezvous-size"
	// RendezvousIndexAnnotation is on those of them that have no completion index of a Job, and orders them.
	RendezvousIndexAnnotation = "muster.dev/rendezvous-index"
	// RendezvousJoinAnnotation is on pods of JobSets that restart in place, and identifies the request of the agent for
	// which the pod was given its attempt.
	RendezvousJoinAnnotation = "muster.dev/rendezvous-join"

	// AgentReport begins the line that an agent writes to the termination message of its container if the command has
	// failed by SIGKILL or SIGTERM too often: without it, a container with such an exit code was killed from outside.
	AgentReport = "muster-agent: the command failed"
	// AgentReportVariable tells the agent the path of the termination message, if that is not the usual one.
	AgentReportVariable = "MUSTER_TERMINATION_MESSAGE"

	// RanksAnnotation is on pods with places whose Job has other ranks in the pod set than its index implies, because
	// pods before it had ended: the first and the last rank, as 4-7.
	RanksAnnotation = "muster.dev/ranks"

	// JobUIDLabel is on the pods and Services that Muster creates itself, and on the pods that Volcano creates for a
	// LatticeJob, and holds the UID of their job.
	JobUIDLabel = "muster.dev/job-uid"

	// RestartsAnnotation is on those pods and holds how often their replica had been restarted when they were created.
	RestartsAnnotation = "muster.dev/restarts"

	// MinReplicasAnnotation and MaxReplicasAnnotation, on the pod template of a pod set, are the range of its number of
	// pods: it runs as many as the queue can give, and is resized as that changes. MaxReplicasAnnotation on a Workload
	// that holds quota is the maximum that its job wants since it was made smaller: the pod sets stay as they were
	// admitted.
	MinReplicasAnnotation = "muster.dev/min-replicas"
	MaxReplicasAnnotation = "muster.dev/max-replicas"
	// MinPodsAnnotation, on the pod template of a pod set of a Workload, lets that pod set start with no pods at all, if
	// all pod sets of the Workload together have at least as many pods as it says. The operator sets it; in the templates
	// of jobs it has no effect.
	MinPodsAnnotation = "muster.dev/min-pods"
	// QueuedTimeAnnotation on a Workload is when its job was queued, in RFC 3339, if that is not its creation.
	QueuedTimeAnnotation = "muster.dev/queued-time"
	// AskedAnnotation is on the Workload of a job that must queue again if its pods come to need something else. It is a
	// digest of what the pods needed, their requests and where they may run, when quota was asked for, before any
	// policies of the cluster changed the Workload.
	AskedAnnotation = "muster.dev/asked"

	// SpeedExponentAnnotation, beside MinReplicasAnnotation, is the exponent of the job's speedup: n pods do as much
	// work as one does, times n to the power of it. Greater than 0, at most 2, rounded to two decimals; default 0.85.
	SpeedExponentAnnotation = "muster.dev/speed-exponent"

	// MadeForAnnotation, on an object that outlives the job that made it, says for what it was made: a volume claim of a
	// LatticeJob for <job>/<task>/<volume>, or for shared/<id>. Names of such objects are joined with -, so that two of
	// these may have the same.
	MadeForAnnotation = "muster.dev/made-for"

	// ResizedCondition is True on a Workload whose number of pods was changed while it ran.
	// Its transition time is that of the last change.
	ResizedCondition = "muster.dev/Resized"
	// GrownReason and ShrunkReason are its reasons.
	GrownReason  = "Grown"
	ShrunkReason = "Shrunk"

	// QuotaDiffersCondition is True on a ClusterQueue whose accounted usage differs from what its Workloads hold, in
	// two checks a minute apart: that is a bug, and the message says which resources differ.
	QuotaDiffersCondition = "muster.dev/QuotaDiffers"
	// QuotaDiffersReason is its reason.
	QuotaDiffersReason = "AuditFoundDifference"

	// UnheldCondition is True on a Workload without quota whose job may nevertheless have pods, because the job was not
	// suspended at its creation. The pods are being stopped, and count against quota until they are gone.
	UnheldCondition = "muster.dev/Unheld"
	// UnheldReason is its reason.
	UnheldReason = "StartedUnheld"

	// TouchedAnnotation, on a batch Job, is when Muster last changed the Job only so that the Job controller looks at it.
	TouchedAnnotation = "muster.dev/touched"

	// RefusedCondition is True on an admitted Workload while the API server refuses objects that its job needs, such as
	// pods, Jobs or Services, and says why.
	RefusedCondition = "muster.dev/Refused"
	// RefusedReason is its reason, and that of CannotStartCondition on such a JobSet.
	RefusedReason = "ObjectsRefused"

	// TimeLimitNearCondition is True on a Workload whose job was warned that it soon reaches its time limit, and says
	// which limit that is and when. It goes with the quota.
	TimeLimitNearCondition = "muster.dev/TimeLimitNear"
	// TimeLimitNearReason is its reason, and that of the event.
	TimeLimitNearReason = "TimeLimitNear"

	// CannotStartCondition is True on a JobSet whose pods cannot be started, and says what has to change.
	CannotStartCondition = "muster.dev/CannotStart"
	// MayStartReason is its reason after that has changed.
	MayStartReason = "MayStart"
)

// Messages of these conditions.
const (
	MayStartMessage = "what kept pods from being started has changed"
	UnheldMessage   = "Pods were started before the job was held; they are being stopped, and count against the queue until then"
)
