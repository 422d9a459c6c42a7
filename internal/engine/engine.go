package engine

import (
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

	// What the engine knows and works out, by what it is about.
	nodes      *nodes.Nodes
	ledgers    state.Ledgers
	holdBacks  state.HoldBacks
	growths    *growth.Growths
	evaluator  *evaluate.Evaluator
	reports    reports
	refusals   refusals
	avoidances avoidances
	shapes     shapes
	routing    routing
	evictions
	usageHistory
	holdings
	*tallies
	*starts

	// waiting is where blocked classes wait. nodesPublishedAt is the change count of places for which it was last told
	// that nodes have changed.
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

	// reshaped is set when quotas or cohorts have changed since the last Decide.
	reshaped bool
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
		shapes:      shapes{},
		families:    map[string]*state.Family{},
		waiting:     waiting.NewRoom(),
		superseded:  map[Key]int64{},
	}
	e.routing = routing{queues: e.queues, localQueues: e.localQueues,
		recohorted: sets.New[string](), changed: sets.New[string](), relocated: sets.New[Key]()}
	e.holdings = holdings{workloads: e.workloads, tree: e.tree}
	e.nodes = nodes.New(e.workloads)
	e.ledgers, e.holdBacks = state.Ledgers{Tree: e.tree}, state.HoldBacks{Tree: e.tree}
	e.growths = growth.New(options.Elastic, e.queues, e.nodes, &e.waiting.Timers)
	e.holdings.nodes = e.nodes
	e.evictions = evictions{workloads: e.workloads, precedence: &preempt.Precedence{}, written: sets.New[Key]()}
	e.evaluator = &evaluate.Evaluator{Options: options, Tree: e.tree, Queues: e.queues, Workloads: e.workloads,
		Precedence: e.evictions.precedence, Nodes: e.nodes, Ledgers: e.ledgers, Growths: e.growths}
	e.reports.workloads = e.workloads
	e.waiting.Longest[waiting.RetryRefused], e.waiting.Longest[waiting.ForgetAvoided] = state.LongestRetry,
		state.LongestAvoidance
	e.refusals = refusals{&e.waiting.Timers}
	e.avoidances = avoidances{workloads: e.workloads, untimed: sets.New[Key](), timers: &e.waiting.Timers}
	e.tallies = &tallies{options: options, tree: e.tree, ledgers: e.ledgers, queues: e.queues, localQueues: e.localQueues,
		usageChanged: sets.New[string](), localUsageChanged: sets.New[Key](), activeChanged: sets.New[Key](),
		sharesChanged: sets.New[string]()}
	e.usageHistory = usageHistory{options: options, ledgers: e.ledgers, tallies: e.tallies, queues: e.queues,
		localQueues: e.localQueues, workloads: e.workloads}
	e.starts = newStarts(e.evaluator, e.growths)
	return e
}

// evictions has which workloads were evicted for which other ones, and the evictions that are still to be decided.
type evictions struct {
	workloads  map[Key]*state.Workload
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
		q = &state.ClusterQueue{Fairly: e.options.FairSharing != nil, Classes: map[state.ClassKey]*state.Class{},
			Locals:  map[Key]*state.LocalQueue{},
			Waits:   e.waiting.NewQueue(),
			Waiting: &order.List[*state.Workload]{}, Unrouted: &order.List[*state.Workload]{},
			Entitled: order.NewHeap(func(a, b *state.Class) bool { return a.Before(&b.Class) },
				func(c *state.Class) *order.Place { return &c.EntitledAt })}
		q.Set(ClusterQueue{Name: name})
		q.Exists = false
		e.queues[name] = q
	}
	return q
}

// whyInadmissible returns why the workload cannot be admitted regardless of free capacity.
func (e *Engine) whyInadmissible(w *state.Workload) reason.Reason {
	switch {
	case w.Inactive:
		return reason.Reason{Code: reason.Deactivated, Detail: "The workload is deactivated"}
	case w.Unheld:
		return reason.Reason{Code: reason.PendingEvaluation,
			Detail: "its pods were started before it had quota; it waits until they are stopped"}
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

// NoteEviction tells an engine that has made no decisions for which other workload one was evicted. Like those that it
// decided, it bars the one from preempting the other.
func (e *evictions) NoteEviction(evicted, preemptor Key) {
	precedence := e.precedence
	if evicted != preemptor && e.workloads[evicted] != nil && e.workloads[preemptor] != nil &&
		!precedence.Over(preemptor).Has(evicted) {
		precedence.Note(preemptor, evicted)
	}
}

// passBudget bounds the work of one pass, in workloads evaluated, so that events never wait longer than a few
// milliseconds.
const passBudget = 250

// holdings answers what workloads hold: of quota, and on nodes.
type holdings struct {
	workloads map[Key]*state.Workload
	tree      *quota.Tree
	nodes     *nodes.Nodes
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
func (h *holdings) Holdings(yield func(Holding) bool) {
	for _, w := range h.workloads {
		if held, ok := holdingOf(w); ok && !yield(held) {
			return
		}
	}
}

// Holding returns the Holding of the workload; ok is false if it holds no quota.
func (h *holdings) Holding(key Key) (_ Holding, ok bool) {
	w := h.workloads[key]
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
func (h *holdings) AmountName(i quota.Index) quota.FlavorResource { return h.tree.Name(i) }

// Filled reports whether each of the pod set's places on the node, named as in places, has a pod.
func (h *holdings) Filled(of place.PodSetKey, node string) bool {
	return h.nodes.Places.Filled(of, node)
}
