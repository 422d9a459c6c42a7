package engine

import (
	"slices"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/musterhq/muster/internal/engine/evaluate"
	"github.com/musterhq/muster/internal/engine/growth"
	"github.com/musterhq/muster/internal/engine/nodes"
	"github.com/musterhq/muster/internal/engine/order"
	"github.com/musterhq/muster/internal/engine/place"
	"github.com/musterhq/muster/internal/engine/preempt"
	"github.com/musterhq/muster/internal/engine/quota"
	"github.com/musterhq/muster/internal/engine/reason"
	"github.com/musterhq/muster/internal/engine/state"
	"github.com/musterhq/muster/internal/engine/waiting"
)

// Engine is the state from which decisions are made. Create one with New. It is not safe for concurrent use.
type Engine struct {
	options Options
	// budget is passBudget, or less in tests.
	budget      int
	tree        *quota.Tree
	queues      map[string]*state.ClusterQueue
	localQueues map[Key]*state.LocalQueue
	namespaces  map[string]labels.Set
	workloads   map[Key]*state.Workload
	shapes      map[string]*state.Shape

	// What the engine knows and works out, by what it is about.
	nodes        *nodes.Nodes
	ledgers      state.Ledgers
	holdBacks    state.HoldBacks
	growths      *growth.Growths
	evaluator    *evaluate.Evaluator
	reports      reports
	refusals     refusals
	avoidances   avoidances
	evictions    evictions
	usageHistory usageHistory
	*tallies

	// waiting is where blocked classes wait. nodesPublishedAt is the change count of places for which it was last told that
	// nodes have changed.
	waiting          *waiting.Room
	nodesPublishedAt uint64

	// families are the groups of queues that share quota, by FamilyName; agenda has those with work to do.
	families map[string]*state.Family
	agenda   state.Agenda
	// lastDecided is the name of the family that was processed last.
	lastDecided string

	// serial is that of the last decision. superseded has, by workload, the decisions that were superseded since the
	// last TakeSuperseded.
	serial     int64
	superseded map[Key]int64

	// Changes since the last Decide: reshaped is set when quotas or cohorts changed, and recohorted has the cohorts;
	// changed and relocated are the ClusterQueues and LocalQueues whose workloads must be routed again.
	reshaped   bool
	recohorted sets.Set[string]
	changed    sets.Set[string]
	relocated  sets.Set[Key]
}

// New returns an engine without any objects.
func New(options Options) *Engine {
	e := &Engine{
		options:     options,
		budget:      passBudget,
		tree:        &quota.Tree{},
		queues:      map[string]*state.ClusterQueue{},
		localQueues: map[Key]*state.LocalQueue{},
		namespaces:  map[string]labels.Set{},
		workloads:   map[Key]*state.Workload{},
		shapes:      map[string]*state.Shape{},
		families:    map[string]*state.Family{},
		waiting:     waiting.NewRoom(),
		superseded:  map[Key]int64{},
		recohorted:  sets.New[string](),
		changed:     sets.New[string](),
		relocated:   sets.New[Key](),
	}
	e.nodes = nodes.New(e.workloads)
	e.ledgers, e.holdBacks = state.Ledgers{Tree: e.tree}, state.HoldBacks{Tree: e.tree}
	e.growths = growth.New(options.Elastic, e.tree, e.queues, e.nodes, &e.waiting.Timers)
	e.evictions = evictions{precedence: &preempt.Precedence{}, written: sets.New[Key]()}
	e.evaluator = &evaluate.Evaluator{Options: options, Tree: e.tree, Queues: e.queues, Workloads: e.workloads,
		Precedence: e.evictions.precedence, Nodes: e.nodes, Ledgers: e.ledgers, Growths: e.growths}
	e.reports.workloads = e.workloads
	e.waiting.Longest[waiting.RetryRefused], e.waiting.Longest[waiting.ForgetAvoided] = state.LongestRetry, state.LongestAvoidance
	e.refusals = refusals{&e.waiting.Timers}
	e.avoidances = avoidances{workloads: e.workloads, untimed: sets.New[Key](), timers: &e.waiting.Timers}
	e.tallies = &tallies{options: options, tree: e.tree, ledgers: e.ledgers, queues: e.queues, localQueues: e.localQueues,
		usageChanged: sets.New[string](), localUsageChanged: sets.New[Key](), activeChanged: sets.New[Key](), sharesChanged: sets.New[string]()}
	e.usageHistory = usageHistory{options: options, ledgers: e.ledgers, tallies: e.tallies, queues: e.queues,
		localQueues: e.localQueues, workloads: e.workloads}
	return e
}

// evictions has which workloads were evicted for which other ones, and the evictions that are still to be decided.
type evictions struct {
	precedence *preempt.Precedence
	// written are withdrawn workloads whose admission was written all the same: the next pass decides whether to evict
	// them.
	written sets.Set[Key]
}

// trackWithdrawn schedules that decision once a withdrawn workload is known to hold its quota.
func (e *evictions) trackWithdrawn(w *state.Workload) {
	if w.Withdrawn != nil && w.Assumed == state.Nothing {
		e.written.Insert(w.Key)
	} else {
		e.written.Delete(w.Key)
	}
}

func (e *Engine) queue(name string) *state.ClusterQueue {
	q := e.queues[name]
	if q == nil {
		q = &state.ClusterQueue{Fairly: e.options.FairSharing != nil, Classes: map[state.ClassKey]*state.Class{}, Locals: map[Key]*state.LocalQueue{},
			Waits: e.waiting.NewQueue(func(c *waiting.Class) func(quota.FlavorResource) bool {
				return e.evaluator.FormOf(state.ClassOf(c)).Asks
			}),
			Waiting: &order.List[*state.Workload]{}, Unrouted: &order.List[*state.Workload]{},
			Entitled: order.NewHeap(func(a, b *state.Class) bool { return a.Before(&b.Class) }, func(c *state.Class) *order.Place { return &c.EntitledAt })}
		q.Set(ClusterQueue{Name: name})
		q.Exists = false
		e.queues[name] = q
	}
	return q
}

// queueChanged marks all workloads that wait in the queue to be routed again.
func (e *Engine) queueChanged(q *state.ClusterQueue) {
	q.Revision++
	order.MoveAll(&q.Waiting, &q.Unrouted)
	e.changed.Insert(q.Name)
}

func (e *Engine) local(key Key) *state.LocalQueue {
	l := e.localQueues[key]
	if l == nil {
		l = &state.LocalQueue{LocalQueue: LocalQueue{Key: key}, Members: &order.List[*state.Workload]{}, Unrouted: &order.List[*state.Workload]{}, Classes: map[*state.Class]struct{}{}}
		e.localQueues[key] = l
	}
	return l
}

func (e *Engine) dropIfUnused(l *state.LocalQueue) {
	if !l.Exists && l.Members.Len() == 0 && l.Unrouted.Len() == 0 {
		delete(e.localQueues, l.Key)
		e.relocated.Delete(l.Key)
		e.forgetLeft(l)
	}
}

// forgetLeft forgets the ClusterQueues that the LocalQueue pointed to before, as none of its workloads waits there any
// more. Those that do not exist, and that nothing else names, are not known any more: anyone may name new ones for ever.
func (e *Engine) forgetLeft(l *state.LocalQueue) {
	for _, q := range l.Left {
		e.forgetIfUnused(q)
	}
	l.Left = nil
}

// forgetIfUnused forgets a ClusterQueue that does not exist once nothing names it. A pass does so if queues have changed.
func (e *Engine) forgetIfUnused(q *state.ClusterQueue) {
	if q.Family == nil && q.Unreferenced() && e.queues[q.Name] == q && !e.changed.Has(q.Name) {
		delete(e.queues, q.Name)
	}
}

// relocate marks all workloads of the LocalQueue to be routed again, because it was created, deleted, stopped or
// resumed, or points to another ClusterQueue than from.
func (e *Engine) relocate(l *state.LocalQueue, from *state.ClusterQueue) {
	if from != nil && from != e.queues[l.ClusterQueue] && !slices.Contains(l.Left, from) {
		l.Left = append(l.Left, from)
	}
	order.MoveAll(&l.Members, &l.Unrouted)
	e.relocated.Insert(l.Key)
}

// mustWait returns why the whole queue has to wait even if there is capacity.
func (e *Engine) mustWait(q *state.ClusterQueue) reason.Reason {
	switch {
	case e.options.BlockUntilReady == BlockQueue && q.Unready > 0:
		return reason.Reason{Code: reason.WaitingForPodsReady, Detail: "waiting for all admitted workloads of ClusterQueue " + q.Name + " to be in PodsReady condition"}
	case e.options.BlockUntilReady == BlockAll && e.tallies.unready > 0:
		return reason.Reason{Code: reason.WaitingForPodsReady, Detail: "waiting for all admitted workloads to be in PodsReady condition"}
	}
	return reason.Reason{}
}

// whyInadmissible returns why the workload cannot be admitted regardless of free capacity.
func (e *Engine) whyInadmissible(w *state.Workload) reason.Reason {
	switch {
	case w.Inactive:
		return reason.Reason{Code: reason.Deactivated, Detail: "The workload is deactivated"}
	case w.Unheld:
		return reason.Reason{Code: reason.PendingEvaluation, Detail: "its pods were started before it had quota; it waits until they are stopped"}
	case w.Queue == "":
		return reason.Inadmissiblef("the Workload names no LocalQueue: set its spec.queueName")
	case !w.Local.Exists:
		return reason.Inadmissiblef("LocalQueue %s doesn't exist", w.Queue)
	case w.Local.Terminating:
		return reason.Inadmissiblef("LocalQueue %s is being deleted", w.Queue)
	case w.Refused != "":
		return reason.Inadmissiblef("%s", w.Refused)
	case w.Refusal.InForce(w.Generation), w.Assumed == state.Tries:
		return w.Refusal.Why()
	case w.Local.Stopped:
		return reason.OnHoldf("LocalQueue %s is stopped", w.Queue)
	}
	if why := w.ClusterQueue.Fault(); why.Code != reason.None {
		return why
	}
	switch {
	case !w.ClusterQueue.Selector.Matches(e.namespaces[w.Key.Namespace]):
		return reason.Inadmissiblef("Workload namespace doesn't match ClusterQueue selector")
	case w.BackoffReason != "":
		return reason.Reason{Code: reason.PendingEvaluation, Detail: w.BackoffReason}
	case w.Gated != "":
		return reason.Reason{Code: reason.AdmissionGated, Detail: "Admission is gated by: " + w.Gated}
	}
	return reason.Reason{}
}

// LocalQueueUsage returns the usage of a LocalQueue, without that of others of the same ClusterQueue; ok is false if
// it does not exist.
func (e *Engine) LocalQueueUsage(key Key) (u Usage, ok bool) {
	l := e.localQueues[key]
	if l == nil || !l.Exists {
		return Usage{}, false
	}
	u = e.tallies.usageOf(l.Tally)
	u.Consumption = e.usageHistory.consumptionOf(l)
	return u, true
}

// Holding is what the ledgers contain for a workload that holds quota.
type Holding struct {
	Key Key
	// ClusterQueue is the queue whose quota it holds, Held how much.
	ClusterQueue string
	Held         quota.Vector
	// Assumed says that a decision about it has not been confirmed: the API server may have it or not.
	Assumed bool
}

// Holdings yields a Holding for each workload that holds quota, in no particular order.
func (e *Engine) Holdings(yield func(Holding) bool) {
	for _, w := range e.workloads {
		if h, ok := holdingOf(w); ok && !yield(h) {
			return
		}
	}
}

// Holding returns the Holding of the workload; ok is false if it holds no quota.
func (e *Engine) Holding(key Key) (_ Holding, ok bool) {
	w := e.workloads[key]
	if w == nil {
		return Holding{}, false
	}
	return holdingOf(w)
}

func holdingOf(w *state.Workload) (_ Holding, ok bool) {
	c := &w.Charged
	if w.Held == nil || c.Queue == nil {
		return Holding{}, false
	}
	return Holding{Key: w.Key, ClusterQueue: c.Queue.Name, Held: c.Held, Assumed: w.Assumed != state.Nothing}, true
}

// AmountName returns the flavor and the resource of an index.
func (e *Engine) AmountName(i quota.Index) quota.FlavorResource { return e.tree.Name(i) }

// Filled reports whether each of the pod set's places on the node, named as in places, has a pod.
func (e *Engine) Filled(of place.PodSetKey, node string) bool { return e.nodes.Places.Filled(of, node) }

// NoteEviction tells an engine that has made no decisions for which other workload one was evicted. Like those that it
// decided, it bars the one from preempting the other.
func (e *Engine) NoteEviction(evicted, preemptor Key) {
	precedence := e.evictions.precedence
	if evicted != preemptor && e.workloads[evicted] != nil && e.workloads[preemptor] != nil &&
		!precedence.Over(preemptor).Has(evicted) {
		precedence.Note(preemptor, evicted)
	}
}

// passBudget bounds the work of one pass, in workloads evaluated, so that events never wait longer than a few
// milliseconds.
const passBudget = 250
