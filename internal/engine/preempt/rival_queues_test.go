package preempt

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/musterhq/muster/internal/engine/fair"
	"github.com/musterhq/muster/internal/engine/quota"
)

// TestNextRivalIsThatOfAWalk: whatever is evicted, the next queue is the one to which a walk leads that compares the
// shares of all children.
func TestNextRivalIsThatOfAWalk(t *testing.T) {
	steps, many := 0, 0
	for seed := range uint64(5000) {
		r := rand.New(rand.NewPCG(seed, 1))
		l, p := crowd(r)
		s := &search{tree: &l.tree, Preemptor: p, futile: true}
		s.collect(l.holdersOf)
		parts := s.parts()
		from := parts[r.IntN(2)]
		s.tree.Try(func() {
			rivals, walk := newRivalQueues(s, from), newWalk(s, from)
			for {
				got, want := rivals.next(), walk.next()
				if got == nil && want == nil {
					return
				}
				if got == nil || got.node != want {
					t.Fatalf("seed %d: the next of %d candidates is %v, want %s", seed, len(from), got, want.Name())
				}
				steps++
				if got.parent != nil && got.parent.largest.Len() > 1 {
					many++
				}
				for range 1 + r.IntN(len(got.waiting)) {
					if r.IntN(2) == 0 {
						s.tree.Release(want.Name(), quota.Planned, got.waiting[0].Usage)
					}
					got.waiting = got.waiting[1:]
				}
				if len(got.waiting) == 0 {
					walk.leave(want)
				}
				rivals.tried(got)
			}
		})
	}
	if steps < 10_000 || many < 5000 {
		t.Errorf("%d steps, %d of them with several queues: the test tests too little", steps, many)
	}
}

// crowd returns a search, as randomSearch does, in which many borrow, with weights and a queue named like its cohort.
func crowd(r *rand.Rand) (*lab, Preemptor) {
	l, p := randomSearch(r)
	cohorts := []string{"root", "left", "right"}
	for n := range 4 + r.IntN(8) {
		name := fmt.Sprint("r", n)
		if n < 2 {
			name = cohorts[n]
		}
		l.queue(name, cohorts[r.IntN(3)], r.Int64N(2))
		if weight := quota.Weight(r.Int64N(4)) * quota.One; weight < 3*quota.One {
			l.tree.SetQueueWeight(name, &weight)
		}
		for i := range r.IntN(5) {
			l.holds(name, &Holder{Key: key(fmt.Sprint(name, "-", i)), Priority: r.Int32N(3),
				Usage: l.amounts(1+r.Int64N(3), r.Int64N(2)), Nominated: r.IntN(6) == 0})
		}
	}
	p.Queue = l.tree.Queue(p.Queue.Name())
	p.Policy.Reclaim, p.Fair = Any, []Strategy{LessThanOrEqualToFinalShare}
	p.Short = p.Usage.Indices()
	return l, p
}

// walk looks for the next queue at all children of each cohort.
type walk struct {
	*search
	open map[*quota.Node]int
	over map[*quota.Node]bool
}

func newWalk(s *search, from []part) *walk {
	w := &walk{search: s, open: map[*quota.Node]int{}, over: map[*quota.Node]bool{}}
	for n := s.Queue; n != nil; n = n.Parent() {
		w.over[n] = true
	}
	for _, c := range from {
		if w.open[c.queue] == 0 {
			w.count(c.queue, 1)
		}
	}
	return w
}

func (w *walk) leave(queue *quota.Node) { w.count(queue, -1) }

func (w *walk) count(n *quota.Node, by int) {
	for ; n != nil; n = n.Parent() {
		w.open[n] += by
	}
}

func (w *walk) next() *quota.Node {
	n := w.Queue.Root()
	for w.open[n] > 0 && !n.IsQueue() {
		child := w.largest(n)
		if child == nil {
			w.count(n, -w.open[n])
			child = w.Queue.Root()
		}
		n = child
	}
	if w.open[n] == 0 {
		return nil
	}
	return n
}

func (w *walk) largest(n *quota.Node) (best *quota.Node) {
	var most fair.Share
	for _, child := range n.Children() {
		if w.open[child] == 0 || !w.over[child] && !w.borrows(child) {
			continue
		}
		share := fair.Of(child, quota.Planned, nil)
		if w.over[child] {
			share = fair.With(child, quota.Planned, w.Queue, w.Usage)
		}
		if best == nil || share.Compare(most) > 0 {
			best, most = child, share
		}
	}
	return best
}
