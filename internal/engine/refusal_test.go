package engine

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterhq/muster/internal/engine/preempt"
	"github.com/musterhq/muster/internal/engine/reason"
)

// refused returns the event that the API server rejects the decision permanently.
func (s *scene) refused(d Decision) Refused {
	return Refused{Key: d.Key, UID: d.UID, Serial: d.Serial, Generation: d.Generation, Message: "a policy says no", At: s.now}
}

// TestWorkloadThatCannotBeChangedStaysAsItIs: if the API server rejects a change permanently, no workload waits for it:
// another one is evicted or shrunk, and the change is not decided again for a while.
func TestWorkloadThatCannotBeChangedStaysAsItIs(t *testing.T) {
	t.Run("an eviction", func(t *testing.T) {
		s := newScene(t, Options{}, evicting(queueOf("q", "", 4), lower), localOf("q"), job("a", "q", 2, 1, 1, 0), job("b", "q", 2, 1, 0, 1))
		s.engine.Apply(job("high", "q", 2, 1, 5, 2))
		evict := decideAll(s.engine, s.now)[0]
		if evict.Evict == nil || evict.Key.Name != "b" {
			t.Fatalf("got decision %+v, want the eviction of b", evict)
		}
		s.want("the eviction is refused", s.happens(s.refused(evict)), "evict a for high: in queue")
		x, _ := s.engine.Explain(Key{Namespace: "ns", Name: "high"})
		if !slices.ContainsFunc(x.Holders, func(h reason.Holder) bool {
			return h.Name.Name == "b" && strings.HasSuffix(h.NotPreemptable, "a policy says no")
		}) {
			t.Errorf("holders = %+v, want the reason why b stays", x.Holders)
		}
		s.want("both are stopped", s.happens(s.stopped("a"), s.stopped("b")), "admit high in q", "admit a in q", "b waits: WaitingForQuota")
	})
	t.Run("a smaller size", func(t *testing.T) {
		s := newScene(t, Options{}, queueOf("q", "", 4), localOf("q"), between("a", 1, 2, 0, 0), between("b", 1, 2, 0, 1))
		s.engine.Apply(job("rigid", "q", 1, 1, 0, 2))
		shrink := decideAll(s.engine, s.now)[0]
		if shrink.Resize == nil {
			t.Fatalf("decided %+v, want a shrink", shrink)
		}
		other := map[string]string{"a": "b", "b": "a"}[shrink.Key.Name]
		s.want("the shrink is refused", s.happens(s.refused(shrink)), "resize "+other+" from 2 to 1 for rigid")
	})
	t.Run("a larger size", func(t *testing.T) {
		s := newScene(t, Options{}, queueOf("q", "", 4), localOf("q"), job("rigid", "q", 2, 1, 0, 0), between("a", 1, 4, 0, 1))
		s.engine.Apply(gone("rigid"))
		s.want("the change is refused", s.happens(s.refused(decideAll(s.engine, s.now)[0])))
		due := s.engine.Due()
		if !due.Equal(s.now.Add(firstRetry)) {
			t.Errorf("retry due at %v, want after %v", due, firstRetry)
		}
		s.now = due
		s.want("the retry time is reached", s.happens(), "resize a from 2 to 4")
	})
	t.Run("other places", func(t *testing.T) {
		s := newScene(t, Options{}, slices.Concat(onNodes, []Event{queueOf("q", "", 1000), localOf("q"), node("a1", "a", 4), node("a2", "a", 4), job("one", "q", 1, 4, 0, 0)})...)
		s.engine.Apply(refuses("one", s.places("one")[0][:2]))
		s.want("the change is refused", s.happens(s.refused(decideAll(s.engine, s.now)[0])))
		s.now = s.engine.Due()
		s.want("the retry time is reached", s.happens(), "replace one")
	})
}

// TestWorkloadThatMayNotGrowShrinksForOthers: a rejected growth does not protect a job's size from higher priorities.
func TestWorkloadThatMayNotGrowShrinksForOthers(t *testing.T) {
	s := newScene(t, Options{}, evicting(queueOf("q", "", 4), lower), localOf("q"), job("rigid", "q", 2, 1, 9, 0), between("low", 2, 4, 0, 1))
	s.engine.Apply(gone("rigid"))
	grows := decideAll(s.engine, s.now)
	if len(grows) != 1 || grows[0].Resize == nil {
		t.Fatalf("got decisions %+v, want growth", grows)
	}
	s.want("its growth is refused", s.happens(s.refused(grows[0])))
	s.want("a workload of higher priority arrives", s.happens(job("high", "q", 4, 1, 5, 2)), "evict low for high: in queue", "high waits: WaitingForPreemptedWorkloads")
}

// TestGrowthIsPlannedAgainAfterARejectedShrink: the job that was to shrink for the growth could not.
func TestGrowthIsPlannedAgainAfterARejectedShrink(t *testing.T) {
	raised := func(t *testing.T, s *scene) Decision {
		s.engine.Apply(s.changed("grower", func(w *Workload) { w.Priority, w.Version = 1, w.Version+1 }))
		shrinks := decideAll(s.engine, s.now)
		if len(shrinks) != 1 || shrinks[0].Resize == nil || shrinks[0].Resize.For.Name != "grower" {
			t.Fatalf("got decisions %+v, want a shrink for the grower", shrinks)
		}
		return shrinks[0]
	}
	t.Run("another job", func(t *testing.T) {
		s := newScene(t, Options{}, queueOf("q", "", 5), localOf("q"), between("a", 1, 2, 0, 0), between("b", 1, 2, 0, 1), between("grower", 1, 2, 0, 2))
		shrinks := raised(t, s)
		other := map[string]string{"a": "b", "b": "a"}[shrinks.Key.Name]
		s.want("the change is refused", s.happens(s.refused(shrinks)), "resize "+other+" from 2 to 1 for grower")
	})
	t.Run("the same job later", func(t *testing.T) {
		s := newScene(t, Options{}, queueOf("q", "", 3), localOf("q"), between("a", 1, 2, 0, 0), between("grower", 1, 2, 0, 1))
		s.want("the change is refused", s.happens(s.refused(raised(t, s))))
		s.now = s.now.Add(firstRetry)
		s.want("the retry time is reached", s.happens(), "resize a from 2 to 1 for grower")
		s.want("its surplus pod is gone", s.happens(s.shrunk("a")), "resize grower from 1 to 2")
	})
}

// TestPromiseOutlivesAnEarlierRejection: the backoff of an admission that was rejected before the job was changed does
// not apply to a later promise.
func TestPromiseOutlivesAnEarlierRejection(t *testing.T) {
	s := newScene(t, Options{}, evicting(queueOf("q", "", 4), lower), localOf("q"))
	s.engine.Apply(job("high", "q", 3, 1, 5, 0))
	s.happens(s.refused(decideAll(s.engine, s.now)[0]))
	s.want("another workload gets the quota", s.happens(job("low", "q", 4, 1, 0, 1)), "admit low in q")
	high := job("high", "q", 3, 1, 5, 0)
	high.Generation++
	s.want("the job is changed", s.happens(high), "evict low for high: in queue", "high waits: WaitingForPreemptedWorkloads")
	s.now = s.now.Add(2 * firstRetry)
	s.want("a workload that is first in order arrives", s.happens(job("first", "q", 2, 1, 5, -1)), "first waits: WaitingForQuota")
	s.want("the quota is free", s.happens(s.stopped("low")), "admit high in q", "low waits: WaitingForQuota")
}

// attempt is what an admission was refused of.
type attempt struct {
	uid        string
	generation int64
}

// noteTrial keeps which jobs may stop no others: those whose admission was refused and not tried since.
func (w *world) noteTrial(d Decision, job WorkloadSet, how answer) {
	of := attempt{d.UID, d.Generation}
	switch {
	case d.Admit == nil && d.Try == nil || job.UID != d.UID || job.Generation != d.Generation || job.Admission != nil:
	case how == rejected:
		w.untried[d.Key.Name] = of
	case how == accepted:
		delete(w.untried, d.Key.Name)
	}
}

// answerTrial is the API server's answer to the trial of an admission.
func (w *world) answerTrial(d Decision, job WorkloadSet, how answer) {
	switch {
	case how == lost || job.UID != d.UID || job.Admission != nil || job.Generation != d.Generation:
		w.apply(Failed{Key: d.Key, UID: d.UID, Serial: d.Serial})
	case how == rejected:
		w.apply(Refused{Key: d.Key, UID: d.UID, Serial: d.Serial, Generation: d.Generation, Message: "a policy says no", At: w.clock})
	default:
		w.apply(Tried{Key: d.Key, UID: d.UID, Serial: d.Serial})
	}
}

// TestRefusedAdmissionStopsNoOther: no job is evicted, withdrawn or made smaller for one whose admission the API server
// refused, before a trial of that succeeded.
func TestRefusedAdmissionStopsNoOther(t *testing.T) {
	check(t, func(t *rapid.T, w *world) {
		for range rapid.IntRange(1, 60).Draw(t, "events") {
			w.step(t)
			decided := len(w.decided)
			w.decide()
			for _, d := range w.decided[decided:] {
				var by Key
				switch {
				case d.Evict != nil:
					by = d.Evict.Preemptor
				case d.Resize != nil:
					by = d.Resize.For
				}
				job := w.jobs[by.Name]
				if of, refused := w.untried[by.Name]; refused && job.Admission == nil && of == (attempt{job.UID, job.Generation}) && w.engine.workloads[by].refusal.times > 0 {
					w.describe(t)
					t.Fatalf("%s is stopped or shrinks for %s, whose admission was refused", d.Key, by)
				}
			}
		}
	})
}

// forBig returns the decisions that cost other jobs something for the job big.
func forBig(lines []string) (out []string) {
	for _, line := range lines {
		if strings.Contains(line, "for big") || strings.HasPrefix(line, "withdraw") {
			out = append(out, line)
		}
	}
	return out
}

// wantRefusal fails if the explanation of the job big is not that its admission is refused, or says that it would fit by a
// preemption.
func wantRefusal(t *testing.T, s *scene) {
	t.Helper()
	x, _ := s.engine.Explain(Key{Namespace: "ns", Name: "big"})
	if x.Code != reason.Inadmissible || !strings.Contains(x.Message, "a policy says no") {
		t.Errorf("explanation = %s: %s, want the refusal", x.Code, x.Message)
	}
	if len(x.WouldPreempt)+len(x.WouldShrink)+len(x.Holders) > 0 || x.PodSets[0].Flavors[0].Fit != reason.Short {
		t.Errorf("explanation = %+v, want no workload that would be evicted or shrink", x)
	}
}

// TestRefusedAdmissionEvictsNobodyUntilATrialSucceeds: a victim stops or shrinks once, and not again at each retry.
func TestRefusedAdmissionEvictsNobodyUntilATrialSucceeds(t *testing.T) {
	own := []Event{evicting(queueOf("q", "", 2), lower), localOf("q")}
	reclaims := []Event{evicting(queueOf("q", "team", 2), preempt.Policy{Reclaim: preempt.Any}), localOf("q"), queueOf("other", "team", 0), localOf("other")}
	stopped := func(s *scene) Event { return s.stopped("low") }
	for name, tc := range map[string]struct {
		queues   []Event
		low, big WorkloadSet
		cost     string
		released func(s *scene) Event
	}{
		"in its queue":               {own, job("low", "q", 1, 2, 0, 0), job("big", "q", 1, 2, 1, 1), "evict low for big: in queue", stopped},
		"from a queue that borrowed": {reclaims, job("low", "other", 1, 2, 0, 0), job("big", "q", 1, 2, 1, 1), "evict low for big: reclaimed", stopped},
		"of an elastic job": {own, between("low", 1, 2, 0, 0), job("big", "q", 1, 1, 1, 1), "resize low from 2 to 1 for big",
			func(s *scene) Event { return s.shrunk("low") }},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, Options{}, tc.queues...)
			s.happens(tc.low)
			s.refuse["big"] = "a policy says no"
			s.want("a job of higher priority arrives", forBig(s.happens(tc.big)), tc.cost)
			s.want("that is free, and the admission is refused", forBig(s.happens(tc.released(s))))
			if s.jobs["big"].Admission != nil {
				t.Fatal("big was admitted, want its admission refused")
			}
			tried := 0
			for range 6 {
				s.now = s.engine.Due()
				lines := s.happens()
				s.want("it is time to retry", forBig(lines))
				if slices.Contains(lines, "try big") {
					tried++
				}
			}
			if tried < 3 {
				t.Errorf("the admission was tried %d times, want a trial at each retry", tried)
			}
			wantRefusal(t, s)

			restarted := newScene(t, Options{}, tc.queues...)
			restarted.refuse, restarted.now = s.refuse, s.now
			for _, name := range []string{"low", "big"} {
				s.want("a restart", forBig(restarted.happens(s.jobs[name])))
			}
			wantRefusal(t, restarted)

			delete(s.refuse, "big")
			var lines []string
			for len(forBig(lines)) == 0 && !s.engine.Due().IsZero() {
				s.now = s.engine.Due()
				lines = s.happens()
			}
			s.want("it is accepted now", forBig(lines), tc.cost)
			s.happens(tc.released(s))
			if s.jobs["big"].Admission == nil {
				t.Error("big waits, want it admitted")
			}
		})
	}
}
