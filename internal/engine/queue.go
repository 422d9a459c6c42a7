package engine

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/musterhq/muster/internal/engine/order"
	"github.com/musterhq/muster/internal/engine/preempt"
	"github.com/musterhq/muster/internal/engine/quota"
	"github.com/musterhq/muster/internal/engine/reason"
)

// clusterQueue is a queue with those who wait in it and those who hold its quota.
type clusterQueue struct {
	ClusterQueue
	// exists is false while only its workloads are known.
	exists     bool
	namespaces labels.Selector
	// fairly tells that shares are compared.
	fairly bool
	// byUsage tells that LocalQueues are compared by their use.
	byUsage bool
	// node and family are nil if the queue does not exist or is part of a cycle.
	node   *quota.Node
	family *family

	// classes have those who wait, ready the ones of them that are to be looked at, by
	// their heads.
	classes map[classKey]*class
	ready   order.Heap[*class]
	// head is the one that holds a strict queue back until the family has more to give.
	head *class
	// heads are those of a queue by resource who lack something, and hold back who asks for
	// it, until there is more.
	heads []*class
	// owners are the classes that the queue's own quota could hold, the first one on top.
	// claimed is the claim that others have heard of, kept what is kept of it during a
	// pass, and keptFor for whom.
	owners  order.Heap[*class]
	claimed claim
	kept    quota.Vector
	keptFor order.Rank
	// waiting are all who name the queue and hold nothing, unplaced those of them who
	// have to find their place again since the queue is not what it was. revision counts
	// how often that happened.
	waiting, unplaced *orderedList
	revision          int
	// locals are the LocalQueues that lead here.
	locals map[Key]*localQueue
	// holders are those who hold quota or were promised some, and have not been told to
	// go, in the order of preempt.CompareHolders.
	holders []*preempt.Holder
	// elastic are those who hold quota and whose size may change, in the order of names.
	elastic []*workload
	// resizable are those of them whose size may change, nil if it is to be found out anew, but
	// for those in toList, who are not what they were. listings counts how often that was done.
	// cramped tells that one would be larger if there were room on the nodes.
	resizable *resizable
	toList    []*workload
	listings  int
	cramped   bool
	// displaced is as of what it was found that none of them grows at the cost of others.
	displaced standing
	// outgrown is how many classes are kept for them, who are to grow.
	outgrown int

	// leaving is how many were told to go and hold quota of the queue yet, unready how
	// many were admitted and wait for their pods.
	leaving, unready int
	// promised are those who wait for others to go.
	promised order.Queue
	tally
}

// localQueue is a name for a ClusterQueue with those who used it.
type localQueue struct {
	LocalQueue
	exists bool
	// members are all who name it, unplaced those of them who have to find their place again
	// since it is not what it was. left are the queues in which these wait yet.
	members, unplaced *orderedList
	left              []*clusterQueue
	tally
	account
}

// open reports whether those who name the LocalQueue may be given more than they have.
func (l *localQueue) open() bool { return l.exists && !l.Held && !l.Terminating }

func (e *Engine) queue(name string) *clusterQueue {
	q := e.queues[name]
	if q == nil {
		q = &clusterQueue{fairly: e.options.FairSharing != nil, classes: map[classKey]*class{}, locals: map[Key]*localQueue{},
			waiting: &orderedList{}, unplaced: &orderedList{},
			ready:  order.NewHeap((*class).before, func(c *class) *order.Place { return &c.at }),
			owners: order.NewHeap((*class).before, func(c *class) *order.Place { return &c.claimAt })}
		q.set(ClusterQueue{Name: name})
		q.exists = false
		e.queues[name] = q
	}
	return q
}

func (q *clusterQueue) set(spec ClusterQueue) {
	q.ClusterQueue, q.exists, q.resizable = spec, true, nil
	q.namespaces = labels.Nothing()
	if spec.Namespaces != nil {
		// A selector that does not parse was refused by the API; none passes then.
		if selector, err := metav1.LabelSelectorAsSelector(spec.Namespaces); err == nil {
			q.namespaces = selector
		}
	}
}

// change has everyone who waits in the queue find his place again.
func (e *Engine) change(q *clusterQueue) {
	q.revision++
	unsettle(&q.waiting, &q.unplaced)
	e.changed.Insert(q.Name)
}

func (q *clusterQueue) offers(flavor string) bool {
	for _, g := range q.Groups {
		if slices.Contains(g.Flavors, flavor) {
			return true
		}
	}
	return false
}

func (e *Engine) local(key Key) *localQueue {
	l := e.localQueues[key]
	if l == nil {
		l = &localQueue{LocalQueue: LocalQueue{Key: key}, members: &orderedList{}, unplaced: &orderedList{}}
		e.localQueues[key] = l
	}
	return l
}

func (e *Engine) dropIfUnused(l *localQueue) {
	if !l.exists && l.members.len() == 0 && l.unplaced.len() == 0 {
		delete(e.localQueues, l.Key)
		e.relocated.Delete(l.Key)
	}
}

// relocate has all who name the LocalQueue find their place again, since it came, went, was
// stopped or goes on, or leads elsewhere than from there.
func (e *Engine) relocate(l *localQueue, from *clusterQueue) {
	if from != nil && from != e.queues[l.ClusterQueue] && !slices.Contains(l.left, from) {
		l.left = append(l.left, from)
	}
	unsettle(&l.members, &l.unplaced)
	e.relocated.Insert(l.Key)
}

// settle notes that the workload has found its place as the LocalQueue is now.
func (l *localQueue) settle(w *workload) {
	if w.belongs.on == l.unplaced {
		w.belongs.strike()
		l.members.add(&w.belongs)
	}
}

// hold lists the workload among those who can be told to go.
func (q *clusterQueue) hold(h *preempt.Holder) {
	at, _ := slices.BinarySearchFunc(q.holders, h, preempt.CompareHolders)
	q.holders = slices.Insert(q.holders, at, h)
}

// unhold is the inverse of hold. The holder must be as it was then.
func (q *clusterQueue) unhold(h *preempt.Holder) {
	if at, ok := slices.BinarySearchFunc(q.holders, h, preempt.CompareHolders); ok {
		q.holders = slices.Delete(q.holders, at, at+1)
	}
}

// fault says why nobody of the queue can be admitted, whatever is free.
func (q *clusterQueue) fault() reason.Reason {
	switch {
	case !q.exists:
		return reason.Inadmissiblef("ClusterQueue %s doesn't exist", q.Name)
	case q.node == nil:
		return reason.Inadmissiblef("ClusterQueue %s is inactive: its cohorts form a cycle", q.Name)
	case q.Inactive != "":
		return reason.Inadmissiblef("ClusterQueue %s is inactive: %s", q.Name, q.Inactive)
	case q.Held:
		return reason.OnHoldf("ClusterQueue %s is stopped", q.Name)
	}
	return reason.Reason{}
}

// wake has the class looked at, or looked at again where its head changed.
func (q *clusterQueue) wake(c *class) {
	if c.waiting.Len() == 0 {
		q.ready.Remove(c)
		return
	}
	q.ready.Put(c)
	if q.family != nil {
		q.family.put()
	}
}
