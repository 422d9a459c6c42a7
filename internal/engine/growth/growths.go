package growth

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/musterhq/muster/internal/engine/elastic"
	"github.com/musterhq/muster/internal/engine/nodes"
	"github.com/musterhq/muster/internal/engine/order"
	"github.com/musterhq/muster/internal/engine/place"
	"github.com/musterhq/muster/internal/engine/quota"
	"github.com/musterhq/muster/internal/engine/state"
	"github.com/musterhq/muster/internal/engine/waiting"
)

// The size of an elastic pod set changes while its workload runs. The workload is admitted with as many pods as fit,
// from its minimum on, like any workload with partial admission. It shrinks for waiting workloads (trial.go) and grows
// into free capacity (a step of each pass of the engine). The quota and the node capacity of removed pods stay held
// until the pods are gone, and are already free in the planned ledger. Remaining ranks keep their places: the last ones
// are removed.

// Growths is what lets the elastic workloads that run be larger, of all queues: whose turn it is, and what they may
// take.
type Growths struct {
	Policy elastic.Policy
	speeds elastic.Speeds
	queues map[string]*state.ClusterQueue
	nodes  *nodes.Nodes
	// timers says, by queue, when a workload that may not grow yet may grow; Now is the time of the last Decide.
	timers *waiting.Timers
	Now    time.Time
	// Delays reports whether more pods of a workload, on these nodes, would delay a planned start; nil if none is planned.
	Delays func(w *state.Workload, at int, pods int32, on []place.NodeCount) bool
	// Surplus are the workloads that hold more pods than their jobs want.
	Surplus sets.Set[order.Key]
}

// New returns the growths of the queues, which are none yet.
func New(policy elastic.Policy, queues map[string]*state.ClusterQueue, nodes *nodes.Nodes,
	timers *waiting.Timers) *Growths {
	return &Growths{Policy: policy, speeds: elastic.Speeds{}, queues: queues, nodes: nodes, timers: timers,
		Surplus: sets.New[order.Key]()}
}

// SetTime sets the time of a pass. If the clock was set back, workloads that were to grow soon are not any more, and
// those may fit that waited for them.
func (g *Growths) SetTime(now time.Time) {
	if now.Before(g.Now) {
		for _, q := range g.queues {
			q.Recharged()
		}
	}
	g.Now = now
}

// List lists the workload among the elastic ones of its queue, or removes it.
func (g *Growths) List(w *state.Workload) {
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

// NoteSurplus notes whether the workload holds more pods than its job wants.
func (g *Growths) NoteSurplus(w *state.Workload) {
	if at := w.ElasticSet(); at >= 0 && w.Held.PodSets[at].Count > w.HeldSet(at).Most() {
		g.Surplus.Insert(w.Key)
	} else {
		g.Surplus.Delete(w.Key)
	}
}

// ReserveFrom returns when to begin keeping capacity for the job to grow to this size.
func (g *Growths) ReserveFrom(job *elastic.Job, to int32) time.Time {
	return g.Policy.GrowsAt(job, to).Add(-elastic.SizesLast)
}

// GrownAs returns how many more pods each of those at the indices would get of what is planned to be free, and their
// sum. Those for which growth will not be worth its cost soon do not count; later is when it is for the first of
// them.
func (g *Growths) GrownAs(q *state.ClusterQueue, t *state.Resizable, indices []int,
	free func(quota.Index) int64) (more []int32, sum int32, later time.Time) {
	more = make([]int32, len(indices))
	var able, members []int // the workloads with any free quota: their positions in indices, and their indices
	for n, i := range indices {
		if !slices.ContainsFunc(t.Each[i], func(a quota.Amount) bool { return free(a.Index) < a.Value }) {
			able, members = append(able, n), append(members, i)
		}
	}
	jobs := g.HeadroomOf(q, t, place.Planned).Share(members, nil, free)
	for at, n := range able {
		i := indices[n]
		if more[n] = jobs[at].Size - t.Jobs[i].Size; more[n] == 0 {
			continue
		}
		if soon := g.ReserveFrom(&t.Jobs[i], t.Jobs[i].Size+more[n]); soon.After(g.Now) {
			more[n] = 0
			if later.IsZero() || soon.Before(later) {
				later = soon
			}
		}
		sum += more[n]
	}
	return more, sum, later
}

// PerBudget is how many elastic workloads cost as much to evaluate as one waiting workload.
const PerBudget = 50

// ResizableOf returns the snapshot for the queue. If only a few workloads have changed, only their entries are
// updated.
func (g *Growths) ResizableOf(q *state.ClusterQueue) *state.Resizable {
	switch t := q.Resizable; {
	case t == nil || len(q.Stale) > fewStale+len(q.Elastic)/elasticPerStale:
		q.Resizable = g.ListResizable(q)
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

// ListResizable builds the list for the queue.
func (g *Growths) ListResizable(q *state.ClusterQueue) *state.Resizable {
	n := len(q.Elastic)
	t := &state.Resizable{Policy: g.Policy, Yieldings: map[int32]*elastic.Yielding{}, Growers: map[int32]*state.Growers{},
		Jobs: make([]elastic.Job, 0, n), Members: make([]*state.Workload, 0, n), At: make([]int, 0, n),
		Each: make([]quota.Vector, 0, n), Grows: make([]bool, 0, n), Planned: make([]int32, 0, n)}
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
func (g *Growths) refreshEntry(t *state.Resizable, q *state.ClusterQueue, w *state.Workload) {
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
func (g *Growths) setEntry(t *state.Resizable, n int, w *state.Workload, job elastic.Job, at int) {
	job.Speeds = g.speeds.Of(job.Exponent, job.Max)
	t.Jobs[n], t.Members[n], t.At[n], t.Each[n], t.Grows[n], t.Planned[n] = job, w, at, w.Charged.Holder.Pod,
		w.CouldGrow(&job), w.PodsPlanned()
}

// fewStale and elasticPerStale bound the entries that are updated in place: with more stale ones than fewStale plus one
// in elasticPerStale, it is less work to rebuild the list.
const fewStale, elasticPerStale = 4, 32

// StartDue puts the families on the agenda in which a workload may grow by now.
func (g *Growths) StartDue(now time.Time) {
	for {
		key, due := g.timers.Take(waiting.Grow, now)
		if !due {
			return
		}
		if q := g.queues[key.Name]; q != nil {
			q.Family.Enqueue()
		}
	}
}

// Growth is a larger size for a workload that runs.
type Growth struct {
	Workload *state.Workload
	At       int
	To       int32
}
