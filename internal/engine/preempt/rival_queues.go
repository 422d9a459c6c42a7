package preempt

import (
	"github.com/musterhq/muster/internal/engine/fair"
	"github.com/musterhq/muster/internal/engine/quota"
)

// rivalQueues groups the candidates by queue, to take the next one where the share is largest.
type rivalQueues struct {
	*search
	rivals map[*quota.Node]*rival
	// open counts the queues with candidates at or below a node; over are the nodes from the preemptor's queue to the
	// root.
	open map[*quota.Node]int
	over map[*quota.Node]bool
}

// rival is a queue with its candidates that were not tried yet.
type rival struct {
	queue   *quota.Node
	waiting []part
}

func newRivalQueues(s *search, from []part) *rivalQueues {
	f := &rivalQueues{search: s, rivals: map[*quota.Node]*rival{}, open: map[*quota.Node]int{}, over: map[*quota.Node]bool{}}
	for n := s.Queue; n != nil; n = n.Parent() {
		f.over[n] = true
	}
	for _, c := range from {
		r := f.rivals[c.queue]
		if r == nil {
			r = &rival{queue: c.queue}
			f.rivals[c.queue] = r
			f.count(r, 1)
		}
		r.waiting = append(r.waiting, c)
	}
	return f
}

// leave removes a queue without candidates.
func (f *rivalQueues) leave(r *rival) { f.count(r, -1) }

func (f *rivalQueues) count(r *rival, by int) {
	for n := r.queue; n != nil; n = n.Parent() {
		f.open[n] += by
	}
}

// next walks down from the root, in each cohort to the child with the largest share, and returns the queue that it
// arrives at; nil if none is left. It skips nodes that no longer borrow anything that is short.
func (f *rivalQueues) next() *rival {
	n := f.Queue.Root()
	for f.open[n] > 0 {
		if n.IsQueue() {
			return f.rivals[n]
		}
		child := f.largest(n)
		if child == nil {
			// No child qualifies, and none will: usage only decreases from here on.
			f.close(n)
			n = f.Queue.Root()
			continue
		}
		n = child
	}
	return nil
}

// largest returns the child with the largest share of those with candidates.
func (f *rivalQueues) largest(n *quota.Node) (best *quota.Node) {
	var most fair.Share
	for _, child := range n.Children() {
		if f.open[child] == 0 || !f.over[child] && !f.borrows(child) {
			continue
		}
		if share := f.share(child); best == nil || share.Compare(most) > 0 {
			best, most = child, share
		}
	}
	return best
}

// share returns the node's share, including the preemptor if that is below it.
func (f *rivalQueues) share(n *quota.Node) fair.Share {
	if f.over[n] {
		return fair.With(n, quota.Planned, f.Queue, f.Usage)
	}
	return fair.Of(n, quota.Planned, nil)
}

// close removes all queues at or below a node.
func (f *rivalQueues) close(n *quota.Node) {
	gone := f.open[n]
	for at := n.Parent(); at != nil; at = at.Parent() {
		f.open[at] -= gone
	}
	f.open[n] = 0
}
