package engine

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/musterhq/muster/internal/engine/order"
	"github.com/musterhq/muster/internal/engine/quota"
	"github.com/musterhq/muster/internal/engine/state"
)

// routing has the ClusterQueues and LocalQueues that are known, and which of them have changed since the last Decide.
type routing struct {
	queues      map[string]*state.ClusterQueue
	localQueues map[Key]*state.LocalQueue
	// changed and relocated are the ClusterQueues and LocalQueues whose workloads must be routed again, recohorted the
	// cohorts that have changed.
	changed    sets.Set[string]
	relocated  sets.Set[Key]
	recohorted sets.Set[string]
}

// queueChanged marks all workloads that wait in the queue to be routed again.
func (r *routing) queueChanged(q *state.ClusterQueue) {
	q.Revision++
	order.MoveAll(&q.Waiting, &q.Unrouted)
	r.changed.Insert(q.Name)
}

func (r *routing) local(key Key) *state.LocalQueue {
	l := r.localQueues[key]
	if l == nil {
		l = &state.LocalQueue{LocalQueue: LocalQueue{Key: key}, Members: &order.List[*state.Workload]{},
			Unrouted: &order.List[*state.Workload]{}, Classes: map[*state.Class]struct{}{}}
		r.localQueues[key] = l
	}
	return l
}

func (r *routing) dropIfUnused(l *state.LocalQueue) {
	if !l.Exists && l.Members.Len() == 0 && l.Unrouted.Len() == 0 {
		delete(r.localQueues, l.Key)
		r.relocated.Delete(l.Key)
		r.forgetLeft(l)
	}
}

// forgetLeft forgets the ClusterQueues that the LocalQueue pointed to before, as none of its workloads waits there any
// more. Those that do not exist, and that nothing else names, are not known any more: anyone may name new ones for
// ever.
func (r *routing) forgetLeft(l *state.LocalQueue) {
	for _, q := range l.Left {
		r.forgetIfUnused(q)
	}
	l.Left = nil
}

// forgetIfUnused forgets a ClusterQueue that does not exist once nothing names it. A pass does so if queues have
// changed.
func (r *routing) forgetIfUnused(q *state.ClusterQueue) {
	if q.Family == nil && q.Unreferenced() && r.queues[q.Name] == q && !r.changed.Has(q.Name) {
		delete(r.queues, q.Name)
	}
}

// relocate marks all workloads of the LocalQueue to be routed again, because it was created, deleted, stopped or
// resumed, or points to another ClusterQueue than from.
func (r *routing) relocate(l *state.LocalQueue, from *state.ClusterQueue) {
	if from != nil && from != r.queues[l.ClusterQueue] && !slices.Contains(l.Left, from) {
		l.Left = append(l.Left, from)
	}
	order.MoveAll(&l.Members, &l.Unrouted)
	r.relocated.Insert(l.Key)
}

// relocatedByLength returns the LocalQueues that have changed, those with the fewest workloads to route first: whoever
// changes a long one again and again delays the others no longer than these take.
func (r *routing) relocatedByLength() []*state.LocalQueue {
	out := make([]*state.LocalQueue, 0, r.relocated.Len())
	for key := range r.relocated {
		out = append(out, r.localQueues[key])
	}
	slices.SortFunc(out, func(a, b *state.LocalQueue) int {
		return cmp.Or(cmp.Compare(a.Unrouted.Len(), b.Unrouted.Len()), order.CompareKeys(a.Key, b.Key))
	})
	return out
}

// markAffected adds the queues that share a family with a changed queue or cohort. Queues without a node are in none.
func (r *routing) markAffected(concerned sets.Set[*state.ClusterQueue]) {
	byRoot := map[*quota.Node][]*state.ClusterQueue{}
	hit := sets.New[*quota.Node]()
	for _, q := range r.queues {
		if q.Node == nil {
			continue
		}
		root := q.Node
		for root.Parent() != nil && !root.Cyclic() { // the node of a queue below a cycle is about to go
			root = root.Parent()
		}
		byRoot[root] = append(byRoot[root], q)
		if r.changed.Has(q.Name) {
			hit.Insert(root)
		}
	}
	for root, queues := range byRoot {
		if hit.Has(root) || r.recohortedUnder(root) {
			concerned.Insert(queues...)
		}
	}
}

// recohortedUnder reports whether a cohort at or below the node has changed. A cohort without queues counts too:
// others may use its quota.
func (r *routing) recohortedUnder(n *quota.Node) bool {
	return !n.IsQueue() && !n.Cyclic() &&
		(r.recohorted.Has(n.Name()) || slices.ContainsFunc(n.Children(), r.recohortedUnder))
}

// markUnsorted marks the families in which some workloads must be routed again, those included that such workloads are
// to leave: nothing is decided there before all are sorted. It reports whether there are any. It may stop once all on
// the agenda, of which there are so many, are marked.
func (r *routing) markUnsorted(families map[string]*state.Family, onAgenda int) (any bool) {
	for _, f := range families {
		f.Unsorted = false
	}
	mark := func(q *state.ClusterQueue) {
		if q != nil && q.Family != nil && !q.Family.Unsorted {
			q.Family.Unsorted, any = true, true
			if q.Family.Dirty {
				onAgenda--
			}
		}
	}
	for name := range r.changed {
		mark(r.queues[name])
	}
	if onAgenda == 0 {
		return any
	}
	for key := range r.relocated {
		l := r.localQueues[key]
		mark(r.queues[l.ClusterQueue])
		for _, q := range l.Left {
			mark(q)
		}
	}
	return any
}
