package model

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/musterhq/muster/internal/engine/durations"
	"github.com/musterhq/muster/internal/engine/fair"
	"github.com/musterhq/muster/internal/engine/flavor"
	"github.com/musterhq/muster/internal/engine/order"
	"github.com/musterhq/muster/internal/engine/preempt"
	"github.com/musterhq/muster/internal/engine/quota"
	"github.com/musterhq/muster/internal/engine/reason"
	"github.com/musterhq/muster/internal/engine/waiting"
)

// Key identifies a namespaced object. PodSet and Assignment are the types of package flavor.
type (
	Key        = order.Key
	PodSet     = flavor.PodSet
	Assignment = flavor.Assignment
)

// Strategy is how a ClusterQueue proceeds when its head does not fit.
type Strategy = waiting.Strategy

const (
	// BestEffort admits later workloads that fit.
	BestEffort = waiting.BestEffort
	// Strict admits no workload before the head.
	Strict = waiting.Strict
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
	// Backfill plans the start of the first workload that does not fit, and lets others pass only if they do not delay
	// that start. It has an effect with the strategy BestEffort.
	Backfill bool `json:",omitempty"`
	// Durations are the bounds for the times of its workloads.
	Durations durations.Bounds `json:",omitzero"`
}

// Check is an admission check of a ClusterQueue.
type Check struct {
	Name string
	// Flavors are the flavors that the check applies to; empty means all.
	Flavors []string
}

// AppliesTo reports whether the check applies to an admission: to any of the flavors in it.
func (c Check) AppliesTo(given *Admission) bool {
	return len(c.Flavors) == 0 || given.HasAny(sets.New(c.Flavors...))
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
	// Durations are the bounds for the times of its workloads, within those of the ClusterQueue.
	Durations durations.Bounds `json:",omitzero"`
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
	// Time is what its object says of how long it runs.
	Time durations.Known `json:",omitzero"`
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
	// AdmittedAt is since when it may run, zero if that is not known; it is then about ReservedAt.
	AdmittedAt time.Time `json:",omitzero"`
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

// WaitsLike reports whether both wait for the same thing in the same position. Pod sets are not compared.
func (w *Workload) WaitsLike(other Workload) bool {
	return w.Generation == other.Generation && w.Queue == other.Queue && w.Priority == other.Priority &&
		w.QueuedAt.Equal(other.QueuedAt) && w.Inactive == other.Inactive && w.BackoffReason == other.BackoffReason &&
		w.Gated == other.Gated && w.Refused == other.Refused && w.Unheld == other.Unheld &&
		w.LostNodes == other.LostNodes && w.Time.Equal(other.Time)
}

// LocalKey identifies the LocalQueue of the workload.
func (w *Workload) LocalKey() Key { return Key{Namespace: w.Key.Namespace, Name: w.Queue} }
