package flavor

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/musterhq/muster/internal/engine/quota"
	"github.com/musterhq/muster/internal/engine/reason"
)

// Flavor is a ResourceFlavor as far as a choice depends on it.
type Flavor struct {
	Name        string
	NodeLabels  map[string]string
	NodeTaints  []corev1.Taint
	Tolerations []corev1.Toleration
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
	// Reclaimable is how many of the pods have ended and need nothing any more.
	Reclaimable int32
	// PerPod is what one pod requests, in amounts of package quota.
	PerPod map[string]int64
	// Tolerations, NodeSelector and Affinity are the pod template's.
	Tolerations  []corev1.Toleration
	NodeSelector map[string]string
	Affinity     *corev1.NodeAffinity
}

// Needed is how many pods still have to run.
func (ps PodSet) Needed() int32 { return max(0, ps.Count-ps.Reclaimable) }

// Fewest is how few of the needed pods it can start with.
func (ps PodSet) Fewest() int32 {
	if ps.MinCount == 0 {
		return ps.Needed()
	}
	return min(max(0, ps.MinCount-ps.Reclaimable), ps.Needed())
}

// Assignment is the choice for one pod set.
type Assignment struct {
	PodSet string
	Count  int32
	// Flavors and Usage have one entry a resource; Usage is of all pods together.
	Flavors map[string]string
	Usage   map[string]int64
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
	// in all. Preempt tells whether that would do: Blocked, Preempts or Reclaims; it is
	// asked only where there is a choice.
	MayPreempt func(i quota.Index, amount int64) bool
	Preempt    func(i quota.Index, amount int64) Mode
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
