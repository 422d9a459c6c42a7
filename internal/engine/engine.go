package engine

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/musterhq/muster/internal/engine/elastic"
	"github.com/musterhq/muster/internal/engine/flavor"
	"github.com/musterhq/muster/internal/engine/order"
	"github.com/musterhq/muster/internal/engine/place"
	"github.com/musterhq/muster/internal/engine/preempt"
	"github.com/musterhq/muster/internal/engine/quota"
)

// Block says whose admissions wait until the pods of admitted workloads are ready.
type Block int

const (
	// BlockNone lets nobody wait.
	BlockNone Block = iota
	// BlockQueue lets the others of the same ClusterQueue wait.
	BlockQueue
	// BlockAll lets everyone wait.
	BlockAll
)

// Options are what an administrator decides about decisions. The zero value is the
// default.
type Options struct {
	// BlockUntilReady says whose admissions wait for ready pods.
	BlockUntilReady Block
	// IgnoreUndeclared counts nothing for resources that a ClusterQueue does not cover.
	IgnoreUndeclared bool
	// FairSharing orders and preempts across queues by their shares, if it is set.
	FairSharing *FairSharing
	// AdmissionFairSharing compares LocalQueues by their use of late, if it is set.
	AdmissionFairSharing *AdmissionFairSharing
	// Elastic is when workloads of elastic pod sets grow.
	Elastic elastic.Policy
}

// FairSharing is what is compared by shares.
type FairSharing struct {
	// Strategies say when somebody may be evicted for a fairer share, in the order in
	// which they are tried. There is one at least.
	Strategies []preempt.Strategy
}

// Engine is the state from which decisions are made. Make one with New; one
// goroutine may use it.
type Engine struct {
	options     Options
	tree        quota.Tree
	queues      map[string]*clusterQueue
	localQueues map[Key]*localQueue
	flavors     map[string]flavor.Flavor
	namespaces  map[string]labels.Set
	workloads   map[Key]*workload
	shapes      map[string]*shape

	precedence preempt.Precedence
	// unwanted are those who hold pods that their jobs want no more.
	unwanted sets.Set[Key]
	// lateWritten are those who were withdrawn and hold quota: it is decided next whether they go.
	lateWritten sets.Set[Key]
	// places is where pods can run, topologies the levels of each.
	places     *place.Map
	topologies map[string][]string
	placing

	// families are the trees of queues that share quota, by the name of a root; agenda
	// has those in which there is somebody to look at.
	families map[string]*family
	agenda   agenda
	// unready is how many admitted workloads wait for their pods.
	unready int
	// refused are those whose admission the API server would not have, by the time at which
	// it is tried again.
	refused order.Queue
	// avoiding are those without places who avoid nodes and are not in forgetting yet, which has by the time until when they do.
	avoiding   sets.Set[Key]
	forgetting order.Queue
	// sampleDue is when the use of LocalQueues is sampled next, zero if there is none;
	// unsampled tells that there is some since.
	sampleDue time.Time
	unsampled bool
	// growths are when somebody of a queue may grow who may not yet, by the queue's name; now
	// is the time of the last Decide.
	growths map[string]time.Time
	now     time.Time
	speeds  elastic.Speeds

	// serial is that of the last decision. overtaken are those that are not stood by any more
	// since the last TakeOvertaken, by their workloads.
	serial    int64
	overtaken map[Key]int64

	// Since the last Decide: reshaped tells that quotas or cohorts changed, and
	// recohorted of which cohorts; changed and relocated are the ClusterQueues and LocalQueues
	// whose workloads must find their place again, unsaid the workloads whose reason to wait is
	// news, oldest first.
	reshaped   bool
	recohorted sets.Set[string]
	changed    sets.Set[string]
	relocated  sets.Set[Key]
	unsaid     newsList
	// touched and touchedLocal are the queues whose usage changed since TakeTouched.
	touched      sets.Set[string]
	touchedLocal sets.Set[Key]
	// touchedCohorts are those whose share may have changed.
	touchedCohorts sets.Set[string]
}

// New returns an engine that knows nothing yet.
func New(options Options) *Engine {
	return &Engine{
		options:     options,
		queues:      map[string]*clusterQueue{},
		localQueues: map[Key]*localQueue{},
		flavors:     map[string]flavor.Flavor{},
		namespaces:  map[string]labels.Set{},
		workloads:   map[Key]*workload{},
		shapes:      map[string]*shape{},
		families:    map[string]*family{},
		places:      place.New(),
		placing:     newPlacing(),
		growths:     map[string]time.Time{},
		avoiding:    sets.New[Key](),
		lateWritten: sets.New[Key](),
		unwanted:    sets.New[Key](),
		speeds:      elastic.Speeds{},
		topologies:  map[string][]string{},
		overtaken:   map[Key]int64{},

		recohorted:   sets.New[string](),
		changed:      sets.New[string](),
		relocated:    sets.New[Key](),
		touched:      sets.New[string](),
		touchedLocal: sets.New[Key](),

		touchedCohorts: sets.New[string](),
	}
}

// Apply takes in one event. It decides nothing.
func (e *Engine) Apply(ev Event) { ev.apply(e) }

func (ev ClusterQueueSet) apply(e *Engine) {
	q := e.queue(ev.Name)
	q.set(ev.ClusterQueue)
	q.byUsage = ev.ByUsage && e.options.AdmissionFairSharing != nil
	for _, l := range q.locals {
		e.stand(l)
	}
	q.reorder()
	e.tree.SetQueue(ev.Name, ev.Cohort, ev.Quotas)
	e.tree.WeighQueue(ev.Name, ev.Weight)
	e.reshaped = true
	e.change(q)
	e.touchQueue(ev.Name)
}

func (ev ClusterQueueDeleted) apply(e *Engine) {
	q := e.queue(ev.Name)
	q.set(ClusterQueue{Name: ev.Name})
	q.exists = false
	e.tree.DeleteQueue(ev.Name)
	e.reshaped = true
	e.change(q)
	e.touchQueue(ev.Name)
}

func (ev CohortSet) apply(e *Engine) {
	e.tree.SetCohort(ev.Name, ev.Parent, ev.Quotas)
	e.tree.WeighCohort(ev.Name, ev.Weight)
	e.recohorted.Insert(ev.Name)
	e.reshaped = true
}

func (ev CohortDeleted) apply(e *Engine) {
	e.tree.DeleteCohort(ev.Name)
	e.recohorted.Insert(ev.Name)
	e.reshaped = true
}

func (ev FlavorSet) apply(e *Engine) {
	e.flavors[ev.Name] = ev.Flavor
	e.mapFlavor(ev.Name)
	e.changeFlavor(ev.Name)
}

func (ev FlavorDeleted) apply(e *Engine) {
	delete(e.flavors, ev.Name)
	e.mapFlavor(ev.Name)
	e.changeFlavor(ev.Name)
}

// changeFlavor has the queues that offer the flavor look at everyone again.
func (e *Engine) changeFlavor(name string) {
	for _, q := range e.queues {
		if q.offers(name) {
			e.change(q)
			e.touchQueue(q.Name)
		}
	}
}

func (ev NamespaceSet) apply(e *Engine) {
	before := e.namespaces[ev.Name]
	e.namespaces[ev.Name] = ev.Labels
	for _, l := range e.localQueues {
		q := e.queues[l.ClusterQueue]
		if l.Key.Namespace == ev.Name && q != nil && q.namespaces.Matches(before) != q.namespaces.Matches(ev.Labels) {
			e.change(q)
		}
	}
}

func (ev NamespaceDeleted) apply(e *Engine) { delete(e.namespaces, ev.Name) }

func (ev LocalQueueSet) apply(e *Engine) {
	l := e.local(ev.Key)
	from := e.queues[l.ClusterQueue]
	same := l.exists && l.ClusterQueue == ev.ClusterQueue && l.Held == ev.Held && l.Terminating == ev.Terminating
	e.lead(l, ev.LocalQueue)
	l.exists = true
	e.queue(ev.ClusterQueue).locals[ev.Key] = l
	if !same {
		e.relocate(l, from)
	}
	e.recall(l)
}

func (ev LocalQueueDeleted) apply(e *Engine) {
	l := e.local(ev.Key)
	from := e.queues[l.ClusterQueue]
	e.lead(l, LocalQueue{Key: ev.Key})
	l.exists = false
	e.relocate(l, from)
	l.account = account{}
	l.reorderLeft()
	e.dropIfUnused(l)
}

// lead changes where the LocalQueue leads.
func (e *Engine) lead(l *localQueue, to LocalQueue) {
	if q := e.queues[l.ClusterQueue]; q != nil {
		delete(q.locals, l.Key)
	}
	l.LocalQueue = to
	e.touchedLocal.Insert(l.Key)
}

// inOrder lists workloads in the order of names, so that nothing follows from the order
// of a map.
func inOrder(workloads map[Key]*workload) []*workload {
	out := make([]*workload, 0, len(workloads))
	for _, key := range slices.SortedFunc(maps.Keys(workloads), order.CompareKeys) {
		out = append(out, workloads[key])
	}
	return out
}
