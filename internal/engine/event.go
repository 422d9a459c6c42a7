package engine

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/musterhq/muster/internal/engine/flavor"
	"github.com/musterhq/muster/internal/engine/order"
	"github.com/musterhq/muster/internal/engine/quota"
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
	// Namespaces are those whose workloads are accepted; nil accepts none.
	Namespaces labels.Selector
	// Held stops admissions.
	Held bool
	// Inactive says, where not empty, why the queue cannot admit as it is configured.
	Inactive string
}

// LocalQueue is the name by which workloads of a namespace reach a ClusterQueue.
type LocalQueue struct {
	Key          Key
	ClusterQueue string
	// Held stops admissions.
	Held bool
}

// Cohort lets its members use each other's free quota.
type Cohort struct {
	Name, Parent string
	Quotas       quota.Quotas
}

// Workload is the unit of admission.
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
	PodSets  []PodSet
	// Refused says, where not empty, why it must not be admitted as it is.
	Refused string
	// Admission is what the workload holds, as the API server has it.
	Admission *Admission
}

// Admission is where a workload runs and what it holds.
type Admission struct {
	ClusterQueue string
	PodSets      []Assignment
}

// Equal reports whether two admissions give the same.
func (a *Admission) Equal(b *Admission) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.ClusterQueue == b.ClusterQueue && slices.EqualFunc(a.PodSets, b.PodSets, func(x, y Assignment) bool {
		return x.PodSet == y.PodSet && x.Count == y.Count && maps.Equal(x.Flavors, y.Flavors) && maps.Equal(x.Usage, y.Usage)
	})
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
	// AdmissionWritten says that a decided admission was written, and as which version
	// of the workload. UID is that of the decision.
	AdmissionWritten struct {
		Key     Key
		UID     string
		Version int64
	}
	// AdmissionRefused says that the API server will not have a decided admission, and
	// why, for as long as the workload is of that generation. UID is that of the
	// decision.
	AdmissionRefused struct {
		Key        Key
		UID        string
		Generation int64
		Message    string
	}
	// AdmissionFailed says that a decided admission was not written and never will
	// be: what was assumed for it is undone. UID is that of the decision.
	AdmissionFailed struct {
		Key Key
		UID string
	}
)
