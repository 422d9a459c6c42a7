package flavor

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/musterhq/muster/internal/engine/place"
	"github.com/musterhq/muster/internal/engine/quota"
	"github.com/musterhq/muster/internal/engine/reason"
)

// Flavor is the part of a ResourceFlavor that the choice depends on.
type Flavor struct {
	Name        string
	NodeLabels  map[string]string
	NodeTaints  []corev1.Taint
	Tolerations []corev1.Toleration
	// Topology names the topology by which pods are placed on nodes; empty if only quota matters.
	Topology string
}

// Group is a set of resources that a queue serves together: a pod set gets all its resources of a group from the same
// flavor.
type Group struct {
	Resources []string
	// Flavors are in the order in which they are tried.
	Flavors []string
}

// PodSet is a number of equal pods.
type PodSet struct {
	Name  string
	Count int32
	// MinCount is the fewest pods that it can start with, 0 if it needs Count.
	MinCount int32
	// Together is positive for a pod set that can start with no pods at all, if all pod sets of the workload together have
	// at least that many. MinCount then only bounds its size while it runs.
	Together int32 `json:",omitempty"`
	// Elastic is positive for a pod set whose size may change between MinCount and Count while it runs: the exponent
	// of its speed, where n pods do n to the power of Elastic times the work of one. A workload has at most one
	// elastic pod set.
	Elastic float64
	// Wanted is the most pods that the job of an elastic pod set wants now, 0 for Count. A value below MinCount
	// counts as MinCount.
	Wanted int32
	// Reclaimable is how many of the pods have ended and need no more quota.
	Reclaimable int32
	// PerPod is what one pod requests, in amounts of package quota.
	PerPod map[string]int64
	// OfNode is what one pod takes of its node, nil if that is PerPod. It includes what quota does not count, and
	// excludes what only quota counts.
	OfNode map[string]int64
	// Tolerations, NodeSelector, Affinity and NodeName are those of the pod template.
	Tolerations  []corev1.Toleration
	NodeSelector map[string]string
	Affinity     *corev1.NodeAffinity
	NodeName     string
	// Unpinned marks pods that are not pinned to the places of the engine, as in place.Ask. The JSON name is that of
	// recorded logs.
	Unpinned bool `json:"Loose"`
	// HostPorts are the host ports that each pod takes on its node.
	HostPorts []place.HostPort
	// Topology is how close to each other the pods must be, nil if it does not matter.
	Topology *TopologyRequest
	// ExclusiveKey is the node label whose domains the pods have exclusively, as in place.Ask.
	ExclusiveKey string
	// Bounds limit which domains the pods may use beside other pods of the workload, as in place.Ask.
	Bounds []place.Bound `json:",omitempty"`
}

// TopologyRequest says how close to each other the pods of a pod set must be.
type TopologyRequest struct {
	// Level is the node label of which one domain must (Mandatory) or should hold all pods; empty if it does not
	// matter.
	Level     string
	Mandatory bool
	// Slices are layers of equal parts that are within one domain each, the coarsest layer first.
	Slices []place.Slice
	// Group is shared by pod sets that get the same flavor and the same domain.
	Group string
}

// Tied reports whether its pods are placed in parts or together with other pod sets, so that their number cannot
// change by one.
func (ps PodSet) Tied() bool {
	return ps.ExclusiveKey != "" || ps.Topology != nil && (len(ps.Topology.Slices) > 0 || ps.Topology.Group != "")
}

// Needed returns how many pods still have to run.
func (ps PodSet) Needed() int32 { return max(0, ps.Count-ps.Reclaimable) }

// Most returns how many pods an elastic pod set may have while it runs. It is never less than MinCount, below which
// the API server accepts no assignment.
func (ps PodSet) Most() int32 {
	if ps.Wanted > 0 {
		return min(max(ps.Wanted, ps.MinCount), ps.Count)
	}
	return ps.Count
}

// Least returns how few pods an elastic pod set may run with.
func (ps PodSet) Least() int32 { return min(ps.MinCount, ps.Most()) }

// TakesOfNode returns what one pod takes of its node.
func (ps PodSet) TakesOfNode() map[string]int64 {
	if ps.OfNode != nil {
		return ps.OfNode
	}
	return ps.PerPod
}

// Fewest returns how few of the needed pods it can start with. It is at least one if any is needed, and pods of other
// pod sets do not make up for it: a workload admitted with none would never finish.
func (ps PodSet) Fewest() int32 {
	if ps.Together > 0 {
		return 0
	}
	if ps.MinCount == 0 {
		return ps.Needed()
	}
	return min(max(1, ps.MinCount-ps.Reclaimable), ps.Needed())
}

// Assignment is what one pod set was given.
type Assignment struct {
	PodSet string
	Count  int32
	// Flavors and Usage have one entry per resource; Usage is for all pods together.
	Flavors map[string]string
	Usage   map[string]int64
	// Surplus is what pods beyond Count use until they have terminated, by resource; nil if there are none.
	Surplus map[string]int64
	// Places are the nodes of the pods, in the order of their ranks. It is empty if the flavors have no topology or
	// nodes are still to be provisioned.
	Places []place.NodeCount
	// Within are the domains given by another controller that names no nodes: the engine finds nodes in them for its
	// own accounting.
	Within []DomainCount
}

// DomainCount is a number of pods on nodes that have the labels.
type DomainCount struct {
	Labels map[string]string
	Count  int32
}

// Equal reports whether both assign the same.
func (a Assignment) Equal(b Assignment) bool {
	return a.PodSet == b.PodSet && a.Count == b.Count && maps.Equal(a.Flavors, b.Flavors) &&
		maps.Equal(a.Usage, b.Usage) && maps.Equal(a.Surplus, b.Surplus) &&
		slices.Equal(a.Places, b.Places) && slices.EqualFunc(a.Within, b.Within, func(x, y DomainCount) bool {
		return x.Count == y.Count && maps.Equal(x.Labels, y.Labels)
	})
}

// Mode is how well a workload fits; greater is better.
type Mode int

const (
	// NoFit: it does not fit, and would not if others ended.
	NoFit Mode = iota
	// Blocked: it would fit if others ended, but none may be preempted for it.
	Blocked
	// Preempts: it fits if others of the same queue are preempted.
	Preempts
	// Reclaims: it fits if others of the cohort are preempted.
	Reclaims
	// Awaits: it fits once workloads that are being evicted are gone.
	Awaits
	// Fits: it fits now.
	Fits
)

// Fungibility says when to try a later flavor although the present one would do.
type Fungibility struct {
	// NextBeforeBorrowing and NextBeforePreempting try the next flavor before taking one that needs borrowing or
	// preemption.
	NextBeforeBorrowing, NextBeforePreempting bool
	// PreemptsRatherThanBorrows prefers, of the flavors tried, one that needs preemption to one that needs borrowing.
	PreemptsRatherThanBorrows bool
}

// settles reports whether later flavors need not be tried.
func (f Fungibility) settles(m Mode, borrowing int) bool {
	switch {
	case m <= Blocked, m < Fits && f.NextBeforePreempting, borrowing > 0 && f.NextBeforeBorrowing:
		return false
	}
	return true
}

// prefers reports whether the first result is better than the second.
func (f Fungibility) prefers(m Mode, borrowing int, than Mode, thanBorrowing int) bool {
	viable, thanViable := m > Blocked, than > Blocked
	if f.PreemptsRatherThanBorrows && viable && thanViable && borrowing != thanBorrowing {
		return borrowing < thanBorrowing
	}
	if m != than {
		return m > than
	}
	return borrowing < thanBorrowing
}

// Question is what a choice depends on beside the form.
type Question struct {
	// Queue is the queue of the workload.
	Queue       *quota.Node
	Fungibility Fungibility
	// MayPreempt returns whether others may be preempted so that the queue can have the amount in total. Preempt
	// returns whether that would suffice, as Blocked, Preempts or Reclaims, and the height from which the queue would
	// borrow once they are gone; it is called only if there is a choice of flavors.
	MayPreempt func(i quota.Index, amount int64) bool
	Preempt    func(i quota.Index, amount int64) (m Mode, borrowing int)
	// Excluded are flavors that pod sets must not be given regardless of quota, and why.
	Excluded map[PodSetFlavor]reason.Verdict
}

// PodSetFlavor is a flavor for a pod set.
type PodSetFlavor struct {
	PodSet, Flavor string
}

// Choice is the result of a choice of flavors.
type Choice struct {
	Mode Mode
	// Assignments has an entry for each pod set, unless Mode is NoFit or Blocked.
	Assignments []Assignment
	// Usage is what all of them take together. If Mode is Blocked, it is what would be taken up to the first pod set
	// that was short.
	Usage quota.Vector
	// Borrowing is the height of the lowest cohort whose quota suffices, 0 if that of the queue does.
	Borrowing int
	// Short is what was short in any flavor that was tried: the result stays the same until there is more of some of
	// it.
	Short []quota.Index
	// Why says what the first pod set that does not fit was short of; it is zero if Mode is Fits.
	Why reason.Reason
}
