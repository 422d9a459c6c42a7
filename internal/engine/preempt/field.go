package preempt

import (
	"github.com/musterhq/muster/internal/engine/fair"
	"github.com/musterhq/muster/internal/engine/quota"
)

// field is the candidates by queues, from which the next one is always taken where the
// share is largest.
type field struct {
	*search
	rivals map[*quota.Node]*rival
	// open counts the queues with candidates at or below a node; over are the nodes from
	// the preemptor's queue to the root.
	open map[*quota.Node]int
	over map[*quota.Node]bool
}

// rival is a queue with those of it who were not tried yet.
type rival struct {
	queue   *quota.Node
	waiting []part
}

func newField(s *search, from []part) *field {
	f := &field{search: s, rivals: map[*quota.Node]*rival{}, open: map[*quota.Node]int{}, over: map[*quota.Node]bool{}}
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

// leave takes a queue out that has no candidates any more.
func (f *field) leave(r *rival) { f.count(r, -1) }

func (f *field) count(r *rival, by int) {
	for n := r.queue; n != nil; n = n.Parent() {
		f.open[n] += by
	}
}

// next walks down from the root, in each cohort to the child with the largest share,
// and returns the queue that it comes to; nil if nobody is left. Who does not borrow of
// what is short any more is left alone.
func (f *field) next() *rival {
	n := f.Queue.Root()
	for f.open[n] > 0 {
		if n.IsQueue() {
			return f.rivals[n]
		}
		child := f.largest(n)
		if child == nil {
			// Nothing more of it can be had: the same holds for it from now on, as nobody
			// will use more.
			f.close(n)
			n = f.Queue.Root()
			continue
		}
		n = child
	}
	return nil
}

// largest is the child with the largest share of those in which there are candidates.
func (f *field) largest(n *quota.Node) (best *quota.Node) {
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

// share is the node's, with the preemptor if that is below it.
func (f *field) share(n *quota.Node) fair.Share {
	if f.over[n] {
		return fair.With(n, quota.Planned, f.Queue, f.Usage)
	}
	return fair.Of(n, quota.Planned, nil)
}

// close takes out all queues at or below a node.
func (f *field) close(n *quota.Node) {
	gone := f.open[n]
	for at := n.Parent(); at != nil; at = at.Parent() {
		f.open[at] -= gone
	}
	f.open[n] = 0
}
