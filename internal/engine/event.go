package engine

import (
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/musterhq/muster/internal/engine/durations"
	"github.com/musterhq/muster/internal/engine/flavor"
	"github.com/musterhq/muster/internal/engine/model"
	"github.com/musterhq/muster/internal/engine/order"
	"github.com/musterhq/muster/internal/engine/place"
)

// The names by which users of the engine know the types of other packages.
type (
	Key          = order.Key
	PodSet       = flavor.PodSet
	Flavor       = flavor.Flavor
	Assignment   = flavor.Assignment
	Strategy     = model.Strategy
	ClusterQueue = model.ClusterQueue
	Check        = model.Check
	LocalQueue   = model.LocalQueue
	Cohort       = model.Cohort
	Workload     = model.Workload
	Admission    = model.Admission
	Decision     = model.Decision
	Resize       = model.Resize
	Eviction     = model.Eviction
	Options      = model.Options
	Block        = model.Block
	FairSharing  = model.FairSharing

	AdmissionFairSharing = model.AdmissionFairSharing
)

// How a ClusterQueue proceeds when its head does not fit.
const (
	BestEffort = model.BestEffort
	Strict     = model.Strict
)

// Which admissions wait until the pods of the workloads admitted before are ready.
const (
	BlockNone  = model.BlockNone
	BlockQueue = model.BlockQueue
	BlockAll   = model.BlockAll
)

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
	// RunEnded says that a workload has run to its end, and how long it ran: others of its kind may take as long.
	RunEnded struct {
		Time durations.Known
		Took time.Duration
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
