package engine

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/musterhq/muster/internal/engine/preempt"
)

func TestEvictionNamesThePreemptorAndPaths(t *testing.T) {
	s := newScene(t, Options{}, CohortSet{Cohort{Name: "team", Parent: "lab"}},
		evicting(queueOf("q", "team", 2), preempt.Policy{Reclaim: preempt.Any}), queueOf("p", "lab", 2),
		localOf("q"), localOf("p"), job("borrower", "p", 1, 2, 0, 0), job("borrower2", "p", 1, 2, 0, 1))
	s.engine.Apply(job("owner", "q", 1, 2, 0, 2))
	var got *Eviction
	for _, d := range decideAll(s.engine, epoch) {
		if d.Evict != nil {
			got = d.Evict
		}
	}
	want := &Eviction{Preemptor: Key{Namespace: "ns", Name: "owner"}, PreemptorUID: "owner-uid", Cause: preempt.Reclaimed,
		PreemptorPath: "/lab/team/q", Path: "/lab/p"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("eviction (-want +got):\n%s", diff)
	}
}

// TestEvictionOrderIsTheSameAfterARestart: the API server does not record which of two reservations within a second was
// first, so that the engine must not use it.
func TestEvictionOrderIsTheSameAfterARestart(t *testing.T) {
	queue := evicting(queueOf("q", "", 4), lower)
	s := newScene(t, Options{}, queue, localOf("q"))
	s.happens(job("b", "q", 2, 1, 0, 0))
	s.now = s.now.Add(700 * time.Millisecond)
	s.happens(job("a", "q", 2, 1, 0, 1))
	fresh := New(Options{})
	for _, ev := range []Event{defaultFlavor, queue, localOf("q")} {
		fresh.Apply(ev)
	}
	for _, name := range []string{"a", "b"} {
		w := s.jobs[name]
		w.ReservedAt = w.ReservedAt.Truncate(time.Second) // as the API server stores it
		fresh.Apply(w)
	}
	high := job("high", "q", 2, 1, 1, 2)
	fresh.Apply(high)
	s.engine.Apply(high)
	var live, again string
	for order, e := range map[*string]*Engine{&live: s.engine, &again: fresh} {
		for _, d := range decideAll(e, s.now) {
			if d.Evict != nil {
				*order += d.Key.Name
			}
		}
	}
	if live != again || len(live) != 1 {
		t.Errorf("victim = %q, after a restart %q, want the same one", live, again)
	}
}

// TestWithdrawnWorkloadIsNotEvictedAgainstTheRules: the rules by which an admission was withdrawn have changed when it
// turns out to be written. Its capacity is nominated for the preemptor again, but may not evict it any more.
func TestWithdrawnWorkloadIsNotEvictedAgainstTheRules(t *testing.T) {
	owner := evicting(queueOf("owner", "lab", 2), preempt.Policy{Reclaim: preempt.Any})
	elsewhere := localOf("owner")
	elsewhere.ClusterQueue = "elsewhere"
	starting := func(t *testing.T, options Options) (s *scene, admission Decision) {
		s = newScene(t, options, queueOf("borrower", "lab", 0), localOf("borrower"), owner, localOf("owner"),
			queueOf("elsewhere", "lab", 0))
		s.engine.Apply(job("starts", "borrower", 2, 1, 0, 0))
		s.jobs["starts"] = job("starts", "borrower", 2, 1, 0, 0)
		admission = decideAll(s.engine, s.now)[0]
		return s, admission
	}
	rejected := []string{"high waits: WaitingForQuota"}
	for name, tc := range map[string]struct {
		options Options
		change  Event
		want    []string
	}{
		"nothing has changed": {Options{}, localOf("owner"),
			[]string{"evict starts for high: reclaimed"}},
		"its queue is protected": {Options{}, protected(queueOf("borrower", "lab", 0)), rejected},
		"its queue is protected, with fair sharing": {bothStrategies,
			protected(queueOf("borrower", "lab", 0)), rejected},
		"the preemptor's queue reclaims nothing":          {Options{}, queueOf("owner", "lab", 2), rejected},
		"the preemptor is in a queue without such rights": {Options{}, elsewhere, rejected},
	} {
		t.Run(name, func(t *testing.T) {
			s, admission := starting(t, tc.options)
			s.want("the owner of the quota arrives", s.happens(job("high", "owner", 2, 1, 1, 1)), "withdraw starts",
				"high waits: WaitingForPreemptedWorkloads")
			s.want("the change", s.happens(tc.change))
			s.write(admission)
			s.want("the withdrawn admission was written", s.happens(), tc.want...)
		})
	}
	t.Run("the preemptor is still to be moved to a queue without such rights", func(t *testing.T) {
		s, admission := starting(t, Options{})
		s.engine.budget = 1
		s.want("the owner of the quota arrives",
			s.happens(job("large", "owner", 3, 1, 0, 1), job("high", "owner", 2, 1, 1, 2)), "withdraw starts",
			"high waits: WaitingForPreemptedWorkloads", "large waits: ExceedsMaxQuota")
		s.write(admission)
		s.want("its LocalQueue points elsewhere, and the withdrawn admission was written", s.happens(elsewhere),
			"high waits: WaitingForQuota")
	})
}

func protected(q ClusterQueueSet) ClusterQueueSet { q.Preemption.Protected = true; return q }
