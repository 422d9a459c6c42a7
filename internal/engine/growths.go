package engine

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/musterhq/muster/internal/engine/elastic"
	"github.com/musterhq/muster/internal/engine/nodes"
	"github.com/musterhq/muster/internal/engine/place"
	"github.com/musterhq/muster/internal/engine/quota"
	"github.com/musterhq/muster/internal/engine/state"
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
	ledgers state.Ledgers
	queues  map[string]*state.ClusterQueue
	nodes   *nodes.Nodes
	// timers says, by queue, when a workload that may not grow yet may grow; now is the time of the last Decide.
	timers *waiting.Timers
	now    time.Time
	// surplus are the workloads that hold more pods than their jobs want.
	surplus sets.Set[Key]
}

func newGrowths(policy elastic.Policy, tree *quota.Tree, queues map[string]*state.ClusterQueue, nodes *nodes.Nodes, timers *waiting.Timers) *growths {
	return &growths{policy: policy, speeds: elastic.Speeds{}, tree: tree, ledgers: state.Ledgers{Tree: tree}, queues: queues, nodes: nodes,
		timers: timers, surplus: sets.New[Key]()}
}

// list lists the workload among the elastic ones of its queue, or removes it.
func (g *growths) list(w *state.Workload) {
	was, may := w.ListedIn, w.ClusterQueue != nil && w.ResizableSet() >= 0
	if was != nil && (!may || was != w.ClusterQueue) {
		was.RemoveElastic(w)
		w.ListedIn = nil
	}
	if may && w.ListedIn == nil {
		w.ClusterQueue.AddElastic(w)
		w.ListedIn = w.ClusterQueue
	}
	for _, q := range []*state.ClusterQueue{was, w.ListedIn} {
		if q != nil && (q.Resizable == nil || len(q.Stale) > 0 || !q.Resizable.Has(w)) {
			q.MarkStale(w)
			q.Waits.GrowthChanged()
		}
	}
}

// noteSurplus notes whether the workload holds more pods than its job wants.
func (g *growths) noteSurplus(w *state.Workload) {
	if at := w.ElasticSet(); at >= 0 && w.Held.PodSets[at].Count > w.PodSet(w.Held.PodSets[at].PodSet).Most() {
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
func (g *growths) grownAs(q *state.ClusterQueue, t *state.Resizable, indices []int, free func(quota.Index) int64) (more []int32, sum int32, later time.Time) {
	more = make([]int32, len(indices))
	var able, members []int // the workloads with any free quota: their positions in indices, and their indices
	for n, i := range indices {
		if !slices.ContainsFunc(t.Each[i], func(a quota.Amount) bool { return free(a.Index) < a.Value }) {
			able, members = append(able, n), append(members, i)
		}
	}
	jobs := g.headroomOf(q, t, place.Planned).share(members, nil, free)
	for at, n := range able {
		i := indices[n]
		if more[n] = jobs[at].Size - t.Jobs[i].Size; more[n] == 0 {
			continue
		}
		if soon := g.reserveFrom(&t.Jobs[i], t.Jobs[i].Size+more[n]); soon.After(g.now) {
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

// resizableOf returns the snapshot for the queue. If only a few workloads have changed, only their entries are
// updated.
func (g *growths) resizableOf(q *state.ClusterQueue) *state.Resizable {
	switch t := q.Resizable; {
	case t == nil || len(q.Stale) > fewStale+len(q.Elastic)/elasticPerStale:
		q.Resizable = g.listResizable(q)
	case len(q.Stale) == 0:
		return t
	default:
		for _, w := range q.Stale {
			g.refreshEntry(t, q, w)
		}
		clear(t.Yieldings)
		clear(t.Growers)
	}
	clear(q.Stale)
	q.Stale = q.Stale[:0]
	q.Listings++
	if q.Family != nil {
		q.Family.Listings++
	}
	return q.Resizable
}

// listResizable builds the list for the queue.
func (g *growths) listResizable(q *state.ClusterQueue) *state.Resizable {
	n := len(q.Elastic)
	t := &state.Resizable{Policy: g.policy, Yieldings: map[int32]*elastic.Yielding{}, Growers: map[int32]*state.Growers{},
		Jobs: make([]elastic.Job, 0, n), Members: make([]*state.Workload, 0, n), At: make([]int, 0, n), Each: make([]quota.Vector, 0, n), Grows: make([]bool, 0, n), Planned: make([]int32, 0, n)}
	for _, w := range q.Elastic {
		if job, at, ok := w.ElasticJob(); ok {
			t.Insert(len(t.Members))
			g.setEntry(t, len(t.Members)-1, w, job, at)
		}
	}
	return t
}

// refreshEntry updates the entry of the workload, which may be new, changed, replaced by another of its name, or no
// longer resizable.
func (g *growths) refreshEntry(t *state.Resizable, q *state.ClusterQueue, w *state.Workload) {
	n, known := t.Find(w.Key)
	job, at, ok := w.ElasticJob()
	switch ok = ok && w.ListedIn == q; {
	case ok:
		if !known {
			t.Insert(n)
		}
		g.setEntry(t, n, w, job, at)
	case known && t.Members[n] == w:
		t.Remove(n)
	}
}

// setEntry sets the entry at an index.
func (g *growths) setEntry(t *state.Resizable, n int, w *state.Workload, job elastic.Job, at int) {
	job.Speeds = g.speeds.Of(job.Exponent, job.Max)
	t.Jobs[n], t.Members[n], t.At[n], t.Each[n], t.Grows[n], t.Planned[n] = job, w, at, w.Charged.Holder.Pod, w.CouldGrow(&job), w.PodsPlanned()
}

// fewStale and elasticPerStale bound the entries that are updated in place: with more stale ones than fewStale plus one
// in elasticPerStale, it is less work to rebuild the list.
const fewStale, elasticPerStale = 4, 32
