package engine

import (
	"maps"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/musterhq/muster/internal/engine/flavor"
	"github.com/musterhq/muster/internal/engine/order"
	"github.com/musterhq/muster/internal/engine/quota"
	"github.com/musterhq/muster/internal/engine/reason"
)

// Engine is the state from which decisions are made. Make one with New; one
// goroutine may use it.
type Engine struct {
	tree        quota.Tree
	queues      map[string]*clusterQueue
	localQueues map[Key]LocalQueue
	flavors     map[string]flavor.Flavor
	namespaces  map[string]labels.Set
	workloads   map[Key]*workload

	// Since the last Decide: dirty are the ClusterQueues with someone to look at,
	// freed are those that were given something back, unsaid are the workloads whose
	// reason to wait is news.
	dirty  sets.Set[string]
	freed  sets.Set[string]
	unsaid sets.Set[Key]
	// touched and touchedLocal are the queues whose usage changed since TakeTouched.
	touched      sets.Set[string]
	touchedLocal sets.Set[Key]
}

// clusterQueue is a queue with those who wait in it.
type clusterQueue struct {
	ClusterQueue
	// exists is false while only its workloads are known.
	exists bool
	// pending are to be looked at, in order; parked did not fit when they were, and
	// are looked at again when the queue's tree has more to give.
	pending order.Queue
	parked  map[Key]*workload
	// members are all workloads that name the queue, by way of a LocalQueue, or
	// hold quota of it.
	members map[Key]*workload
}

// workload is a Workload and what the engine did with it.
type workload struct {
	Workload
	// queue is the name of the ClusterQueue it waits in or holds quota of; "" if
	// its LocalQueue does not say.
	queue string
	// held is what is charged for it: what the API server says, or what was decided
	// and is assumed until the API server says so.
	held    *Admission
	assumed bool
	// refusal is the last word of the API server against an admission.
	refusal AdmissionRefused
	why     reason.Reason
}

// New returns an engine that knows nothing yet.
func New() *Engine {
	return &Engine{
		queues:      map[string]*clusterQueue{},
		localQueues: map[Key]LocalQueue{},
		flavors:     map[string]flavor.Flavor{},
		namespaces:  map[string]labels.Set{},
		workloads:   map[Key]*workload{},

		dirty:        sets.New[string](),
		freed:        sets.New[string](),
		unsaid:       sets.New[Key](),
		touched:      sets.New[string](),
		touchedLocal: sets.New[Key](),
	}
}

// Apply takes in one event. It decides nothing.
func (e *Engine) Apply(ev Event) { ev.apply(e) }

func (ev ClusterQueueSet) apply(e *Engine) {
	q := e.queue(ev.Name)
	q.ClusterQueue, q.exists = ev.ClusterQueue, true
	e.touchQueue(ev.Name)
	e.tree.SetQueue(ev.Name, ev.Cohort, ev.Quotas)
	e.reconsiderAll()
}

func (ev ClusterQueueDeleted) apply(e *Engine) {
	q := e.queue(ev.Name)
	q.ClusterQueue, q.exists = ClusterQueue{Name: ev.Name}, false
	e.touchQueue(ev.Name)
	e.tree.DeleteQueue(ev.Name)
	e.reconsiderAll()
}

func (ev CohortSet) apply(e *Engine) {
	e.tree.SetCohort(ev.Name, ev.Parent, ev.Quotas)
	e.touchAll()
	e.reconsiderAll()
}

func (ev CohortDeleted) apply(e *Engine) {
	e.tree.DeleteCohort(ev.Name)
	e.touchAll()
	e.reconsiderAll()
}

func (ev FlavorSet) apply(e *Engine) {
	e.flavors[ev.Name] = ev.Flavor
	e.touchFlavor(ev.Name)
	e.reconsiderAll()
}

func (ev FlavorDeleted) apply(e *Engine) {
	delete(e.flavors, ev.Name)
	e.touchFlavor(ev.Name)
	e.reconsiderAll()
}

func (ev NamespaceSet) apply(e *Engine) {
	if known, ok := e.namespaces[ev.Name]; ok && maps.Equal(known, ev.Labels) {
		return
	}
	e.namespaces[ev.Name] = ev.Labels
	e.reconsiderAll()
}

func (ev NamespaceDeleted) apply(e *Engine) { delete(e.namespaces, ev.Name) }

func (ev LocalQueueSet) apply(e *Engine) {
	e.localQueues[ev.Key] = ev.LocalQueue
	e.touchedLocal.Insert(ev.Key)
	e.rerouteMembers(ev.Key)
}

func (ev LocalQueueDeleted) apply(e *Engine) {
	delete(e.localQueues, ev.Key)
	e.rerouteMembers(ev.Key)
}

func (ev WorkloadSet) apply(e *Engine) {
	w := e.workloads[ev.Key]
	if w != nil && w.UID != ev.UID {
		e.forget(w)
		w = nil
	}
	switch {
	case w == nil:
		w = &workload{}
		e.workloads[ev.Key] = w
	case ev.Version < w.Version:
		return // old news
	}
	if known := w.UID != ""; known && w.Queue != ev.Queue {
		e.touch(w) // the queue that it leaves
	}
	w.Workload = ev.Workload
	e.touch(w)
	switch {
	case ev.Admission != nil:
		e.hold(w, ev.Admission)
		w.assumed = false
	case !w.assumed:
		// What was assumed outlives news that may be from before it was written, until
		// somebody tells how the write went.
		e.release(w)
	}
	e.route(w)
}

func (ev WorkloadGone) apply(e *Engine) {
	if w := e.workloads[ev.Key]; w != nil {
		e.forget(w)
	}
}

func (ev AdmissionWritten) apply(e *Engine) {
	w := e.workloads[ev.Key]
	if w == nil || w.UID != ev.UID || !w.assumed {
		return
	}
	if w.Version > ev.Version {
		// It was written, and has been taken back since.
		e.disown(w)
		return
	}
	w.assumed, w.Version = false, ev.Version
}

func (ev AdmissionRefused) apply(e *Engine) {
	if w := e.workloads[ev.Key]; w != nil && w.UID == ev.UID && w.assumed {
		w.refusal = ev
		e.disown(w)
	}
}

func (ev AdmissionFailed) apply(e *Engine) {
	if w := e.workloads[ev.Key]; w != nil && w.UID == ev.UID && w.assumed {
		e.disown(w)
	}
}

// disown undoes what was assumed for the workload and has it looked at again.
func (e *Engine) disown(w *workload) {
	w.assumed = false
	e.release(w)
	e.route(w)
}
