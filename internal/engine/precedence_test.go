package engine

import (
	"testing"

	"github.com/musterhq/muster/internal/engine/preempt"
)

// TestForgottenPrecedenceIsUsedAtOnce: a workload was evicted for others, from the last of which it could reclaim its
// quota now, but for that. Once one of them changes or is gone, it may.
func TestForgottenPrecedenceIsUsedAtOnce(t *testing.T) {
	for name, tc := range map[string]struct {
		event func(s *scene) Event
		want  []string
	}{
		"the one that has its quota changes": {func(s *scene) Event { return s.changed("last", func(w *Workload) { w.Generation++ }) },
			[]string{"evict last for first: reclaimed", "first waits: WaitingForPreemptedWorkloads"}},
		"the one between them is gone": {func(*scene) Event { return gone("between") },
			[]string{"evict last for first: reclaimed", "first waits: WaitingForPreemptedWorkloads"}},
		"another one is gone": {func(*scene) Event { return gone("another") }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			reclaims := evicting(queueOf("p", "lab", 2), preempt.Policy{Reclaim: preempt.Any})
			borrows := evicting(queueOf("r", "lab", 0), preempt.Policy{Reclaim: preempt.LowerPriority, WhileBorrowing: true, WithinQueue: preempt.LowerPriority})
			s := newScene(t, Options{}, reclaims, localOf("p"), borrows, localOf("r"), queueOf("q", "lab", 1), localOf("q"),
				job("large", "p", 1, 2, 5, 0), job("first", "p", 1, 1, 0, 1))
			s.want("a borrower of higher priority arrives", s.happens(job("between", "r", 1, 1, 1, 2)),
				"evict first for between: while borrowing", "between waits: WaitingForPreemptedWorkloads")
			s.want("the first is gone", s.happens(s.stopped("first")), "admit between in r", "first waits: WaitingForQuota")
			s.want("one of even higher priority arrives in its queue", s.happens(job("last", "r", 1, 1, 2, 3)),
				"evict between for last: in queue", "last waits: WaitingForPreemptedWorkloads")
			s.want("the borrower is gone", s.happens(s.stopped("between")), "admit last in r", "between waits: WaitingForQuota")
			s.want("what becomes free is taken by others", s.happens(gone("large"), job("urgent", "p", 1, 1, 5, 4), job("owner", "q", 1, 1, 5, 5), job("another", "r", 1, 1, 1, 6)),
				"admit urgent in p", "admit owner in q", "another waits: WaitingForQuota")
			s.want(name, s.happens(tc.event(s)), tc.want...)
		})
	}
}
