package engine

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/engine/elastic"
	"github.com/musterhq/muster/internal/engine/preempt"
)

// between returns a job of fewest to most pods of one cpu each.
func between(name string, fewest, most int32, priority int32, second int) WorkloadSet {
	w := smaller(job(name, "q", most, 1, priority, second), fewest)
	w.PodSets[0].Elastic = elastic.DefaultExponent
	return w
}

// shrunk returns the job after its surplus pods are gone.
func (s *scene) shrunk(name string) WorkloadSet {
	return s.changed(name, func(w *Workload) {
		given := *w.Admission
		given.PodSets = slices.Clone(given.PodSets)
		given.PodSets[0].Surplus = nil
		w.Admission = &given
	})
}

// sizes lets evicted and surplus pods terminate until nothing more is decided, and returns the size of each job.
func (s *scene) sizes(names ...string) []int32 {
	s.Helper()
	for range 50 {
		var events []Event
		for name, job := range s.jobs {
			switch {
			case job.Evicted:
				events = append(events, s.stopped(name))
			case job.Admission.HasSurplus():
				events = append(events, s.shrunk(name))
			}
		}
		if decided := s.happens(events...); len(events) == 0 && len(decided) == 0 {
			break
		}
	}
	var out []int32
	for _, name := range names {
		if a := s.engine.Holds(Key{Namespace: "ns", Name: name}); a != nil {
			out = append(out, a.PodSets[0].Count)
		} else {
			out = append(out, 0)
		}
	}
	return out
}

// wantSizes compares the sizes of the jobs; when describes the situation.
func (s *scene) wantSizes(when string, names []string, want ...int32) {
	s.Helper()
	if got := s.sizes(names...); !slices.Equal(got, want) {
		s.Errorf("%s: sizes of %v = %v, want %v", when, names, got, want)
	}
}

// TestEqualPriorityGetsNoMoreThanItsMinimum: jobs shrink for an equal priority only up to its minimum, even in a queue
// where a higher priority may evict others. It also gets free quota, and that of lower priorities.
func TestEqualPriorityGetsNoMoreThanItsMinimum(t *testing.T) {
	three := []string{"job1", "job2", "job3"}
	for _, policy := range []preempt.Rule{preempt.Never, preempt.LowerPriority, preempt.LowerOrNewerEqualPriority} {
		begin := func(t *testing.T, nominal int64) *scene {
			q := queueOf("q", "", nominal)
			q.Preemption.WithinQueue = policy
			s := newScene(t, Options{}, q, localOf("q"), between("job1", 1, 4, 0, 0))
			s.wantSizes("only job1", three, 4, 0, 0)
			return s
		}
		t.Run(fmt.Sprint(policy), func(t *testing.T) {
			s := begin(t, 6)
			s.happens(between("job2", 1, 4, 0, 1))
			s.wantSizes("more than the minimum is free", three, 4, 2, 0)
			s.happens(between("job3", 2, 4, 0, 2))
			s.wantSizes("nothing is free", three, 2, 2, 2)

			s = begin(t, 6)
			s.happens(between("job2", 1, 4, -1, 1))
			s.wantSizes("a job of lower priority", three, 4, 2, 0)
			s.happens(between("job3", 1, 4, 0, 2))
			s.wantSizes("a job of the priority of the first", three, 4, 0, 2)

			s = begin(t, 6)
			s.happens(between("job2", 1, 4, 1, 1))
			s.wantSizes("a job of higher priority", three, 2, 4, 0)
		})
	}
}

// TestGrowthIsWorthItsCost also where nodes hold fewer pods than there is quota for.
func TestGrowthIsWorthItsCost(t *testing.T) {
	s := newScene(t, Options{Elastic: elastic.Policy{ResizeCost: 30 * time.Second}},
		slices.Concat(onNodes, []Event{queueOf("q", "", 1000), localOf("q"),
			node("a1", "a", 10), between("grows", 2, 20, 0, 0)})...)
	s.now = s.now.Add(2 * time.Minute)
	s.want("there is capacity for one more pod", s.happens(node("a2", "a", 1)))
	s.now = s.engine.Due()
	s.want("it is worth the cost", s.happens(), "resize grows from 10 to 11")
	if ran := s.now.Sub(epoch); ran < 6*time.Minute || ran > 7*time.Minute {
		// 30 s of work are a 13th of that, as the 11th pod is
		t.Errorf("it grew after %s, want between six and seven minutes", ran)
	}
}
