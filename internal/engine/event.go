package engine

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/musterhq/muster/internal/engine/fair"
	"github.com/musterhq/muster/internal/engine/flavor"
	"github.com/musterhq/muster/internal/engine/order"
	"github.com/musterhq/muster/internal/engine/place"
	"github.com/musterhq/muster/internal/engine/preempt"
	"github.com/musterhq/muster/internal/engine/quota"
	"github.com/musterhq/muster/internal/engine/reason"
	"github.com/musterhq/muster/internal/engine/waiting"
)

// Key identifies a namespaced object. PodSet, Flavor and Assignment are the types of package flavor.
type (
	Key        = order.Key
	PodSet     = flavor.PodSet
	Flavor     = flavor.Flavor
	Assignment = flavor.Assignment
)

// Strategy is how a ClusterQueue proceeds when its head does not fit.
type Strategy = waiting.Strategy

const (
	// BestEffort admits later workloads that fit.
	BestEffort = waiting.BestEffort
	// Strict admits no workload before the head.
	Strict = waiting.Strict
	// ByResource admits later workloads that request none of the resources that the head lacks.
	ByResource = waiting.ByResource
)

// ClusterQueue is a queue with quota.
type ClusterQueue struct {
	Name   string
	Cohort string
	// Strategy says what happens to the workloads behind a head that does not fit.
	Strategy Strategy
	// Groups say which resources and flavors are offered, Quotas how much of them.
	Groups []flavor.Group
	Quotas quota.Quotas
	// Namespaces selects the namespaces whose workloads are accepted: nil accepts none, an empty selector all.
	Namespaces *metav1.LabelSelector
	// CoversAll ignores requests for resources that the queue does not cover; without it, such requests keep a
	// workload waiting.
	CoversAll bool
	// OnDemand says that nodes are provisioned for pending pods: a workload that no present node could ever hold is
	// admitted by quota alone, without places.
	OnDemand bool
	// Stopped says that a stop policy keeps the queue from admitting. The decision log has it as Held.
	Stopped bool `json:"Held"`
	// Inactive, if not empty, says why the queue cannot admit with its present configuration.
	Inactive string
	// Preemption says which workloads its workloads may evict, Fungibility which flavor to take if several would do.
	Preemption  preempt.Policy
	Fungibility flavor.Fungibility
	// Checks must be ready before a workload with reserved quota runs.
	Checks []Check
	// Weight is the fair-sharing weight among the siblings in the cohort; nil means one.
	Weight *quota.Weight
	// ByUsage orders its workloads by the recent usage of their LocalQueues first.
	ByUsage bool
}

// Check is an admission check of a ClusterQueue.
type Check struct {
	Name string
	// Flavors are the flavors that the check applies to; empty means all.
	Flavors []string
}

// LocalQueue is the name by which workloads of a namespace refer to a ClusterQueue.
type LocalQueue struct {
	Key          Key
	ClusterQueue string
	// Stopped says that a stop policy keeps the queue from admitting. The decision log has it as Held.
	Stopped bool `json:"Held"`
	// Terminating says that the queue is being deleted; it admits nothing either.
	Terminating bool
	// Weight is the weight among the LocalQueues of the same ClusterQueue; nil means one.
	Weight *quota.Weight
	// Consumed is the usage recorded in the LocalQueue's status as of ConsumedAt. It is ignored if the engine has a
	// newer sample.
	Consumed   fair.Consumption
	ConsumedAt time.Time
}

// Cohort is a group of queues and cohorts that may use each other's free quota.
type Cohort struct {
	Name, Parent string
	Quotas       quota.Quotas
	// Weight is the fair-sharing weight among the cohort's siblings; nil means one.
	Weight *quota.Weight
}

// Workload is the unit of admission, as observed on the API server.
type Workload struct {
	Key Key
	// UID distinguishes workloads of the same name, Generation the specs of one workload.
	UID        string
	Generation int64
	// Version grows with every change of the workload, including its status: an event with a lower one is stale. It
	// is zero if unknown.
	Version int64
	// Queue is the name of a LocalQueue in the workload's namespace.
	Queue    string
	Priority int32
	// QueuedAt is the time since which it has been waiting.
	QueuedAt time.Time
	// Inactive workloads are not admitted.
	Inactive bool
	// BackoffReason, if not empty, says until when, or for what, the workload stays out of its queue after an
	// eviction. The decision log has it as BacksOff.
	BackoffReason string `json:"BacksOff"`
	// Unheld says that it has pods although it holds no quota. They count against the quota until they are gone, and
	// the workload is not admitted until then.
	Unheld bool
	// Gated, if not empty, names what gates its admission.
	Gated   string
	PodSets []PodSet
	// Refused, if not empty, says why it must not be admitted with its present spec.
	Refused string
	// Admission is what the workload holds, ReservedAt since when.
	Admission  *Admission
	ReservedAt time.Time
	// Admitted says that all checks are ready and that it may run, Ready that all its pods are ready or have been.
	Admitted, Ready bool
	// Evicted says that it is being evicted or deleted; it holds its quota until its pods are gone.
	Evicted bool
	// LostNodes says that it was evicted because its nodes failed, and has not been admitted since: it goes before
	// other workloads of its priority.
	LostNodes bool
	// ResizedAt is when the size of its elastic pod set last changed, zero if it never did.
	ResizedAt time.Time
	// ReportedCode is the code of the reason to wait that its status shows, and ReportedMessage the message if that
	// names what must be fixed. The JSON names are those of recorded logs.
	ReportedCode    reason.Code `json:"Told"`
	ReportedMessage string      `json:"ToldOf"`
}

// Admission is the quota and the places that a workload holds.
type Admission struct {
	ClusterQueue string
	PodSets      []Assignment
	// Checks are the checks of the queue that apply. They are not part of what is held.
	Checks []string
}

// Equal reports whether two admissions give the same quota and places. Checks are not compared.
func (a *Admission) Equal(b *Admission) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.ClusterQueue == b.ClusterQueue && slices.EqualFunc(a.PodSets, b.PodSets, Assignment.Equal)
}

// Event is a change that was observed. Each event carries the complete new state of its object, so that applying it
// twice is the same as applying it once.
type Event interface {
	apply(e *Engine)
}

type (
	// ClusterQueueSet says that the queue exists, with its configuration.
	ClusterQueueSet struct{ ClusterQueue }
	// ClusterQueueDeleted says that the queue was deleted.
	ClusterQueueDeleted struct{ Name string }
	// LocalQueueSet says that the queue exists, with its configuration.
	LocalQueueSet struct{ LocalQueue }
	// LocalQueueDeleted says that the queue was deleted.
	LocalQueueDeleted struct{ Key Key }
	// CohortSet says that the cohort has an object of its own.
	CohortSet struct{ Cohort }
	// CohortDeleted says that the cohort's object was deleted.
	CohortDeleted struct{ Name string }
	// FlavorSet says that the flavor exists.
	FlavorSet struct{ Flavor }
	// FlavorDeleted says that the flavor was deleted.
	FlavorDeleted struct{ Name string }
	// NamespaceSet gives the labels of a namespace.
	NamespaceSet struct {
		Name   string
		Labels labels.Set
	}
	// NamespaceDeleted says that the namespace was deleted.
	NamespaceDeleted struct{ Name string }
	// WorkloadSet says that the workload exists and has not finished.
	WorkloadSet struct{ Workload }
	// WorkloadGone says that the workload was deleted or has finished, and no longer holds anything.
	WorkloadGone struct{ Key Key }
	// NodeSet says that the node exists, with its properties.
	NodeSet struct{ place.Node }
	// NodeDeleted says that the node was deleted.
	NodeDeleted struct{ Name string }
	// TopologySet says that the topology exists.
	TopologySet struct{ place.Topology }
	// TopologyDeleted says that the topology was deleted.
	TopologyDeleted struct{ Name string }
	// PodBound says that the pod, of any owner, is bound to a node and has not ended.
	PodBound struct{ place.Pod }
	// PodEnded says that the pod of a workload has succeeded and still exists: it uses nothing any more, and no other
	// pod will replace it.
	PodEnded struct {
		Key Key
		Of  place.PodSetKey
	}
	// PodGone says that the pod was deleted or has failed: it uses nothing any more.
	PodGone struct{ Key Key }
	// PodUnschedulable says that kube-scheduler refused to bind a pod of the workload to its assigned node, for a
	// reason that the engine cannot see.
	PodUnschedulable struct {
		Workload Key
		// Node is the assigned node, named as in places.
		Node string
		// Why is kube-scheduler's reason.
		Why string
	}
	// Written says that a decision about a workload was written, and the version of the workload that resulted. UID
	// and Serial are those of the decision; Serial 0 means the last one.
	Written struct {
		Key     Key
		UID     string
		Serial  int64
		Version int64
	}
	// Refused says that the API server rejected a decision about a workload at the time At, and why. A decision of
	// the same kind is made again later, after a delay that doubles each time while the workload has that generation.
	// UID and Serial are those of the decision; Serial 0 means the last one.
	Refused struct {
		Key        Key
		UID        string
		Serial     int64
		Generation int64
		Message    string
		At         time.Time
	}
	// Tried says that the API server would accept the admission of a Try. UID and Serial are those of the decision.
	Tried struct {
		Key    Key
		UID    string
		Serial int64
	}
	// Failed says that a decision about a workload was not written and never will be: what was assumed is rolled
	// back. UID and Serial are those of the decision; Serial 0 means the last one.
	Failed struct {
		Key    Key
		UID    string
		Serial int64
	}
)

// Decision is one change to make: exactly one of Admit, Try, Replace, Resize, Evict, Withdraw and Why is set.
type Decision struct {
	Key Key
	// UID and Generation are those of the workload that was decided on: an admission must not be written to a later
	// workload of the same name, nor for another spec.
	UID        string
	Generation int64
	// Serial identifies the decision, so that its result is not attributed to a later decision about the same
	// workload. For Withdraw it is the serial of the admission that is withdrawn; it is 0 for Why, whose result is
	// not reported.
	Serial int64
	// Urgency is the priority of the workload for which the decision was made, which is another workload in the case
	// of a preemption, and the highest one if nodes failed: of several decisions, the most urgent is to be written
	// first.
	Urgency int32
	// Admit gives the workload quota, and the places with it. It is assumed at once; Failed rolls it back.
	Admit *Admission
	// Try asks whether the API server would accept this admission, which it rejected before: others are to be evicted
	// for the workload. Nothing is assumed. Tried, Refused or Failed answers it.
	Try *Admission `json:",omitempty"`
	// Replace gives pods of the workload new places because the old ones are no longer valid. It is the whole
	// admission, in which only places differ. It is assumed at once; Failed rolls it back.
	Replace *Admission
	// Resize gives the workload, which keeps running, more or fewer pods. It is assumed at once; Failed rolls it
	// back.
	Resize *Resize
	// Evict tells the workload to release its quota, and says for which workload. It is assumed at once; Failed rolls
	// it back.
	Evict *Eviction
	// Lost are, if Evict or Resize is for a workload that holds quota and lost places, the nodes of these.
	Lost []string `json:",omitempty"`
	// Withdraw cancels the admission of the workload if its write has not begun, which Failed then reports. Otherwise
	// the result of the write is reported as usual.
	Withdraw bool
	// Why is a new reason for which the workload waits.
	Why reason.Reason
}

// Resize is a new size for a running workload.
type Resize struct {
	// Admission is everything that the workload holds after the resize. The usage of pods that have to terminate is
	// the Surplus of their pod set until they are gone.
	Admission *Admission
	// PodSet is the pod set whose size changes; From and To are its pods before and after.
	PodSet   string
	From, To int32
	// For is the workload that needs the capacity of the removed pods. It is zero for growth, for pods whose places
	// are no longer valid, which Detail then explains, and for Unwanted pods, which are removed because the job wants
	// fewer.
	For      Key
	Detail   string
	Unwanted bool
}

// Eviction says for which workload, and why, a workload is evicted.
type Eviction struct {
	// Preemptor is the workload that needs the capacity; it is zero if nodes failed.
	Preemptor    Key
	PreemptorUID string
	Cause        preempt.Cause
	// PreemptorPath and Path lead from the root cohort to the ClusterQueue of the preemptor and of the evicted
	// workload, as in /lab/team/queue.
	PreemptorPath, Path string
	// Detail is a message for users that adds to the other fields.
	Detail string
}
