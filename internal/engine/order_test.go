package engine

import (
	"testing"

	"github.com/musterhq/muster/internal/engine/preempt"
)

// TestOrderAcrossQueues: only one of the jobs fits, and the order decides which.
func TestOrderAcrossQueues(t *testing.T) {
	for name, tc := range map[string]struct {
		given []Event
		want  []string
	}{
		"workloads that do not borrow go first, whatever the priorities": {
			given: []Event{queueOf("p", "lab", 2), queueOf("q", "lab", 0), job("own", "p", 2, 1, 0, 5), job("borrower", "q", 2, 1, 9, 0)},
			want:  []string{"admit own in p", "borrower waits: WaitingForQuota"},
		},
		"borrowing within a nearer cohort goes first": {
			given: []Event{
				CohortSet{Cohort{Name: "left", Parent: "top"}}, CohortSet{Cohort{Name: "right", Parent: "top"}},
				queueOf("sister", "left", 2), queueOf("p", "left", 0), queueOf("q", "right", 0),
				job("near", "p", 2, 1, 0, 5), job("far", "q", 2, 1, 9, 0)},
			want: []string{"admit near in p", "far waits: WaitingForQuota"},
		},
		"priority decides between equal borrowers": {
			given: []Event{queueOf("lender", "lab", 2), queueOf("p", "lab", 0), queueOf("q", "lab", 0), job("low", "p", 2, 1, 0, 0), job("high", "q", 2, 1, 1, 5)},
			want:  []string{"admit high in q", "low waits: WaitingForQuota"},
		},
		"time decides between equal priorities": {
			given: []Event{queueOf("lender", "lab", 2), queueOf("p", "lab", 0), queueOf("q", "lab", 0), job("late", "p", 2, 1, 0, 5), job("early", "q", 2, 1, 0, 1)},
			want:  []string{"admit early in q", "late waits: WaitingForQuota"},
		},
		"the name decides between equal times": {
			given: []Event{queueOf("lender", "lab", 2), queueOf("p", "lab", 0), queueOf("q", "lab", 0), job("b", "p", 2, 1, 0, 0), job("a", "q", 2, 1, 0, 0)},
			want:  []string{"admit a in q", "b waits: WaitingForQuota"},
		},
		"the strict head of one queue does not block another queue": {
			given: []Event{strict(queueOf("p", "lab", 2)), queueOf("q", "lab", 2), job("big", "p", 5, 1, 9, 0), job("small", "q", 2, 1, 0, 5)},
			want:  []string{"admit small in q", "big waits: ExceedsMaxQuota"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, Options{}, localOf("p"), localOf("q"))
			s.want("the events", s.happens(tc.given...), tc.want...)
		})
	}
}

// TestPreemptorThatBorrowsIsOrderedLikeOtherBorrowers: of workloads that borrow alike the higher priority goes first,
// even if it needs an eviction.
func TestPreemptorThatBorrowsIsOrderedLikeOtherBorrowers(t *testing.T) {
	whileBorrowing := preempt.Policy{Reclaim: preempt.LowerPriority, WhileBorrowing: true}
	s := newScene(t, Options{}, queueOf("lender", "lab", 4), evicting(queueOf("p", "lab", 0), whileBorrowing), queueOf("q", "lab", 0),
		localOf("p"), localOf("q"), job("low", "q", 2, 1, 0, 0))
	s.want("both want the free quota", s.happens(job("preemptor", "p", 4, 1, 1, 1), job("high", "q", 2, 1, 9, 2)),
		"admit high in q", "preemptor waits: WaitingForQuota")
	own := newScene(t, Options{}, evicting(queueOf("p", "lab", 2), lower), queueOf("q", "lab", 0), localOf("p"), localOf("q"), job("low", "p", 1, 1, 0, 0))
	own.want("a preemptor within its queue's own quota", own.happens(job("owner", "p", 2, 1, 1, 1), job("high", "q", 1, 1, 9, 2)),
		"evict low for owner: in queue", "high waits: WaitingForQuota", "owner waits: WaitingForPreemptedWorkloads")
}

func TestStrictQueueContinuesBehindItsHeadWhen(t *testing.T) {
	for name, happens := range map[string]struct {
		event func(s *scene) Event
		want  []string
	}{
		"the head fits":           {func(*scene) Event { return gone("running") }, []string{"admit head in q", "admit second in q"}},
		"the head is gone":        {func(*scene) Event { return gone("head") }, []string{"admit second in q"}},
		"the head is deactivated": {func(s *scene) Event { return s.changed("head", func(w *Workload) { w.Inactive = true }) }, []string{"admit second in q", "head waits: Deactivated"}},
		"the head requests less": {func(s *scene) Event {
			return s.changed("head", func(w *Workload) { w.PodSets[0].Count, w.Generation = 1, 2 })
		}, []string{"admit head in q", "second waits: WaitingForQuota"}}, // it is the head now, and is told what it lacks
		"an urgent workload arrives":    {func(*scene) Event { return job("urgent", "q", 1, 1, 9, 9) }, []string{"admit urgent in q"}},
		"the queue is no longer strict": {func(*scene) Event { return queueOf("q", "", 4) }, []string{"admit second in q"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, Options{}, strict(queueOf("q", "", 4)), localOf("q"), job("running", "q", 3, 1, 0, 0))
			s.want("the head and a second workload arrive", s.happens(job("head", "q", 2, 1, 0, 1), job("second", "q", 1, 1, 0, 2)),
				"head waits: WaitingForQuota", "second waits: WaitingForQuota")
			s.want("the event", s.happens(happens.event(s)), happens.want...)
		})
	}
}

func TestBestEffortQueueReevaluatesPassedWorkloads(t *testing.T) {
	s := newScene(t, Options{}, queueOf("q", "", 4), localOf("q"), job("running", "q", 2, 1, 0, 0))
	s.want("two workloads arrive", s.happens(job("big", "q", 4, 1, 0, 1), job("small", "q", 2, 1, 0, 2)), "admit small in q", "big waits: WaitingForQuota")
	s.want("too little is released", s.happens(gone("small")))
	s.want("enough is released", s.happens(gone("running")), "admit big in q")
}
