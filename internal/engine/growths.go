package engine

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/musterhq/muster/internal/engine/elastic"
	"github.com/musterhq/muster/internal/engine/order"
	"github.com/musterhq/muster/internal/engine/place"
	"github.com/musterhq/muster/internal/engine/quota"
	"github.com/musterhq/muster/internal/engine/waiting"
)

// The size of an elastic pod set changes while its workload runs. The workload is admitted with as many pods as fit,
// from its minimum on, like any workload with partial admission. It shrinks for waiting workloads (growth_trial.go) and
// grows into free capacity (grow.go). The quota and the node capacity of removed pods stay held until the pods are
// gone, and are already free in the planned ledger. Remaining ranks keep their places: the last ones are removed.

// growths is what lets the elastic workloads that run be larger, of all queues: whose turn it is, and what they may take.
type growths struct {
	policy  elastic.Policy
	speeds  elastic.Speeds
	tree    *quota.Tree
	ledgers ledgers
	queues  map[string]*clusterQueue
	nodes   *nodes
	// timers says, by queue, when a workload that may not grow yet may grow; now is the time of the last Decide.
	timers *waiting.Timers
	now    time.Time
	// surplus are the workloads that hold more pods than their jobs want.
	surplus sets.Set[Key]
}

func newGrowths(policy elastic.Policy, tree *quota.Tree, queues map[string]*clusterQueue, nodes *nodes, timers *waiting.Timers) *growths {
	return &growths{policy: policy, speeds: elastic.Speeds{}, tree: tree, ledgers: ledgers{tree}, queues: queues, nodes: nodes,
		timers: timers, surplus: sets.New[Key]()}
}

// list lists the workload among the elastic ones of its queue, or removes it.
func (g *growths) list(w *workload) {
	was, may := w.listedIn, w.queue != nil && w.resizableSet() >= 0
	if was != nil && (!may || was != w.queue) {
		was.removeElastic(w)
		w.listedIn = nil
	}
	if may && w.listedIn == nil {
		w.queue.addElastic(w)
		w.listedIn = w.queue
	}
	for _, q := range []*clusterQueue{was, w.listedIn} {
		if q != nil && (q.resizable == nil || len(q.stale) > 0 || !q.resizable.has(w)) {
			q.markStale(w)
			q.waits.GrowthChanged()
		}
	}
}

// noteSurplus notes whether the workload holds more pods than its job wants.
func (g *growths) noteSurplus(w *workload) {
	if at := w.elasticSet(); at >= 0 && w.held.PodSets[at].Count > w.podSet(w.held.PodSets[at].PodSet).Most() {
		g.surplus.Insert(w.Key)
	} else {
		g.surplus.Delete(w.Key)
	}
}

// reserveFrom returns when to begin keeping capacity for the job to grow to this size.
func (g *growths) reserveFrom(job *elastic.Job, to int32) time.Time {
	return g.policy.GrowsAt(job, to).Add(-elastic.SizesLast)
}

// grownAs returns how many more pods each of those at the indices would get of what is planned to be free, and their
// sum. Those for which growth will not be worth its cost soon do not count; later is when it is for the first of
// them.
func (g *growths) grownAs(q *clusterQueue, t *resizable, indices []int, free func(quota.Index) int64) (more []int32, sum int32, later time.Time) {
	more = make([]int32, len(indices))
	var able, members []int // the workloads with any free quota: their positions in indices, and their indices
	for n, i := range indices {
		if !slices.ContainsFunc(t.each[i], func(a quota.Amount) bool { return free(a.Index) < a.Value }) {
			able, members = append(able, n), append(members, i)
		}
	}
	jobs := g.headroomOf(q, t, place.Planned).share(members, nil, free)
	for at, n := range able {
		i := indices[n]
		if more[n] = jobs[at].Size - t.jobs[i].Size; more[n] == 0 {
			continue
		}
		if soon := g.reserveFrom(&t.jobs[i], t.jobs[i].Size+more[n]); soon.After(g.now) {
			more[n] = 0
			if later.IsZero() || soon.Before(later) {
				later = soon
			}
		}
		sum += more[n]
	}
	return more, sum, later
}

// elasticPerBudget is how many elastic workloads cost as much to evaluate as one waiting workload.
const elasticPerBudget = 50

// addElastic adds the workload to the elastic ones of the queue, which are sorted by key; removeElastic removes it.
func (cq *clusterQueue) addElastic(w *workload) {
	at, _ := cq.indexOfElastic(w)
	cq.elastic = slices.Insert(cq.elastic, at, w)
}

func (cq *clusterQueue) removeElastic(w *workload) {
	if at, ok := cq.indexOfElastic(w); ok {
		cq.elastic = slices.Delete(cq.elastic, at, at+1)
		cq.markStale(w)
	}
}

// markStale notes that the workload's entry in the queue's resizable is stale.
func (cq *clusterQueue) markStale(w *workload) {
	if cq.resizable != nil {
		cq.stale = append(cq.stale, w)
	}
}

func (cq *clusterQueue) indexOfElastic(w *workload) (int, bool) {
	return slices.BinarySearchFunc(cq.elastic, w.Key, func(w *workload, key Key) int { return order.CompareKeys(w.Key, key) })
}

// resizableOf returns the snapshot for the queue. If only a few workloads have changed, only their entries are
// updated.
func (g *growths) resizableOf(q *clusterQueue) *resizable {
	switch t := q.resizable; {
	case t == nil || len(q.stale) > fewStale+len(q.elastic)/elasticPerStale:
		q.resizable = g.listResizable(q)
	case len(q.stale) == 0:
		return t
	default:
		for _, w := range q.stale {
			g.refreshEntry(t, q, w)
		}
		clear(t.yieldings)
		clear(t.growers)
	}
	clear(q.stale)
	q.stale = q.stale[:0]
	q.listings++
	if q.family != nil {
		q.family.listings++
	}
	return q.resizable
}

// listResizable builds the list for the queue.
func (g *growths) listResizable(q *clusterQueue) *resizable {
	n := len(q.elastic)
	t := &resizable{policy: g.policy, yieldings: map[int32]*elastic.Yielding{}, growers: map[int32]*growers{},
		jobs: make([]elastic.Job, 0, n), members: make([]*workload, 0, n), at: make([]int, 0, n), each: make([]quota.Vector, 0, n), grows: make([]bool, 0, n), planned: make([]int32, 0, n)}
	for _, w := range q.elastic {
		if job, at, ok := w.elasticJob(); ok {
			t.insert(len(t.members))
			g.setEntry(t, len(t.members)-1, w, job, at)
		}
	}
	return t
}

// refreshEntry updates the entry of the workload, which may be new, changed, replaced by another of its name, or no
// longer resizable.
func (g *growths) refreshEntry(t *resizable, q *clusterQueue, w *workload) {
	n, known := t.find(w.Key)
	job, at, ok := w.elasticJob()
	switch ok = ok && w.listedIn == q; {
	case ok:
		if !known {
			t.insert(n)
		}
		g.setEntry(t, n, w, job, at)
	case known && t.members[n] == w:
		t.remove(n)
	}
}

// setEntry sets the entry at an index.
func (g *growths) setEntry(t *resizable, n int, w *workload, job elastic.Job, at int) {
	job.Speeds = g.speeds.Of(job.Exponent, job.Max)
	t.jobs[n], t.members[n], t.at[n], t.each[n], t.grows[n], t.planned[n] = job, w, at, w.charged.holder.Pod, w.couldGrow(&job), w.podsPlanned()
}

// fewStale and elasticPerStale bound the entries that are updated in place: with more stale ones than fewStale plus one
// in elasticPerStale, it is less work to rebuild the list.
const fewStale, elasticPerStale = 4, 32
