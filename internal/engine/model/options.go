package model

import (
	"time"

	"github.com/musterhq/muster/internal/engine/elastic"
	"github.com/musterhq/muster/internal/engine/preempt"
)

const (
	// BlockNone blocks no admissions.
	BlockNone Block = iota
	// BlockQueue blocks the other workloads of the same ClusterQueue.
	BlockQueue
	// BlockAll blocks all other workloads.
	BlockAll
)

// Block says which admissions wait until the pods of the workloads admitted before are ready.
type Block int

// Options configure how an Engine decides. The zero value is the default.
type Options struct {
	// BlockUntilReady says which admissions wait for pods to be ready.
	BlockUntilReady Block
	// IgnoreUndeclared ignores requests for resources that a ClusterQueue does not cover.
	IgnoreUndeclared bool
	// FairSharing orders and preempts across queues by their shares; nil turns it off.
	FairSharing *FairSharing
	// AdmissionFairSharing orders LocalQueues by their recent usage; nil turns it off.
	AdmissionFairSharing *AdmissionFairSharing
	// Elastic says when workloads with an elastic pod set grow.
	Elastic elastic.Policy
	// Reservations is for how many workloads of a tree of queues, the first in order that do not fit, a start is planned;
	// 0 means one.
	Reservations int `json:",omitempty"`
	// CheckWaitingEvery is the time between two checks of CheckWaiting; 0 turns them off.
	CheckWaitingEvery time.Duration `json:",omitempty"`
}

// FairSharing configures preemption by shares.
type FairSharing struct {
	// Strategies say when a workload may be evicted for a fairer share, in the order in which they are tried. There
	// is at least one.
	Strategies []preempt.Strategy
}

// AdmissionFairSharing orders the workloads of a ClusterQueue by the recent usage of their LocalQueues, if the
// ClusterQueue asks for it.
type AdmissionFairSharing struct {
	// HalfLife is the time after which past usage counts half; with zero only present usage counts.
	HalfLife time.Duration
	// Interval is the time between samples. It is positive.
	Interval time.Duration
	// Weights say how much a unit of a resource counts; resources that are not listed count 1.
	Weights map[string]float64
}
