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
)

// Key names an object of a namespace; PodSet, Flavor and Assignment are the
// engine's words for choosing flavors.
type (
	Key        = order.Key
	PodSet     = flavor.PodSet
	Flavor     = flavor.Flavor
	Assignment = flavor.Assignment
)

// Strategy is what a ClusterQueue does when its head does not fit.
type Strategy int

const (
	// BestEffort lets those behind the head go first if they fit.
	BestEffort Strategy = iota
	// Strict lets nobody pass the head.
	Strict
	// ByResource lets those pass who ask for nothing that the head lacks.
	ByResource
)

// ClusterQueue is a queue with quota.
type ClusterQueue struct {
	Name   string
	Cohort string
	// Strategy says what happens behind a head that does not fit.
	Strategy Strategy
	// Groups say which resources and flavors are offered, Quotas how much.
	Groups []flavor.Group
	Quotas quota.Quotas
	// Namespaces selects those whose workloads are accepted; nil accepts none, an
	// empty one all.
	Namespaces *metav1.LabelSelector
	// CoversAll counts nothing for resources that the queue does not cover, which keep a
	// workload waiting otherwise.
	CoversAll bool
	// OnDemand says that nodes come when there are pods for them: what no node that is
	// there could ever hold is admitted by quota alone, and gets no places.
	OnDemand bool
	// Held stops admissions.
	Held bool
	// Inactive says, where not empty, why the queue cannot admit as it is configured.
	Inactive string
	// Preemption says whom its workloads may evict, Fungibility which flavor is taken
	// where several would do.
	Preemption  preempt.Policy
	Fungibility flavor.Fungibility
	// Checks must be ready before a workload runs that was given quota.
	Checks []Check
	// Weight is that of the queue beside its siblings in a cohort, nil for one.
	Weight *quota.Weight
	// ByUsage orders its workloads by the use of their LocalQueues first.
	ByUsage bool
}

// Check is an admission check of a ClusterQueue.
type Check struct {
	Name string
	// Flavors are those that it is for, none for all.
	Flavors []string
}

// LocalQueue is the name by which workloads of a namespace reach a ClusterQueue.
type LocalQueue struct {
	Key          Key
	ClusterQueue string
	// Held stops admissions. Terminating does too: it is being deleted.
	Held, Terminating bool
	// Weight is that of the queue beside the others of its ClusterQueue, nil for one.
	Weight *quota.Weight
	// Consumed is what it had used by ConsumedAt, as its status remembers. What the engine
	// knows itself since then counts more.
	Consumed   fair.Consumption
	ConsumedAt time.Time
}

// Cohort lets its members use each other's free quota.
type Cohort struct {
	Name, Parent string
	Quotas       quota.Quotas
	// Weight is that of the cohort beside its siblings, nil for one.
	Weight *quota.Weight
}

// Workload is the unit of admission, as the API server has it.
type Workload struct {
	Key Key
	// UID tells two workloads of one name apart, Generation two specs of one workload.
	UID        string
	Generation int64
	// Version grows with every change of the workload, its status included: news of
	// a lower one is old. Zero where nobody knows.
	Version int64
	// Queue is the name of a LocalQueue of the workload's namespace.
	Queue    string
	Priority int32
	// QueuedAt is the time from which it waits.
	QueuedAt time.Time
	// Inactive workloads are not admitted.
	Inactive bool
	// BacksOff says, where not empty, until when or for what the workload stays out of
	// its queue after an eviction.
	BacksOff string
	// Unheld says that it has no quota and pods all the same. They count until they are
	// gone, and it waits until then.
	Unheld bool
	// Gated says, where not empty, who holds its admission back.
	Gated   string
	PodSets []PodSet
	// Refused says, where not empty, why it must not be admitted as it is.
	Refused string
	// Admission is what the workload holds, ReservedAt since when.
	Admission  *Admission
	ReservedAt time.Time
	// Admitted says that all checks are ready and it may run, Ready that all its pods
	// are or have been.
	Admitted, Ready bool
	// Evicted says that it was told to go, by an eviction or since it was deleted; it holds
	// its quota until it has.
	Evicted bool
	// LostNodes says that it was evicted because its nodes failed, and has not been
	// admitted since: it goes before others of its priority.
	LostNodes bool
	// ResizedAt is when the size of its elastic pod set changed last, zero for never.
	ResizedAt time.Time
	// Told is the reason to wait that its status gives now, and ToldOf its message where that names what is to be mended.
	Told   reason.Code
	ToldOf string
}

// Admission is where a workload runs and what it holds.
type Admission struct {
	ClusterQueue string
	PodSets      []Assignment
	// Checks are those of the queue that apply. They are not part of what is held.
	Checks []string
}

// Equal reports whether two admissions give the same.
func (a *Admission) Equal(b *Admission) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.ClusterQueue == b.ClusterQueue && slices.EqualFunc(a.PodSets, b.PodSets, Assignment.Equal)
}

// Event is something that happened. Each kind says what is true now, so that
// applying an event twice is the same as once.
type Event interface {
	apply(e *Engine)
}

type (
	// ClusterQueueSet says that the queue exists and how it is configured.
	ClusterQueueSet struct{ ClusterQueue }
	// ClusterQueueDeleted says that the queue is gone.
	ClusterQueueDeleted struct{ Name string }
	// LocalQueueSet says that the queue exists and where it leads.
	LocalQueueSet struct{ LocalQueue }
	// LocalQueueDeleted says that the queue is gone.
	LocalQueueDeleted struct{ Key Key }
	// CohortSet says that the cohort has an object of its own.
	CohortSet struct{ Cohort }
	// CohortDeleted says that the cohort's object is gone.
	CohortDeleted struct{ Name string }
	// FlavorSet says that the flavor exists.
	FlavorSet struct{ Flavor }
	// FlavorDeleted says that the flavor is gone.
	FlavorDeleted struct{ Name string }
	// NamespaceSet gives a namespace's labels.
	NamespaceSet struct {
		Name   string
		Labels labels.Set
	}
	// NamespaceDeleted says that the namespace is gone.
	NamespaceDeleted struct{ Name string }
	// WorkloadSet says that the workload exists and has not finished.
	WorkloadSet struct{ Workload }
	// WorkloadGone says that the workload was deleted or has finished: it holds
	// nothing any more.
	WorkloadGone struct{ Key Key }
	// NodeSet says that the node exists, and what it is like.
	NodeSet struct{ place.Node }
	// NodeDeleted says that the node is gone.
	NodeDeleted struct{ Name string }
	// TopologySet says that the topology exists.
	TopologySet struct{ place.Topology }
	// TopologyDeleted says that the topology is gone.
	TopologyDeleted struct{ Name string }
	// PodBound says that the pod is on a node and has not ended, whosever it is.
	PodBound struct{ place.Pod }
	// PodEnded says that the pod of a workload has ended well and is not deleted: it takes nothing any more, and no other comes
	// for it.
	PodEnded struct {
		Key Key
		Of  place.PodSetKey
	}
	// PodGone says that the pod was deleted, or has failed: it takes nothing any more.
	PodGone struct{ Key Key }
	// PodUnschedulable says that kube-scheduler would not put a pod of the workload on a node
	// where it has a place, and not for want of what is known here.
	PodUnschedulable struct {
		Workload Key
		// Node is the place, as places name it.
		Node string
		// Why is what kube-scheduler has against it.
		Why string
	}
	// Written says that what was decided about a workload was written, and as which
	// version of it. UID and Serial are those of the decision; 0 is of the last one.
	Written struct {
		Key     Key
		UID     string
		Serial  int64
		Version int64
	}
	// Refused says that the API server would not have what was decided about a workload, and why, at that
	// time. The like is decided again later, each time after twice as long while the workload is of that
	// generation. UID and Serial are those of the decision; 0 is of the last one.
	Refused struct {
		Key        Key
		UID        string
		Serial     int64
		Generation int64
		Message    string
		At         time.Time
	}
	// Failed says that what was decided about a workload was not written and never
	// will be: what was assumed is undone. UID and Serial are those of the decision; 0 is of
	// the last one.
	Failed struct {
		Key    Key
		UID    string
		Serial int64
	}
)

// Decision is one change that should be made. Exactly one of Admit, Replace, Resize, Evict,
// Withdraw and Why is set.
type Decision struct {
	Key Key
	// UID and Generation are those of the workload decided on: an admission must not
	// be written for a later one of the same name, nor for another spec.
	UID        string
	Generation int64
	// Serial tells the decisions of an engine apart, so that what became of one is not taken
	// for news of a later one about the same workload. It is that of the admission where one
	// is withdrawn, and 0 for a reason, which nobody tells of.
	Serial int64
	// Urgency is the priority of the workload for whose sake it was decided, which is another one where
	// somebody has to go for it, and above all others where nodes failed: of several decisions the most
	// urgent is to be carried out first.
	Urgency int32
	// Admit says that the workload is given quota, and which. It is assumed at once;
	// Failed undoes it.
	Admit *Admission
	// Replace says that pods of the workload have other places than before, because theirs
	// are no good any more. It is the whole admission, of which only places have changed.
	// It is assumed at once; Failed undoes it.
	Replace *Admission
	// Resize says that the workload, which goes on, has more or fewer pods than before. It is
	// assumed at once; Failed undoes it.
	Resize *Resize
	// Evict says that the workload must give its quota back, and for whom. It is
	// assumed at once; Failed undoes it.
	Evict *Eviction
	// Withdraw says that the admission of the workload is not wanted any more, where nobody has begun
	// to write it: Failed says that it was not. Else how the admission went is told as ever.
	Withdraw bool
	// Why says that the workload waits, for another reason than its status tells.
	Why reason.Reason
}

// Resize is another size of a workload that runs.
type Resize struct {
	// Admission is the whole of what the workload has then. What pods that have to go use
	// until they are gone is the surplus of their pod set.
	Admission *Admission
	// PodSet is the one whose size changes, From and To are its pods before and after.
	PodSet   string
	From, To int32
	// For is the workload that needs the room of pods that go; nobody for growth, where their
	// places are no good any more, as Detail says, and where they are Unwanted: their job is to
	// have fewer.
	For      Key
	Detail   string
	Unwanted bool
}

// Eviction is for whom a workload has to go.
type Eviction struct {
	// Preemptor is the workload that needs the room; nobody where nodes failed.
	Preemptor    Key
	PreemptorUID string
	Cause        preempt.Cause
	// PreemptorPath and Path lead from the root cohort to the ClusterQueue of the
	// preemptor and of the one that goes, as in /lab/team/queue.
	PreemptorPath, Path string
	// Detail says to people what is not said by the rest.
	Detail string
}
