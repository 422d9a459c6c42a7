package engine

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/musterhq/muster/internal/engine/order"
	"github.com/musterhq/muster/internal/engine/quota"
)

// family is all queues of one tree: what one of them gives back, another may take.
type family struct {
	name   string
	queues []*clusterQueue
	agenda *agenda
	// version changes with every decision, so that what was found out before it is
	// found out again.
	version int
	// dirty tells that there is somebody to look at, and that the family is on the
	// agenda. freed are the amounts of which something was given back: who was short of
	// them is looked at again.
	// By fair shares, sharesMoved tells that somebody uses more or less than before.
	dirty       bool
	freed       []quota.Index
	sharesMoved bool
	// charges counts what was charged, given back, and kept for another or no more.
	charges int
	// short are the classes that were set aside, by what there would have to be more of.
	short map[quota.Index]map[*class]struct{}
	// promised are those who wait for others to go.
	promised order.Queue
}

// agenda lists the families in which there is somebody to look at.
type agenda []*family

// put has the family looked at.
func (f *family) put() {
	if !f.dirty {
		f.dirty = true
		*f.agenda = append(*f.agenda, f)
	}
}

// recharged notes that something was charged or given back: heads by resource may lack
// something else.
func (q *clusterQueue) recharged() {
	if q != nil && q.family != nil {
		q.family.charges++
		if q.family.hasHeads() {
			q.family.put()
		}
	}
}

// hasHeads reports whether any head by resource holds others back.
func (f *family) hasHeads() bool {
	return slices.ContainsFunc(f.queues, func(q *clusterQueue) bool { return len(q.heads) > 0 })
}

// leaving is how many were told to go and have not gone.
func (f *family) leaving() (n int) {
	for _, q := range f.queues {
		n += q.leaving
	}
	return n
}

// reshape finds the families again after quotas or cohorts changed. Those that were
// not concerned stay as they are.
func (e *Engine) reshape() {
	concerned := sets.New[*clusterQueue]()
	e.markConcerned(concerned) // as it was
	groups := map[string][]*clusterQueue{}
	for _, name := range slices.Sorted(maps.Keys(e.queues)) {
		q := e.queues[name]
		if q.forgettable() {
			delete(e.queues, name)
			e.changed.Delete(name)
			continue
		}
		was := q.node
		if q.node = e.tree.Queue(name); q.node != nil && q.node.Cyclic() {
			q.node = nil
		}
		if was != q.node {
			e.change(q)
		}
		key := q.familyName()
		groups[key] = append(groups[key], q)
	}
	e.markConcerned(concerned) // as it is now
	before := e.families
	e.families = map[string]*family{}
	e.reshaped = false
	e.recohorted.Clear()
	for key, queues := range groups {
		if f := before[key]; f != nil && !slices.ContainsFunc(queues, concerned.Has) {
			e.families[key] = f
		} else {
			e.found(key, queues)
		}
	}
}

// forgettable reports whether the queue does not exist and nobody names it.
func (q *clusterQueue) forgettable() bool {
	return !q.exists && len(q.locals) == 0 && q.waiting.len() == 0 && q.unplaced.len() == 0 && len(q.holders) == 0 &&
		q.pending == 0 && q.reserving == 0
}

// markConcerned adds the queues that share a family with one that has changed, or
// with a cohort that has.
func (e *Engine) markConcerned(concerned sets.Set[*clusterQueue]) {
	byRoot := map[*quota.Node][]*clusterQueue{}
	hit := sets.New[*quota.Node]()
	for _, q := range e.queues {
		if e.changed.Has(q.Name) || q.node == nil {
			concerned.Insert(q)
		}
		if q.node == nil {
			continue
		}
		root := q.node
		for root.Parent() != nil && !root.Cyclic() { // else one begins: the queue is concerned anyhow
			root = root.Parent()
		}
		byRoot[root] = append(byRoot[root], q)
		if e.changed.Has(q.Name) {
			hit.Insert(root)
		}
	}
	for root, queues := range byRoot {
		if hit.Has(root) || e.recohortedUnder(root) {
			concerned.Insert(queues...)
		}
	}
}

// recohortedUnder reports whether a cohort has changed at or under the node. It may
// have no queue under it: what it has is for the others all the same.
func (e *Engine) recohortedUnder(n *quota.Node) bool {
	return !n.IsQueue() && !n.Cyclic() && (e.recohorted.Has(n.Name()) || slices.ContainsFunc(n.Children(), e.recohortedUnder))
}

// found starts a family: nothing is promised in it and everyone is looked at.
func (e *Engine) found(key string, queues []*clusterQueue) {
	f := &family{name: key, queues: queues, agenda: &e.agenda, short: map[quota.Index]map[*class]struct{}{}}
	if key != "" {
		e.families[key] = f
		f.put()
	}
	for _, q := range queues {
		e.touchQueue(q.Name)
		e.touchCohorts(q)
		q.family, q.head, q.claimed, q.resizable = nil, nil, claim{}, nil
		if key != "" {
			q.family = f
		}
		for _, w := range e.promisees(q) {
			e.route(w)
		}
		for _, h := range q.holders {
			e.precedence.Forget(h.Key) // what was right between them may not be any more
		}
		for _, c := range q.classes {
			q.unblock(c)
		}
	}
}

// familyName is the name of the root of the queue's tree, "" if it is in none.
func (q *clusterQueue) familyName() string {
	switch {
	case q.node == nil:
		return ""
	case q.node.Root().IsQueue():
		return "queue/" + q.Name
	default:
		return "cohort/" + q.node.Root().Name()
	}
}
