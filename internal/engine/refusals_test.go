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
	return Refused{Key: d.Key, UID: d.UID, Serial: d.Serial, Generation: d.Generation,
		Message: "a policy says no", At: s.now}
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
		w.apply(Refused{Key: d.Key, UID: d.UID, Serial: d.Serial, Generation: d.Generation,
			Message: "a policy says no", At: w.clock})
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
				if of, refused := w.untried[by.Name]; refused && job.Admission == nil && of == (attempt{job.UID, job.Generation}) &&
					w.engine.workloads[by].Refusal.Times > 0 {
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

// wantRefusal fails if the explanation of the job big is not that its admission is refused, or says that it would fit
// by a preemption.
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
	reclaims := []Event{evicting(queueOf("q", "team", 2), preempt.Policy{Reclaim: preempt.Any}), localOf("q"),
		queueOf("other", "team", 0), localOf("other")}
	stopped := func(s *scene) Event { return s.stopped("low") }
	for name, tc := range map[string]struct {
		queues   []Event
		low, big WorkloadSet
		cost     string
		released func(s *scene) Event
	}{
		"in its queue": {own, job("low", "q", 1, 2, 0, 0), job("big", "q", 1, 2, 1, 1),
			"evict low for big: in queue", stopped},
		"from a queue that borrowed": {reclaims, job("low", "other", 1, 2, 0, 0), job("big", "q", 1, 2, 1, 1),
			"evict low for big: reclaimed", stopped},
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
