package engine

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/musterhq/muster/internal/engine/elastic"
	"github.com/musterhq/muster/internal/engine/order"
	"github.com/musterhq/muster/internal/engine/preempt"
	"github.com/musterhq/muster/internal/engine/quota"
	"github.com/musterhq/muster/internal/engine/waiting"
)

// Block says which admissions wait until the pods of the workloads admitted before are ready.
type Block int

const (
	// BlockNone blocks no admissions.
	BlockNone Block = iota
	// BlockQueue blocks the other workloads of the same ClusterQueue.
	BlockQueue
	// BlockAll blocks all other workloads.
	BlockAll
)

// Options configure how an Engine decides. The zero value is the default.
type Options struct {
	// BlockUntilReady says which admissions wait for pods to be ready.
	BlockUntilReady Block
	// IgnoreUndeclared ignores requests for resources that a ClusterQueue does not cover.
	IgnoreUndeclared bool
	// FairSharing orders and preempts across queues by their shares; nil turns it off.
	FairSharing *FairSharing
	// AdmissionFairSharing orders LocalQueues by their recent usage; nil turns it off.
	AdmissionFairSharing *AdmissionFairSharing
	// Elastic says when workloads with an elastic pod set grow.
	Elastic elastic.Policy
	// CheckWaitingEvery is the time between two checks of CheckWaiting; 0 turns them off.
	CheckWaitingEvery time.Duration `json:",omitempty"`
}

// FairSharing configures preemption by shares.
type FairSharing struct {
	// Strategies say when a workload may be evicted for a fairer share, in the order in which they are tried. There
	// is at least one.
	Strategies []preempt.Strategy
}

// Engine is the state from which decisions are made. Create one with New. It is not safe for concurrent use.
type Engine struct {
	options Options
	// budget is passBudget, or less in tests.
	budget      int
	tree        *quota.Tree
	queues      map[string]*clusterQueue
	localQueues map[Key]*localQueue
	namespaces  map[string]labels.Set
	workloads   map[Key]*workload
	shapes      map[string]*shape

	// What the engine knows and works out, by what it is about.
	nodes        *nodes
	ledgers      ledgers
	holdBacks    holdBacks
	growths      *growths
	evaluator    *evaluator
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

	// families are the groups of queues that share quota, by familyName; agenda has those with work to do.
	families map[string]*family
	agenda   agenda
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
		queues:      map[string]*clusterQueue{},
		localQueues: map[Key]*localQueue{},
		namespaces:  map[string]labels.Set{},
		workloads:   map[Key]*workload{},
		shapes:      map[string]*shape{},
		families:    map[string]*family{},
		waiting:     waiting.NewRoom(),
		superseded:  map[Key]int64{},
		recohorted:  sets.New[string](),
		changed:     sets.New[string](),
		relocated:   sets.New[Key](),
	}
	e.nodes = newNodes(e.workloads)
	e.ledgers, e.holdBacks = ledgers{e.tree}, holdBacks{e.tree}
	e.growths = newGrowths(options.Elastic, e.tree, e.queues, e.nodes, &e.waiting.Timers)
	e.evictions = evictions{precedence: &preempt.Precedence{}, written: sets.New[Key]()}
	e.evaluator = &evaluator{options: options, tree: e.tree, queues: e.queues, workloads: e.workloads,
		precedence: e.evictions.precedence, nodes: e.nodes, ledgers: e.ledgers, growths: e.growths}
	e.reports.workloads = e.workloads
	e.waiting.Longest[waiting.RetryRefused], e.waiting.Longest[waiting.ForgetAvoided] = longestRetry, longestAvoidance
	e.refusals = refusals{&e.waiting.Timers}
	e.avoidances = avoidances{workloads: e.workloads, untimed: sets.New[Key](), timers: &e.waiting.Timers}
	e.tallies = &tallies{options: options, tree: e.tree, ledgers: e.ledgers, queues: e.queues, localQueues: e.localQueues,
		usageChanged: sets.New[string](), localUsageChanged: sets.New[Key](), activeChanged: sets.New[Key](), sharesChanged: sets.New[string]()}
	e.usageHistory = usageHistory{options: options, ledgers: e.ledgers, tallies: e.tallies, queues: e.queues,
		localQueues: e.localQueues, workloads: e.workloads}
	return e
}

// Apply updates the state with one event. It makes no decisions.
func (e *Engine) Apply(ev Event) { ev.apply(e) }

func (c ClusterQueueSet) apply(e *Engine) {
	q := e.queue(c.Name)
	q.byUsage = c.ByUsage && e.options.AdmissionFairSharing != nil
	q.set(c.ClusterQueue)
	q.reorder()
	for _, l := range q.locals {
		e.usageHistory.updateStanding(l)
	}
	e.tree.SetQueue(c.Name, c.Cohort, c.Quotas)
	e.tree.SetQueueWeight(c.Name, c.Weight)
	e.reshaped = true
	e.queueChanged(q)
	e.tallies.markUsage(c.Name)
}

func (c ClusterQueueDeleted) apply(e *Engine) {
	q := e.queue(c.Name)
	q.set(ClusterQueue{Name: c.Name})
	q.exists = false
	e.tree.DeleteQueue(c.Name)
	e.reshaped = true
	e.queueChanged(q)
	e.tallies.markUsage(c.Name)
}

func (c CohortSet) apply(e *Engine) {
	e.tree.SetCohort(c.Name, c.Parent, c.Quotas)
	e.tree.SetCohortWeight(c.Name, c.Weight)
	e.recohorted.Insert(c.Name)
	e.reshaped = true
}

func (c CohortDeleted) apply(e *Engine) {
	e.tree.DeleteCohort(c.Name)
	e.recohorted.Insert(c.Name)
	e.reshaped = true
}

func (f FlavorSet) apply(e *Engine) {
	if known, ok := e.nodes.flavors[f.Name]; ok && equality.Semantic.DeepEqual(known, f.Flavor) {
		return // what the engine knows of it is the same: no decision depends on anything else
	}
	e.nodes.flavors[f.Name] = f.Flavor
	e.updateFlavor(f.Name)
	e.flavorsChanged(sets.New(f.Name))
}

func (f FlavorDeleted) apply(e *Engine) {
	delete(e.nodes.flavors, f.Name)
	e.updateFlavor(f.Name)
	e.flavorsChanged(sets.New(f.Name))
}

// flavorsChanged routes all workloads again in the queues that offer any of the flavors.
func (e *Engine) flavorsChanged(flavors sets.Set[string]) {
	for _, q := range e.queues {
		if q.offersAny(flavors) {
			e.queueChanged(q)
			e.tallies.markUsage(q.Name)
		}
	}
}

func (n NamespaceSet) apply(e *Engine) {
	before := e.namespaces[n.Name]
	e.namespaces[n.Name] = n.Labels
	e.namespaceChanged(n.Name, before)
}

func (n NamespaceDeleted) apply(e *Engine) {
	before := e.namespaces[n.Name]
	delete(e.namespaces, n.Name)
	e.namespaceChanged(n.Name, before)
}

// namespaceChanged routes all workloads again in the queues that accept the namespace now and did not before, or the
// other way round.
func (e *Engine) namespaceChanged(name string, before labels.Set) {
	now := e.namespaces[name]
	for _, l := range e.localQueues {
		q := e.queues[l.ClusterQueue]
		if l.Key.Namespace == name && q != nil && q.namespaces.Matches(before) != q.namespaces.Matches(now) {
			e.queueChanged(q)
		}
	}
}

func (lqs LocalQueueSet) apply(e *Engine) {
	l := e.local(lqs.Key)
	from := e.queues[l.ClusterQueue]
	same := l.exists && l.ClusterQueue == lqs.ClusterQueue && l.Stopped == lqs.Stopped && l.Terminating == lqs.Terminating
	e.setLocalQueue(l, lqs.LocalQueue)
	l.exists = true
	e.queue(lqs.ClusterQueue).locals[lqs.Key] = l
	if !same {
		e.relocate(l, from)
	}
	e.usageHistory.restore(l)
}

func (lqd LocalQueueDeleted) apply(e *Engine) {
	l := e.local(lqd.Key)
	from := e.queues[l.ClusterQueue]
	e.setLocalQueue(l, LocalQueue{Key: lqd.Key})
	l.exists = false
	e.relocate(l, from)
	l.rank(0)
	l.account = account{}
	e.dropIfUnused(l)
}

// setLocalQueue sets the spec of the LocalQueue, and with it the ClusterQueue that it points to.
func (e *Engine) setLocalQueue(l *localQueue, to LocalQueue) {
	if q := e.queues[l.ClusterQueue]; q != nil {
		delete(q.locals, l.Key)
	}
	l.LocalQueue = to
	e.tallies.localUsageChanged.Insert(l.Key)
}

// sortedByKey returns the workloads sorted by key, so that no result depends on map iteration order.
func sortedByKey(workloads map[Key]*workload) []*workload {
	out := make([]*workload, 0, len(workloads))
	for _, key := range slices.SortedFunc(maps.Keys(workloads), order.CompareKeys) {
		out = append(out, workloads[key])
	}
	return out
}
