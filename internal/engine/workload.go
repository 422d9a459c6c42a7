package engine

import (
	"maps"
	"slices"
	"time"

	"github.com/musterhq/muster/internal/engine/elastic"
	"github.com/musterhq/muster/internal/engine/order"
	"github.com/musterhq/muster/internal/engine/place"
	"github.com/musterhq/muster/internal/engine/preempt"
	"github.com/musterhq/muster/internal/engine/quota"
	"github.com/musterhq/muster/internal/engine/reason"
)

// assumption is the kind of decision about a workload that the API server has not confirmed yet.
type assumption int

const (
	nothing assumption = iota
	admits
	replaces
	resizes
	evicts
	// tries: the API server is asked whether it would accept an admission. It holds nothing meanwhile.
	tries
)

// workload is a Workload with the engine's state for it.
type workload struct {
	Workload
	shape *shape
	local *localQueue
	// queue is the ClusterQueue in which it waits or whose quota it holds, nil if its LocalQueue names none.
	queue *clusterQueue
	// class is where it waits to be evaluated; nil if it does not.
	class *class
	// queueEntry is its entry in a list of its ClusterQueue while it holds nothing, localEntry its entry in a list of
	// its LocalQueue.
	queueEntry, localEntry order.Entry[*workload]
	// held is the admission as observed or assumed.
	held    *Admission
	assumed assumption
	// withdrawn is set once its admission was withdrawn: the eviction to make if the admission is written all the
	// same.
	withdrawn *Eviction
	// serial is that of the last decision about it, decidedOn the Version that was known at that time.
	serial, decidedOn int64
	// before is the admission before it was given other places or another size, until the write is confirmed.
	before *Admission
	// resizedBefore is ResizedAt before the last resize was decided.
	resizedBefore time.Time
	// promise is capacity that was promised to it, for which it waits.
	nomination *nomination
	// growing is what is planned for it beyond what it holds, once other workloads have released it.
	growing quota.Vector
	// growthFailed is set if other workloads shrank for its growth and it still could not grow.
	growthFailed bool
	// growthAwaits is the placesVersion for which pods were on the nodes yet that its growth is planned for.
	growthAwaits int
	// displaced has the UIDs of the workloads that stopped or shrank for its growth since it was admitted.
	preempted map[Key]string
	// vacated are the places of pods that have to terminate and may still exist.
	vacated []place.NodeCount
	// listedIn is the queue that lists it among its elastic workloads.
	listedIn *clusterQueue
	// placed is what place.Map has of it; avoid the nodes that kube-scheduler refused for it.
	placed placed
	avoid  avoidance
	// within are the nodes on which pods are counted whose assignment names domains only, by pod set.
	within map[string][]place.NodeCount
	// lostNodes is set if it is being evicted because its nodes failed; replacement is what it waits for if it keeps those
	// of its pods that have places.
	lostNodes   bool
	replacement *replacement
	// refusal is the API server's last rejection of a decision about it.
	refusal refusal
	why     reason.Reason
	// reported is the message of the reason that was reported last, reportedWhy that reason if this engine reported it.
	reported    string
	reportedWhy reason.Reason
	charged     charges
	// gone is set once the workload no longer exists and must not be counted.
	gone bool
}

func (w *workload) rank() order.Rank {
	return order.Rank{Priority: w.Priority, First: w.LostNodes, Since: w.QueuedAt, Key: w.Key}
}

// leaving reports whether it holds quota and is being evicted.
func (w *workload) leaving() bool {
	return w.held != nil && (w.Evicted || w.assumed == evicts || w.withdrawn != nil)
}

// lostItsNodes reports whether it is being evicted because its nodes failed. What it releases is promised to no other
// workload before it has had its own turn to be admitted again.
func (w *workload) lostItsNodes() bool {
	return w.leaving() && (w.lostNodes || w.Evicted && w.LostNodes)
}

// placed is what place.Map has of a workload: what it holds or was promised, for which pods, and whether it is
// leaving. releases says whether it is expected to release node capacity.
type placed struct {
	by                           *Admission
	shape                        *shape
	nominated, leaving, releases bool
}

// charges is what the ledgers and tallies contain for a workload.
type charges struct {
	queue *clusterQueue
	local *localQueue
	// held and planned are the amounts charged to each ledger.
	held, planned quota.Vector
	holder        *preempt.Holder
	count         counted
}

// promise is capacity that a workload will be given once evicted workloads have released it. It is charged to the
// planned ledger, so that it is given to no other workload and never promised twice.
type nomination struct {
	given *Admission
	usage quota.Vector
	// why is the reason to wait, if it is for evicted workloads.
	why reason.Reason
	// checkedAt is the placesVersion for which there was no capacity on nodes yet.
	checkedAt int
}

// replacement is what a workload waits for that lost some of its places and keeps the others: places that leaving
// workloads still use. They are promised to it, in the planned ledger of place.Map, under a key of their own. Once they
// are free, or any others, the repair finds them like every other free place.
type replacement struct {
	// of is what the workload held when the places were found.
	of       *Admission
	promised *place.Holding
	// checkedAt is the placesVersion for which the places were not free yet.
	checkedAt int
}

// elasticSet returns the index of the workload's elastic pod set in what it holds, negative if it has none or its
// size must not change now. Only its job may make one smaller whose pods are tied.
func (w *workload) elasticSet() int {
	if w.held == nil || w.shape == nil || !w.shape.elastic {
		return -1
	}
	for i := range w.PodSets {
		ps := &w.PodSets[i]
		if ps.Elastic <= 0 || ps.MinCount <= 0 || ps.Reclaimable > 0 {
			continue
		}
		return slices.IndexFunc(w.held.PodSets, func(a Assignment) bool { return a.PodSet == ps.Name && a.Count > 0 && len(a.Within) == 0 })
	}
	return -1
}

// resizableSet is elasticSet for a pod set whose size the engine may choose.
func (w *workload) resizableSet() int {
	if at := w.elasticSet(); at >= 0 && !w.podSet(w.held.PodSets[at].PodSet).Tied() {
		return at
	}
	return -1
}

// mayResize reports whether the size of the workload may change now. It may not if the workload does not run, is
// leaving, or has another decision about it in flight and so is no holder.
func (w *workload) mayResize() bool { return w.charged.holder != nil && w.Admitted }

// elasticJob returns the workload as a job whose size the engine may choose; ok is false if it may not now.
func (w *workload) elasticJob() (job elastic.Job, at int, ok bool) {
	at = w.resizableSet()
	if at < 0 || !w.mayResize() {
		return elastic.Job{}, at, false
	}
	ps, size := w.podSet(w.held.PodSets[at].PodSet), w.held.PodSets[at].Count
	// Its present size may be outside of the range that it wants now.
	return elastic.Job{Key: w.Key, Min: min(w.leastOf(at), size), Max: max(ps.Most(), size), Size: size, Priority: w.Priority, QueuedAt: w.QueuedAt,
		RunsSince: w.ReservedAt, ResizedAt: w.ResizedAt, Exponent: ps.Elastic}, at, true
}

// leastOf returns how few pods the held pod set at the index may have while the workload runs. Where its job needs a
// number of pods of whichever pod sets, it makes up for those that the others do not have.
func (w *workload) leastOf(at int) int32 {
	ps := w.podSet(w.held.PodSets[at].PodSet)
	var together int32
	for i := range w.PodSets {
		together = max(together, w.PodSets[i].Together)
	}
	for i := range w.held.PodSets {
		if i != at {
			together -= min(together, w.held.PodSets[i].Count)
		}
	}
	return max(ps.Least(), min(together, ps.Most()))
}

// podSet returns the workload's pod set of that name, nil if it has none: a Workload's admission may name any.
func (w *workload) podSet(name string) *PodSet {
	if n := slices.IndexFunc(w.PodSets, func(ps PodSet) bool { return ps.Name == name }); n >= 0 {
		return &w.PodSets[n]
	}
	return nil
}

// mayGrow reports whether the workload may be given more than it has, regardless of capacity. A workload that could
// not be admitted in its present state may not: if it is deactivated, if its LocalQueue is stopped, deleted or points
// to another ClusterQueue, or if the API server has just rejected a decision about it.
func (w *workload) mayGrow() bool {
	return !w.Inactive && !w.refusal.inForce(w.Generation) && w.local.open() && w.local.ClusterQueue == w.queue.Name && w.queue.fault().Code == reason.None
}

// couldGrow reports whether the workload may be larger if there is ever enough capacity.
func (w *workload) couldGrow(job *elastic.Job) bool {
	return job.Size < job.Max && !w.held.HasSurplus() && !w.growthFailed && w.mayGrow()
}

// podsPlanned returns for how many more pods of a resizable workload quota is planned.
func (w *workload) podsPlanned() int32 {
	if len(w.growing) == 0 {
		return 0
	}
	first := w.growing[0]
	return int32(first.Value / max(1, w.charged.holder.Pod.Of(first.Index)))
}

func (w *workload) counts() counted {
	switch {
	case w.gone:
		return counted{}
	case w.held == nil && w.Inactive:
		return counted{}
	case w.held == nil:
		return counted{state: pending}
	}
	c := counted{state: reserving, leaving: w.leaving() || w.held.HasSurplus()}
	if w.Admitted || w.assumed == admits && len(w.held.Checks) == 0 {
		// A withdrawn admission may be written all the same.
		c.state, c.unready = admitted, !w.Ready && (!w.leaving() || w.withdrawn != nil)
	}
	return c
}

// awaitsAnyOf reports whether the workload was promised some of any of the amounts.
func (w *workload) awaitsAnyOf(amounts quota.Vector) bool {
	return w.nomination != nil && slices.ContainsFunc(amounts, func(a quota.Amount) bool { return a.Value > 0 && w.nomination.usage.Of(a.Index) > 0 })
}

// sortedByKey returns the workloads sorted by key, so that no result depends on map iteration order.
func sortedByKey(workloads map[Key]*workload) []*workload {
	out := make([]*workload, 0, len(workloads))
	for _, key := range slices.SortedFunc(maps.Keys(workloads), order.CompareKeys) {
		out = append(out, workloads[key])
	}
	return out
}

// yield is a smaller size for a running workload.
type yield struct {
	w     *workload
	at    int
	given *Admission
}
