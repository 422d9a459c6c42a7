package preempt

import (
	"cmp"

	"github.com/musterhq/muster/internal/engine/fair"
	"github.com/musterhq/muster/internal/engine/order"
	"github.com/musterhq/muster/internal/engine/quota"
)

// rivalQueues groups the candidates by queue, to take the next one where the share is largest.
type rivalQueues struct {
	*search
	root   *rival
	rivals map[*quota.Node]*rival
}

// rival is a queue with candidates that were not tried yet, or a cohort above such queues.
type rival struct {
	node   *quota.Node
	parent *rival
	// waiting are the candidates of a queue; open counts the queues with candidates at or below the node. over is set
	// if the preemptor's queue is at or below it.
	waiting []part
	open    int
	over    bool
	// largest are the children to go on with, that with the largest share first; share is the node's, and at is its
	// position there in its parent.
	largest order.Heap[*rival]
	share   fair.Share
	at      order.Place
}

func newRivalQueues(s *search, from []part) *rivalQueues {
	f := &rivalQueues{search: s, rivals: map[*quota.Node]*rival{}}
	f.root = f.rival(s.Queue.Root())
	for n := s.Queue; n != nil; n = n.Parent() {
		f.rival(n).over = true
	}
	for len(from) > 0 {
		run := 1
		for run < len(from) && from[run].queue == from[0].queue {
			run++
		}
		r := f.rival(from[0].queue)
		if r.waiting == nil {
			r.waiting = from[:run:run] // nearly always all of the queue
			r.count(1)
		} else {
			r.waiting = append(r.waiting, from[:run]...)
		}
		from = from[run:]
	}
	for _, r := range f.rivals {
		f.place(r)
	}
	return f
}

// rival returns the rival of a node, creating it and those above it as needed.
func (rq *rivalQueues) rival(n *quota.Node) *rival {
	if r := rq.rivals[n]; r != nil {
		return r
	}
	r := &rival{node: n, largest: order.NewHeap((*rival).before, func(r *rival) *order.Place { return &r.at })}
	rq.rivals[n] = r
	if n.Parent() != nil {
		r.parent = rq.rival(n.Parent())
	}
	return r
}

// before orders siblings by share, the largest first, and equal ones as they are in the cohort.
func (r *rival) before(other *rival) bool {
	return cmp.Or(other.share.Compare(r.share), quota.CompareSiblings(r.node, other.node)) < 0
}

// count adds to the number of open queues at or below the node and all above it.
func (r *rival) count(by int) {
	for ; r != nil; r = r.parent {
		r.open += by
	}
}

// next walks down from the root, in each cohort to the child with the largest share, and returns the queue that it
// arrives at; nil if none is left. It skips nodes that no longer borrow anything that is short.
func (rq *rivalQueues) next() *rival {
	r := rq.root
	for r.open > 0 {
		switch {
		case r.node.IsQueue():
			return r
		case r.largest.Len() > 0:
			r = r.largest.First()
		default:
			// No child qualifies, and none will: usage only decreases from here on.
			r.count(-r.open)
			rq.replace(r)
			r = rq.root
		}
	}
	return nil
}

// tried is called after candidates of the queue were tried: it may have none left, and the shares of all nodes above
// may have changed.
func (rq *rivalQueues) tried(r *rival) {
	if len(r.waiting) == 0 {
		r.count(-1)
	}
	rq.replace(r)
}

// replace places the node and all above it anew.
func (rq *rivalQueues) replace(r *rival) {
	for ; r != nil; r = r.parent {
		rq.place(r)
	}
}

// place puts the node where it belongs among its siblings, if it has candidates and still borrows.
func (rq *rivalQueues) place(r *rival) {
	switch {
	case r.parent == nil:
	case r.open == 0 || !r.over && !rq.borrows(r.node):
		r.parent.largest.Remove(r)
	default:
		r.share = rq.share(r)
		r.parent.largest.Put(r)
	}
}

// share returns the node's share, including the preemptor if that is below it.
func (rq *rivalQueues) share(r *rival) fair.Share {
	if r.over {
		return fair.With(r.node, quota.Planned, rq.Queue, rq.Usage)
	}
	return fair.Of(r.node, quota.Planned, nil)
}
