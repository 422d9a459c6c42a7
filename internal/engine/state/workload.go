package state

import (
	"slices"
	"time"

	"github.com/musterhq/muster/internal/engine/durations"
	"github.com/musterhq/muster/internal/engine/elastic"
	"github.com/musterhq/muster/internal/engine/flavor"
	"github.com/musterhq/muster/internal/engine/model"
	"github.com/musterhq/muster/internal/engine/order"
	"github.com/musterhq/muster/internal/engine/place"
	"github.com/musterhq/muster/internal/engine/preempt"
	"github.com/musterhq/muster/internal/engine/quota"
	"github.com/musterhq/muster/internal/engine/reason"
)

// assumption is the kind of decision about a workload that the API server has not confirmed yet.
type assumption int

const (
	Nothing assumption = iota
	Admits
	Replaces
	Resizes
	Evicts
	// tries: the API server is asked whether it would accept an admission. It holds nothing meanwhile.
	Tries
)

// Workload is a Workload with the engine's state for it.
type Workload struct {
	model.Workload
	Shape *Shape
	Local *LocalQueue
	// ClusterQueue is the ClusterQueue in which it waits or whose quota it holds, nil if its LocalQueue names none.
	ClusterQueue *ClusterQueue
	// Class is where it waits to be evaluated; nil if it does not.
	Class *Class
	// Forecast is how long it runs. It is made when the workload is queued in a family that plans starts, and stays
	// the same while it waits and runs.
	Forecast durations.Forecast
	// Promised is the promise of its start, nil if it has none. Admitting is the one with which it is being admitted,
	// until that is confirmed.
	Promised, Admitting *Promise
	// QueueEntry is its entry in a list of its ClusterQueue while it holds nothing, LocalEntry its entry in a list of
	// its LocalQueue.
	QueueEntry, LocalEntry order.Entry[*Workload]
	// Held is the admission as observed or assumed.
	Held    *model.Admission
	Assumed assumption
	// Withdrawn is set once its admission was withdrawn: the eviction to make if the admission is written all the
	// same.
	Withdrawn *model.Eviction
	// serial is that of the last decision about it, DecidedOn the Version that was known at that time.
	Serial, DecidedOn int64
	// Before is the admission before it was given other places or another size, until the write is confirmed.
	Before *model.Admission
	// ResizedBefore is ResizedAt before the last resize was decided.
	ResizedBefore time.Time
	// Nomination is the capacity that was nominated for it, for which it waits.
	Nomination *Nomination
	// Growing is what is planned for it beyond what it holds, once other workloads have released it.
	Growing quota.Vector
	// GrowthFailed is set if other workloads shrank for its growth and it still could not grow.
	GrowthFailed bool
	// GrowthAwaits is the PlacesVersion for which pods were on the nodes yet that its growth is planned for.
	GrowthAwaits int
	// Preempted has the UIDs of the workloads that stopped or shrank for its growth since it was admitted.
	Preempted map[order.Key]string
	// Vacated are the places of pods that have to terminate and may still exist.
	Vacated []place.NodeCount
	// ListedIn is the queue that lists it among its elastic workloads.
	ListedIn *ClusterQueue
	// Placed is what place.Map has of it; avoid the nodes that kube-scheduler refused for it.
	Placed Placed
	Avoid  Avoidance
	// Within are the nodes on which pods are counted whose assignment names domains only, by pod set.
	Within map[string][]place.NodeCount
	// NodesFailed is set if it is being evicted because its nodes failed; replacement is what it waits for if it keeps
	// those of its pods that have places.
	NodesFailed bool
	Replacement *Replacement
	// Refusal is the API server's last rejection of a decision about it.
	Refusal Refusal
	Why     reason.Reason
	// reported is the message of the reason that was reported last, ReportedWhy that reason if this engine reported it.
	Reported    string
	ReportedWhy reason.Reason
	Charged     Charges
	// Gone is set once the workload no longer exists and must not be counted.
	Gone bool
}

// Rank returns the position of the workload in the order of its queue.
func (w *Workload) Rank() order.Rank {
	return order.Rank{Priority: w.Priority, First: w.LostNodes, Since: w.QueuedAt, Key: w.Key}
}

// HasPromise reports whether it waits for a start that was promised, and that is neither late nor void.
func (w *Workload) HasPromise() bool {
	return w.Promised != nil && !w.Promised.Late && !w.Promised.Void
}

// StartedAt returns since when it runs, zero if it does not yet.
func (w *Workload) StartedAt() time.Time {
	switch {
	case w.Held == nil || !w.Admitted && (w.Assumed != Admits || len(w.Held.Checks) > 0):
		return time.Time{}
	case w.AdmittedAt.After(w.ReservedAt):
		return w.AdmittedAt
	}
	return w.ReservedAt
}

// Leaving reports whether it holds quota and is being evicted.
func (w *Workload) Leaving() bool {
	return w.Held != nil && (w.Evicted || w.Assumed == Evicts || w.Withdrawn != nil)
}

// LostItsNodes reports whether it is being evicted because its nodes failed. What it releases is nominated for no other
// workload before it has had its own turn to be admitted again.
func (w *Workload) LostItsNodes() bool {
	return w.Leaving() && (w.NodesFailed || w.Evicted && w.LostNodes)
}

// Placed is what place.Map has of a workload: what it holds or has nominated, for which pods, and whether it is
// leaving. releases says whether it is expected to release node capacity.
type Placed struct {
	By                           *model.Admission
	Shape                        *Shape
	Nominated, Leaving, Releases bool
}

// Charges is what the ledgers and tallies contain for a workload.
type Charges struct {
	Queue *ClusterQueue
	Local *LocalQueue
	// Held and planned are the amounts charged to each ledger.
	Held, Planned quota.Vector
	Holder        *preempt.Holder
	Count         counted
}

// Nomination is capacity that a workload will be given once evicted workloads have released it. It is charged to the
// planned ledger, so that it is given to no other workload and never nominated twice.
type Nomination struct {
	Given *model.Admission
	Usage quota.Vector
	// Why is the reason to wait, if it is for evicted workloads.
	Why reason.Reason
	// CheckedAt is the PlacesVersion for which there was no capacity on nodes yet.
	CheckedAt int
}

// Replacement is what a workload waits for that lost some of its places and keeps the others: places that leaving
// workloads still use. They are nominated for it, in the planned ledger of place.Map, under a key of their own. Once
// they are free, or any others, the repair finds them like every other free place.
type Replacement struct {
	// Of is what the workload held when the places were found.
	Of        *model.Admission
	Nominated *place.Holding
	// CheckedAt is the PlacesVersion for which the places were not free yet.
	CheckedAt int
}

// ElasticSet returns the index of the workload's elastic pod set in what it holds, negative if it has none or its
// size must not change now. Only its job may make one smaller whose pods are tied.
func (w *Workload) ElasticSet() int {
	if w.Held == nil || w.Shape == nil || !w.Shape.Elastic {
		return -1
	}
	for i := range w.PodSets {
		ps := &w.PodSets[i]
		if ps.Elastic <= 0 || ps.MinCount <= 0 || ps.Reclaimable > 0 {
			continue
		}
		return slices.IndexFunc(w.Held.PodSets,
			func(a flavor.Assignment) bool { return a.PodSet == ps.Name && a.Count > 0 && len(a.Within) == 0 })
	}
	return -1
}

// HeldSet returns the workload's pod set whose assignment is at the index in what it holds.
func (w *Workload) HeldSet(at int) *flavor.PodSet { return w.PodSet(w.Held.PodSets[at].PodSet) }

// ResizableSet is ElasticSet for a pod set whose size the engine may choose.
func (w *Workload) ResizableSet() int {
	if at := w.ElasticSet(); at >= 0 && !w.HeldSet(at).Tied() {
		return at
	}
	return -1
}

// MayResize reports whether the size of the workload may change now. It may not if the workload does not run, is
// leaving, or has another decision about it in flight and so is no holder.
func (w *Workload) MayResize() bool { return w.Charged.Holder != nil && w.Admitted }

// ElasticJob returns the workload as a job whose size the engine may choose; ok is false if it may not now.
func (w *Workload) ElasticJob() (job elastic.Job, at int, ok bool) {
	at = w.ResizableSet()
	if at < 0 || !w.MayResize() {
		return elastic.Job{}, at, false
	}
	ps, size := w.HeldSet(at), w.Held.PodSets[at].Count
	// Its present size may be outside of the range that it wants now.
	return elastic.Job{Key: w.Key, Min: min(w.LeastOf(at), size), Max: max(ps.Most(), size), Size: size,
		Priority: w.Priority, QueuedAt: w.QueuedAt,
		RunsSince: w.ReservedAt, ResizedAt: w.ResizedAt, Exponent: ps.Elastic}, at, true
}

// LeastOf returns how few pods the held pod set at the index may have while the workload runs. Where its job needs a
// number of pods of whichever pod sets, it makes up for those that the others do not have.
func (w *Workload) LeastOf(at int) int32 {
	ps := w.HeldSet(at)
	var together int32
	for i := range w.PodSets {
		together = max(together, w.PodSets[i].Together)
	}
	for i := range w.Held.PodSets {
		if i != at {
			together -= min(together, w.Held.PodSets[i].Count)
		}
	}
	return max(ps.Least(), min(together, ps.Most()))
}

// PodSet returns the workload's pod set of that name, nil if it has none: a Workload's admission may name any.
func (w *Workload) PodSet(name string) *flavor.PodSet {
	if n := slices.IndexFunc(w.PodSets, func(ps flavor.PodSet) bool { return ps.Name == name }); n >= 0 {
		return &w.PodSets[n]
	}
	return nil
}

// MayGrow reports whether the workload may be given more than it has, regardless of capacity. A workload that could
// not be admitted in its present state may not: if it is deactivated, if its LocalQueue is stopped, deleted or points
// to another ClusterQueue, or if the API server has just rejected a decision about it.
func (w *Workload) MayGrow() bool {
	return !w.Inactive && !w.Refusal.InForce(w.Generation) && w.Local.open() &&
		w.Local.ClusterQueue == w.ClusterQueue.Name && w.ClusterQueue.Fault().Code == reason.None
}

// CouldGrow reports whether the workload may be larger if there is ever enough capacity.
func (w *Workload) CouldGrow(job *elastic.Job) bool {
	return job.Size < job.Max && !w.Held.HasSurplus() && !w.GrowthFailed && w.MayGrow()
}

// PodsPlanned returns for how many more pods of a resizable workload quota is planned.
func (w *Workload) PodsPlanned() int32 {
	if len(w.Growing) == 0 {
		return 0
	}
	first := w.Growing[0]
	return int32(first.Value / max(1, w.Charged.Holder.Pod.Of(first.Index)))
}

// Counts returns how the workload counts in the numbers of its queues.
func (w *Workload) Counts() counted {
	switch {
	case w.Gone:
		return counted{}
	case w.Held == nil && w.Inactive:
		return counted{}
	case w.Held == nil:
		return counted{Phase: Pending}
	}
	c := counted{Phase: Reserving, Leaving: w.Leaving() || w.Held.HasSurplus()}
	if w.Admitted || w.Assumed == Admits && len(w.Held.Checks) == 0 {
		// A withdrawn admission may be written all the same.
		c.Phase, c.Unready = Admitted, !w.Ready && (!w.Leaving() || w.Withdrawn != nil)
	}
	return c
}

// AwaitsAnyOf reports whether some of any of the amounts is nominated for the workload.
func (w *Workload) AwaitsAnyOf(amounts quota.Vector) bool {
	return w.Nomination != nil &&
		slices.ContainsFunc(amounts, func(a quota.Amount) bool { return a.Value > 0 && w.Nomination.Usage.Of(a.Index) > 0 })
}

// SortedByKey returns the workloads sorted by key, so that no result depends on map iteration order.
func SortedByKey(workloads map[order.Key]*Workload) []*Workload {
	out := make([]*Workload, 0, len(workloads))
	for _, key := range order.SortedKeys(workloads) {
		out = append(out, workloads[key])
	}
	return out
}

// Yield is a smaller size for a running workload.
type Yield struct {
	Workload *Workload
	At       int
	Given    *model.Admission
}

// ReclaimsFrom reports whether what is nominated for the workload is its queue's own quota, or that of a cohort above
// it which is not above the other queue too.
func (w *Workload) ReclaimsFrom(other *quota.Node) bool {
	above := map[*quota.Node]bool{}
	for n := other; n != nil; n = n.Parent() {
		above[n] = true
	}
	for n := w.ClusterQueue.Node; n != nil && !above[n]; n = n.Parent() {
		if !slices.ContainsFunc(w.Nomination.Usage,
			func(a quota.Amount) bool { return n.Over(quota.Planned, a.Index, 0) > 0 }) {
			return true
		}
	}
	return false
}

// WithdrawNomination takes the nomination back. The caller must update the charges of the workload.
func (w *Workload) WithdrawNomination() {
	w.Nomination = nil
	w.ClusterQueue.Nominated.Remove(w.Key)
	if f := w.ClusterQueue.Family; f != nil {
		f.Nominated.Remove(w.Key)
		f.Enqueue()
	}
}
