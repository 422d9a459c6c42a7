package flavor

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/musterhq/muster/internal/engine/place"
	"github.com/musterhq/muster/internal/engine/quota"
	"github.com/musterhq/muster/internal/engine/reason"
)

// Flavor is a ResourceFlavor as far as a choice depends on it.
type Flavor struct {
	Name        string
	NodeLabels  map[string]string
	NodeTaints  []corev1.Taint
	Tolerations []corev1.Toleration
	// Topology names the one by which pods are placed on nodes; empty where only quota
	// matters.
	Topology string
}

// Group is a set of resources that a queue serves together: all of a pod set's
// resources in a group come from the same flavor.
type Group struct {
	Resources []string
	// Flavors are in the order in which they are tried.
	Flavors []string
}

// PodSet is a number of equal pods.
type PodSet struct {
	Name  string
	Count int32
	// MinCount is the fewest pods that it can start with, 0 if it must be Count.
	MinCount int32
	// Elastic is above 0 for a pod set whose size may change while it runs, from MinCount to
	// Count: the exponent of its speed, of which n pods do n to the power of it. One of a
	// workload can be so.
	Elastic float64
	// Wanted is, of an elastic pod set, how many pods its job wants at most by now, 0 for Count; below MinCount it is as that.
	Wanted int32
	// Reclaimable is how many of the pods have ended and need nothing any more.
	Reclaimable int32
	// PerPod is what one pod requests, in amounts of package quota.
	PerPod map[string]int64
	// OfNode is what one pod takes of its node, nil where that is PerPod: it counts what
	// quota does not, and the other way round.
	OfNode map[string]int64
	// Tolerations, NodeSelector, Affinity and NodeName are the pod template's.
	Tolerations  []corev1.Toleration
	NodeSelector map[string]string
	Affinity     *corev1.NodeAffinity
	NodeName     string
	// Unpinned: see place.Ask. The tag keeps the name that recorded logs have.
	Unpinned bool `json:"Loose"`
	// HostPorts are those that each pod takes of its node.
	HostPorts []place.HostPort
	// Topology is how near each other the pods are to be, nil where it does not matter.
	Topology *TopologyRequest
	// ExclusiveKey is the node label of the domains that the pods have for themselves, as
	// place.Ask has it.
	ExclusiveKey string
}

// TopologyRequest is how near each other the pods of a pod set are to be.
type TopologyRequest struct {
	// Level is the node label whose one domain must (Mandatory) or should hold all pods;
	// empty if it does not matter.
	Level     string
	Mandatory bool
	// Slices are layers of equal parts that lie within one domain each, the coarsest
	// first.
	Slices []place.Slice
	// Group is shared by pod sets that get one flavor and one domain together.
	Group string
}

// Tied reports whether its pods go to nodes in parts or with others, so that there cannot be
// one more or one less.
func (ps PodSet) Tied() bool {
	return ps.ExclusiveKey != "" || ps.Topology != nil && (len(ps.Topology.Slices) > 0 || ps.Topology.Group != "")
}

// Needed is how many pods still have to run.
func (ps PodSet) Needed() int32 { return max(0, ps.Count-ps.Reclaimable) }

// Most is how many pods it may have while it runs, if it is elastic: MinCount at least, below which the API server lets no
// assignment be.
func (ps PodSet) Most() int32 {
	if ps.Wanted > 0 {
		return min(max(ps.Wanted, ps.MinCount), ps.Count)
	}
	return ps.Count
}

// Least is how few pods it may run with, if it is elastic.
func (ps PodSet) Least() int32 { return min(ps.MinCount, ps.Most()) }

// TakesOfNode is what one pod takes of its node.
func (ps PodSet) TakesOfNode() map[string]int64 {
	if ps.OfNode != nil {
		return ps.OfNode
	}
	return ps.PerPod
}

// Fewest is how few of the needed pods it can start with: one at least where any is needed,
// for with none it would be admitted and never come to its end.
func (ps PodSet) Fewest() int32 {
	if ps.MinCount == 0 {
		return ps.Needed()
	}
	return min(max(1, ps.MinCount-ps.Reclaimable), ps.Needed())
}

// Assignment is the choice for one pod set.
type Assignment struct {
	PodSet string
	Count  int32
	// Flavors and Usage have one entry a resource; Usage is of all pods together.
	Flavors map[string]string
	Usage   map[string]int64
	// Surplus is what pods beyond Count use until they are gone, by resource; nil where there
	// are none.
	Surplus map[string]int64
	// Places are the nodes of the pods, in the order of their ranks; none where the flavors
	// are a matter of quota alone, or nodes are yet to come.
	Places []place.NodeCount
	// Within is what somebody else gave who names domains and no nodes: the engine finds
	// nodes in them, for its own account.
	Within []DomainCount
}

// DomainCount is so many pods on nodes that have the labels.
type DomainCount struct {
	Labels map[string]string
	Count  int32
}

// Equal reports whether both give the same.
func (a Assignment) Equal(b Assignment) bool {
	return a.PodSet == b.PodSet && a.Count == b.Count && maps.Equal(a.Flavors, b.Flavors) && maps.Equal(a.Usage, b.Usage) && maps.Equal(a.Surplus, b.Surplus) &&
		slices.Equal(a.Places, b.Places) && slices.EqualFunc(a.Within, b.Within, func(x, y DomainCount) bool {
		return x.Count == y.Count && maps.Equal(x.Labels, y.Labels)
	})
}

// Mode is how well a workload fits; a greater one is better.
type Mode int

const (
	// NoFit: it does not, and no end of others' work is known to help.
	NoFit Mode = iota
	// Blocked: it would if others ended, and nobody may be preempted for it.
	Blocked
	// Preempts: it fits if others of the same queue are preempted.
	Preempts
	// Reclaims: it fits if others of the cohort are preempted.
	Reclaims
	// Awaits: it fits once those that were told to go have gone.
	Awaits
	// Fits: it does, now.
	Fits
)

// Fungibility says when to look at a later flavor although this one would do.
type Fungibility struct {
	// NextBeforeBorrowing and NextBeforePreempting look at the next flavor before they
	// settle for one that needs it.
	NextBeforeBorrowing, NextBeforePreempting bool
	// PreemptsRatherThanBorrows prefers, of those looked at, a flavor that needs
	// preemption to one that needs borrowing.
	PreemptsRatherThanBorrows bool
}

// settles reports whether no later flavor is looked at.
func (f Fungibility) settles(m Mode, borrowing int) bool {
	switch {
	case m <= Blocked, m < Fits && f.NextBeforePreempting, borrowing > 0 && f.NextBeforeBorrowing:
		return false
	}
	return true
}

// prefers reports whether the first is better than the second.
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

// Question is what an assignment depends on beside the form.
type Question struct {
	// Queue is that of the workload.
	Queue       *quota.Node
	Fungibility Fungibility
	// MayPreempt tells whether others may be preempted so that the queue can have so much
	// in all. Preempt tells whether that would do: Blocked, Preempts or Reclaims, and from how
	// high up the queue would borrow once they are gone; it is asked only where there is a choice.
	MayPreempt func(i quota.Index, amount int64) bool
	Preempt    func(i quota.Index, amount int64) (m Mode, borrowing int)
	// Excluded are flavors that pod sets cannot have whatever their quota, and why.
	Excluded map[PodSetFlavor]reason.Verdict
}

// PodSetFlavor is a flavor for a pod set.
type PodSetFlavor struct {
	PodSet, Flavor string
}

// Choice is the answer.
type Choice struct {
	Mode Mode
	// Assignments has an entry for each pod set, unless Mode is NoFit or Blocked.
	Assignments []Assignment
	// Usage is what all of them take together; where Mode is Blocked, what would be taken
	// up to the first pod set that was short.
	Usage quota.Vector
	// Borrowing is the height of the lowest cohort that holds it within its quota, 0 if
	// the queue itself does.
	Borrowing int
	// Short are what was short of, in any flavor that was tried: more of none of them
	// changes nothing.
	Short []quota.Index
	// Why says what was short, of the first pod set that was; it is zero where Mode is
	// Fits.
	Why reason.Reason
}
